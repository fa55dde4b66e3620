"""Each type tells ids and moments of its event, in the same bytes each time, and nothing else."""

import json
from typing import Any, cast

import pytest

from domain.links.link import Link
from domain.links.plan_change import PlanChange
from domain.log.aggregate import Event
from domain.log.log import Recorded
from domain.lookups.bulk_job import BulkJob
from domain.webhooks.endpoint import WebhookRequest
from domain.webhooks.messages import (
    NAMED_ONLY,
    OF_ENTRIES,
    PER_EVENT_MAX,
    TEST,
    TYPES,
    Entry,
    EventContext,
    body_of_entry,
    kinds_of,
    messages_of,
    types_of,
)
from tests.golden.files import EVENTS, LATER_FORMS
from tests.installation import Process, numbers

# The names of all that is told. None of it is a number, an ICCID, an activation code or an address.
NAMES = {
    "activation_id amount balance by cancelled_count change_id client_id code completed_count",
    "currency direction expires_at failed_count installed_at job_id link_id percent plan_id",
    "plan_ids plans position reason refund_of refund_transaction_id refund_transaction_ids",
    "sequence status threshold total_count transaction_id was webhook_id",
}
LOOKED_UP = (BulkJob.Finished, BulkJob.Cancelled, PlanChange.Failed)


def told(event: Event, look: Any = None) -> list[dict[str, Any]]:
    """Return the bodies of all messages about an event; the same event gives the same ones."""
    recorded, context = Recorded(7, event), cast("EventContext", look)
    messages = [*messages_of(recorded, context)]
    assert messages == [*messages_of(recorded, context)]
    bodies = [each.body for each in messages]
    entries = [each for each in types_of(event) if each in OF_ENTRIES]
    bodies += [body_of_entry(each, Entry.of(recorded)) for each in entries]
    return [json.loads(each) for each in bodies]


class Poor:
    """Looks nothing up: the threshold of everybody is what each balance has just fallen below.

    Every link was `unknown` before.
    """

    @staticmethod
    def threshold_of(_: object) -> int:
        return 999_999_999_999_999_999 + 1

    @staticmethod
    def status_before(_: object) -> str:
        return "unknown"


# Without these the balance is not low, and nobody's client is renewed or deleted.
LOW = [each for name, each in LATER_FORMS if name in {"low", "organization"}]
EXAMPLES = [each for each in EVENTS if types_of(each) and not isinstance(each, LOOKED_UP)]
EXAMPLES = [each for each in EXAMPLES if type(each) not in {*map(type, LOW)}] + LOW


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: type(event).TOPIC)
def test_an_event_is_told_as_its_type_with_its_moment_and_position(event: Event) -> None:
    bodies = told(event, Poor)
    assert {each["type"] for each in bodies} == {*types_of(event)}
    for body in bodies:
        assert [*body] == ["type", "timestamp", "data"]
        assert body["timestamp"].startswith("2026-03-01T12:30:15.")
        moments = [at for name, at in body["data"].items() if name.endswith("_at")]
        assert {at[19] + at[23:] for at in (body["timestamp"], *moments)} == {".Z"}
        assert body["data"]["position"] == 7
        assert {*body["data"]} <= {*" ".join(NAMES).split()}


def test_every_type_has_an_event_and_no_event_two_types_that_come_unnamed() -> None:
    named = {name: kinds for name, (kinds, _) in TYPES.items() if name in NAMED_ONLY}
    kinds = [kind for name, (kinds, _) in TYPES.items() if name not in named for kind in kinds]
    assert len(kinds) == len({*kinds})
    assert {*kinds} == {*kinds_of(None)}
    every = {*kinds, *(kind for kinds in named.values() for kind in kinds)}
    assert every | {WebhookRequest.TestAsked} == {type(each) for each in EVENTS if types_of(each)}
    assert max(len(types_of(each)) for each in EVENTS) == PER_EVENT_MAX
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

    (message,) = messages_of(Recorded(7, failed), cast("EventContext", Changes))
    removals, additions = len(requested.removals), requested.additions
    assert failed.index >= removals
    assert message.about == failed.link_id != failed.originator_id
    lost = additions[failed.index - removals :]
    assert json.loads(message.body)["data"]["plan_ids"] == [str(e.plan.plan_id) for e in lost]
    assert process.log.head() == 0


def test_a_job_tells_that_it_was_cancelled(process: Process) -> None:
    job = process.log.get(BulkJob, process.create_job(process.organization(), numbers(3)))
    job.cancel(process.cause())
    ended = job.pending_events[-1]
    process.log.append(job)
    counts = {"total_count": 3, "completed_count": 0, "failed_count": 0, "cancelled_count": 3}
    (body,) = told(ended, EventContext(process.log))
    assert body["data"] == {"job_id": str(job.id), "status": "cancelled", **counts, "position": 7}
