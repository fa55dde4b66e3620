"""Each type tells ids and moments of its event, in the same bytes each time, and nothing else."""

import json
from typing import Any, cast

import pytest

from domain.links.link import Link
from domain.links.plan_change import PlanChange
from domain.log.aggregate import Event
from domain.log.log import Log, Recorded
from domain.lookups.bulk_job import BulkJob
from domain.webhooks.endpoint import WebhookRequest
from domain.webhooks.messages import TEST, TYPES, EventContext, kinds_of, message_of, type_of
from tests.golden.building import ORGANIZATION, STREAM
from tests.golden.examples import EVENTS
from tests.golden.later_forms import LATER_FORMS
from tests.installation import Process, numbers
from tests.projections.histories import create_job

# The names of all that is told. None of it is a number, an ICCID, an activation code or an address.
NAMES = {
    "activation_id amount balance cancelled_count change_id code completed_count currency",
    "expires_at failed_count installed_at job_id link_id percent plan_id plan_ids position reason",
    "refund_transaction_id refund_transaction_ids status threshold total_count transaction_id",
    "webhook_id",
}
LOOKED_UP = (BulkJob.Finished, BulkJob.Cancelled, PlanChange.Failed)


def told(event: Event, look: Any = None) -> dict[str, Any] | None:
    message = message_of(Recorded(7, event), cast("EventContext", look))
    assert message == message_of(Recorded(7, event), cast("EventContext", look))
    return None if message is None else json.loads(message.body)


class Poor:
    """Looks nothing up: the threshold of everybody is what each balance has just fallen below."""

    @staticmethod
    def threshold_of(_: object) -> int:
        return 999_999_999_999_999_999 + 1


LOW = [each for name, each in LATER_FORMS if name == "low"]  # Without it the balance is not low.
EXAMPLES = [each for each in EVENTS if type_of(each) and not isinstance(each, LOOKED_UP)]
EXAMPLES = [each for each in EXAMPLES if type(each) is not type(LOW[0])] + LOW


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: type(event).TOPIC)
def test_an_event_is_told_as_its_type_with_its_moment_and_position(event: Event) -> None:
    body = told(event, Poor)
    assert [*body] == ["type", "timestamp", "data"]
    assert body["type"] == type_of(event)
    assert body["timestamp"].startswith("2026-03-01T12:30:15.")
    assert body["timestamp"].endswith("Z")
    assert body["data"]["position"] == 7
    assert {*body["data"]} <= {*" ".join(NAMES).split()}


def test_every_type_has_an_event_and_no_event_two_types() -> None:
    kinds = [kind for kinds, _ in TYPES.values() for kind in kinds]
    assert len(kinds) == len({*kinds})
    assert {*kinds} == {*kinds_of(None)}
    assert {*kinds} | {WebhookRequest.TestAsked} == {type(each) for each in EVENTS if type_of(each)}
    assert TEST not in TYPES
    assert kinds_of(["link.failed", "of a later release"]) == (Link.ProvisioningFailed,)


def test_an_event_of_a_change_of_plans_is_told_in_the_order_of_its_link(process: Process) -> None:
    failed = next(each for each in EVENTS if isinstance(each, PlanChange.Failed))
    requested = next(each for each in EVENTS if isinstance(each, PlanChange.Requested))

    class Changes:
        """Knows one change of plans."""

        class log:  # noqa: N801 - in the place of a log.
            @staticmethod
            def get(_: object, stream: object) -> Any:
                assert stream == failed.originator_id
                return requested.mutate(None)

    message = message_of(Recorded(7, failed), cast("EventContext", Changes))
    removals, additions = len(requested.removals), requested.additions
    assert failed.index >= removals
    assert message.about == failed.link_id != failed.originator_id
    lost = additions[failed.index - removals :]
    assert json.loads(message.body)["data"]["plan_ids"] == [str(e.plan.plan_id) for e in lost]
    assert process.log.head() == 0


@pytest.mark.any_database
@pytest.mark.parametrize(("ends", "status"), [("look up", "completed"), ("cancel", "cancelled")])
def test_a_job_tells_how_it_ended(process: Process, ends: str, status: str) -> None:
    owner = process.organization()
    job_id = create_job(process, owner, numbers(3))
    if ends == "cancel":
        job = process.log.get(BulkJob, job_id)
        job.cancel(process.cause())
        process.log.append(job)
    else:
        process.bulk_lookup.work(job_id, 0)
    ended = next(
        e.event for e in reversed(process.log.read(0, 1_000)) if type_of(e.event) == "job.finished"
    )
    counts = {"total_count": 3, "completed_count": 3, "failed_count": 0, "cancelled_count": 0}
    if ends == "cancel":
        counts |= {"completed_count": 0, "cancelled_count": 3}
    body = told(ended, EventContext(process.log))
    assert body["data"] == {"job_id": str(job_id), "status": status, **counts, "position": 7}


def test_the_organization_of_a_message_is_that_of_its_event() -> None:
    event = next(each for each in EVENTS if isinstance(each, Link.Activated))
    message = message_of(Recorded(7, event), EventContext(cast("Log", None)))
    assert (message.organization_id, message.about) == (ORGANIZATION, STREAM)
