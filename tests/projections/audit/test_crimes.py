"""Each rule, broken on purpose by a forged event, is found where it breaks."""

import re
import tracemalloc
from collections.abc import Callable
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from uuid import uuid4

import pytest

from domain.accounts.approvals import ALONE_AFTER, Proposal
from domain.accounts.organization import Organization
from domain.accounts.paid_price import Repayment
from domain.links.link import Link
from domain.links.plan_change import PlanChange
from domain.log.log import Stored, decoded
from domain.log.mapper import MsgspecMapper
from domain.lookups.bulk_job import BulkJob
from projections.audit.rules import Rules
from tests.projections.crimes import ends, operators, orders
from tests.projections.forgery import ITEM_MICROS, SEALED
from tests.projections.link_forgery import Crime, Crimes, LinkForger, first_of

FILES = sorted(Path(operators.__file__).parent.glob("*.py"))
KINDS = [import_module(f"tests.projections.crimes.{each.stem}") for each in FILES]
CRIMES: Crimes = [each for kind in KINDS for each in getattr(kind, "CRIMES", ())]


@pytest.fixture
def forger() -> LinkForger:
    return LinkForger()


@pytest.mark.parametrize(
    ("crime", "reason"), CRIMES, ids=[f"{n}: {reason}" for n, (_, reason) in enumerate(CRIMES)]
)
def test_a_broken_rule_is_found_where_it_breaks(
    forger: LinkForger, crime: Crime, reason: str
) -> None:
    position = crime(forger)
    found = forger.failures()
    assert found, "nobody noticed"
    assert found[0].position == position, found  # And nothing before it.
    assert any(each.position == position and reason in each.reason for each in found), found
    assert not any(re.search(r"\d{18}", each.reason) for each in found), "it tells an ICCID"


def test_what_operators_do_by_the_rules_is_right(forger: LinkForger) -> None:
    operators.staffed(forger)
    proposal = operators.proposed(forger, 11, 2)
    forger.write(operators.approved(proposal, operators.by(forger, 3)))
    operators.booked(forger, 11, operators.by(forger, 3))
    operators.write(forger, operators.registered(4, ["catalogue"], operators.by(forger, 1)))
    operators.prices_set(forger, operators.by(forger, None), operators.by(forger, 4))
    assert forger.failures() == []


def test_what_two_operators_do_with_people_and_prices_is_right(forger: LinkForger) -> None:
    by, owner = operators.by, operators.covered(forger).organization_id
    for kind, facts, made in (
        ("operator", {"subject": "o5", "may": ["money"]}, ("registered", 5)),
        ("key", {"subject": str(operators.Operator.id_of(3))}, ("rotated", 3)),
        ("client", {"may": ["deposits"]}, ("client", 0)),
    ):
        proposal = operators.asked(forger, kind, by(forger, 1), **facts)
        operators.granted(forger, proposal, by(forger, 2))
        proposal.record(Proposal.Used, by(forger, 1))
        operators.write(forger, proposal)
        if made[0] == "rotated":
            operators.rotate(forger, made[1], by(forger, 1))
        elif made[0] == "registered":
            operators.write(forger, operators.registered(made[1], ["money"], by(forger, 1)))
        else:
            operators.write(forger, operators.machine(forger))
    proposal = operators.asked(
        forger, "price", by(forger, 2), organization_id=owner, amount_micros=7
    )
    its = forger.log.get(Organization, owner)
    operators.rotate(forger, 3, by(forger, 3))
    proposal.record(Proposal.Approved, by(forger, 3))
    its.change_price(7, by(forger, 3))
    operators.write(forger, proposal, its)
    operators.booked(forger, 10, by(forger, 2))
    assert forger.failures() == []


def test_what_clients_do_with_the_keys_of_their_organization_is_right(forger: LinkForger) -> None:
    client = operators.clients_of(operators.covered(forger), "clients")
    operators.renewed(forger, client)
    operators.renewed(forger, client, f"operator:{operators.Operator.id_of(1)}")
    assert forger.failures() == []


def test_what_a_client_has_begun_before_it_was_revoked_is_right(forger: LinkForger) -> None:
    operators.ended(forger, timedelta(seconds=59))
    assert forger.failures() == []


def test_a_lost_key_is_replaced_after_a_day_where_nobody_can_approve(forger: LinkForger) -> None:
    operators.without_approvers(forger)
    operators.lost_key(forger, ALONE_AFTER)
    assert forger.failures() == []


def test_refunds_that_exceed_their_charge_together_are_found(forger: LinkForger) -> None:
    job = forger.job(count=2)
    positions = []
    for index, micros in enumerate((ITEM_MICROS, 2 * ITEM_MICROS)):
        refund = Repayment(micros, uuid4())
        forger.write(forger.failed(job, index, refund=refund))
        positions.append(forger.write(forger.refunded(job, refund)))
    reasons = [each.reason for each in forger.failures() if each.position == positions[-1]]
    assert any("exceeds what is left" in reason for reason in reasons), forger.failures()


def test_links_that_live_by_the_rules_are_right(forger: LinkForger) -> None:
    forger.active()
    forger.active("0")
    early = forger.requested()
    forger.write(forger.failure(early))
    failed = forger.failed_link()
    forger.write(*forger.release(failed))
    forger.write(*forger.reservation(forger.requested(), failed.iccid))
    assert forger.failures() == []


def test_a_late_endpoint_that_was_removed_is_right(forger: LinkForger) -> None:
    link = forger.begun()
    failed, esim = forger.failure(link), forger.esim_of(link)
    esim.quarantine(link.id, forger.cause.at, forger.cause)
    forger.write(failed, *esim.collect_events(), forger.money_back(link, failed))
    link.record(Link.EndpointFound, forger.cause, endpoint_id="endpoint-1")
    link.record(Link.EndpointRemoved, forger.cause, endpoint_id=link.endpoint_id)
    forger.write(*link.collect_events())
    forger.write(*forger.release(link))
    assert forger.failures() == []


RIGHT = (orders.right_orders, ends.right_ends)


@pytest.mark.parametrize("right", RIGHT)
def test_what_keeps_the_rules_is_right(
    forger: LinkForger, right: Callable[[LinkForger], None]
) -> None:
    right(forger)
    assert forger.failures() == []


@pytest.mark.parametrize("done", [0, 1, 2])
def test_a_change_that_fails_half_way_is_right(forger: LinkForger, done: int) -> None:
    link = forger.active()
    change = forger.changing(link, "0.02", "0.02", "0", remove=[first_of(link)])
    for _ in range(done):
        forger.start(change)
        forger.write(*forger.step(change, link))
    forger.start(change)
    forger.start(change)
    failed = forger.change_failure(change)
    ended = forger.finish(change, link)
    forger.write(failed, *ended, *forger.change_money_back(change))
    forger.done(forger.changing(link, "0.02"), link)
    assert forger.failures() == []


def test_a_removal_that_was_done_after_all_is_right(forger: LinkForger) -> None:
    link = forger.active()
    change = forger.changing(link, "0.02", remove=[first_of(link)])
    forger.start(change)
    forger.write(forger.change_failure(change), *forger.change_money_back(change))
    forger.write(*forger.step(change, link), *forger.finish(change, link))
    assert forger.failures() == []


def test_a_step_with_an_unknown_outcome_may_be_repeated_to_be_undone(forger: LinkForger) -> None:
    link, change = forger.begun_change("0.02")
    failed = forger.change_failure(change, settled_at=forger.cause.at)
    forger.write(failed, *forger.change_money_back(change))
    facts = {"index": 0, "attempt": 2, "until": forger.cause.at}
    forger.write(forger.of_change(change, PlanChange.PlanAdditionStarted, **facts))
    forger.write(*forger.finish(change, link))
    assert forger.failures() == []


def test_nothing_is_remembered_of_the_items_of_a_job_that_has_finished(forger: LinkForger) -> None:
    rules, cause, count, mapper = Rules(), forger.cause, 1_000, MsgspecMapper()
    tracemalloc.start()
    for number in range(20):
        job = BulkJob.create(
            uuid4(),
            cause,
            organization_id=uuid4(),
            total_count=count,
            slice_size=count,
            item_price_micros=0,
            price=None,
            personal=SEALED,
        )
        job.complete_items(0, range(count), SEALED, cause)
        job.finish_if_settled(cause)
        stored = map(mapper.to_stored_event, job.collect_events())
        rows = [
            Stored(number, e.originator_id, e.originator_version, e.topic, e.state) for e in stored
        ]
        assert not [bad for row in rows for bad in rules.check(row, decoded(row))]
    bytes_held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert bytes_held < 10 * 20 * count, "their numbers alone take 60 bytes an item"
