"""An operator gives a charge back: once per reference, and never more than is left of it."""

from uuid import UUID, uuid4

import pytest
from msgspec.structs import replace

from domain.accounts.refund_by_hand import NOTHING_LEFT, HandRefund
from domain.accounts.wallet import Wallet, wallet_id
from domain.errors import NotFound, NotPossible
from domain.lookups.bulk_job import BulkJob
from domain.money import parse_amount
from projections.models.jobs import row_of
from projections.timeline import TimelineEntry
from tests.domain.asking import all_at_once
from tests.installation import Installation, Process
from tests.projections.forgery import ITEM_MICROS, InDatabase
from tests.projections.link_forgery import LinkForger, first_of
from tests.projections.looking import timeline


@pytest.fixture
def forger(process: Process) -> LinkForger:
    return LinkForger(InDatabase(process))


def asked(charge_id: UUID, amount: str = "", reference: str = "t-1") -> HandRefund:
    micros = parse_amount(amount) if amount else None
    return HandRefund(charge_id, reference, "a complaint", micros, {"count": 1})


class Desk:
    """Refunds of one thing, and what the wallet has after each."""

    def __init__(self, process: Process, owner: UUID, stream_id: UUID) -> None:
        self.process, self.owner, self.stream_id = process, owner, stream_id

    @property
    def balance_micros(self) -> int:
        return self.process.log.get(Wallet, wallet_id(self.owner)).balance_micros

    def refund(self, *arguments: object, **more: object) -> int:
        """Return by how much the balance has grown."""
        before = self.balance_micros
        wanted = asked(*arguments, **more)  # type: ignore[arg-type]  # as they come
        self.process.accounts.refund(self.stream_id, wanted, self.process.cause())
        return self.balance_micros - before

    def refusal(self, *arguments: object, **more: object) -> str:
        head = self.process.log.head()
        with pytest.raises((NotPossible, NotFound)) as refused:
            self.refund(*arguments, **more)
        assert self.process.log.head() == head
        return str(refused.value)


def by_hand(entry: TimelineEntry) -> bool:
    return entry.what.endswith("refunded_by_hand")


def lookup(forger: LinkForger) -> tuple[Desk, UUID]:
    """A lookup that has cost 0.01."""
    answered = forger.lookup()
    forger.write(answered, forger.charge_for(answered))
    owner = forger.organization_id
    return Desk(forger.log.process, owner, answered.originator_id), answered.price.transaction_id


def test_another_reason_and_another_charge_are_refused(forger: LinkForger) -> None:
    desk, charge = lookup(forger)
    assert desk.refusal(charge, "0.011") == "no more than 0.01 USD is left of this charge"
    desk.refund(charge)
    again = HandRefund(charge, "t-1", "a gift", None, {})
    with pytest.raises(NotPossible, match="has another reason"):
        desk.process.accounts.refund(desk.stream_id, again, forger.cause)
    assert "there is no charge" in desk.refusal(uuid4())
    assert Desk(desk.process, desk.owner, uuid4()).refusal(charge) == NotFound.message


def test_a_job_is_refunded_after_its_end_less_what_has_failed(
    forger: LinkForger, process: Process
) -> None:
    job = forger.job(count=2)
    charge = job.created.price.transaction_id
    desk = Desk(forger.log.process, forger.organization_id, job.id)
    failed = forger.failed(job, 0)
    forger.write(failed, forger.refund_for(job, failed), forger.completed(job, 1))
    assert desk.refusal(charge) == "the job has not ended"
    forger.write(forger.finished(job))
    assert desk.refund(charge) == ITEM_MICROS
    assert forger.failures() == []
    process.projector.catch_up()
    read = process.jobs.get(process.views, forger.organization_id, job.id)
    settlements = [replace(each, position=0) for each in read.settlements]
    assert replace(read, settlements=settlements) == row_of(process.log.get(BulkJob, job.id))


def test_a_link_and_its_top_ups_are_refunded_while_no_change_is_open(
    forger: LinkForger, process: Process
) -> None:
    link = forger.active("0.10")
    change = forger.changing(link, "0.02", "0.03", remove=[first_of(link)])
    first, second = (each.price.transaction_id for each in change.requested.additions if each.price)
    links = Desk(forger.log.process, forger.organization_id, link.id)
    changes = Desk(forger.log.process, forger.organization_id, change.id)
    assert "plans is open" in links.refusal(link.requested.price.transaction_id)
    assert "has not finished" in changes.refusal(first)
    for _ in range(2):
        forger.start(change)
        forger.write(*forger.step(change, link))
    forger.start(change)
    failed, ended = forger.change_failure(change), forger.finish(change, link)
    forger.write(failed, *ended, *forger.change_money_back(change))
    assert changes.refusal(second) == NOTHING_LEFT
    assert changes.refund(first) == 20_000
    assert links.refund(link.requested.price.transaction_id, "0.05") == 50_000
    told = [each for each in timeline(process, link.id) if by_hand(each)]
    assert [each.facts["refunded"] for each in told] == ["0.02", "0.05"]
    assert {each.facts["reason"] for each in told} == {"a complaint"}
    assert forger.failures() == []


def test_a_link_that_may_still_fail_or_has_failed_is_not_refunded(forger: LinkForger) -> None:
    begun, failed = forger.begun(), forger.failed_link()
    for link, reason in ((begun, "may still fail"), (failed, NOTHING_LEFT)):
        desk = Desk(forger.log.process, forger.organization_id, link.id)
        assert reason in desk.refusal(link.requested.price.transaction_id)
    requested = forger.requested()
    desk = Desk(forger.log.process, forger.organization_id, requested.id)
    assert "may still fail" in desk.refusal(requested.requested.price.transaction_id)


def test_a_monthly_fee_is_refunded_once_it_is_charged(forger: LinkForger) -> None:
    fee, due = forger.fee()
    forger.write(due)
    desk = Desk(forger.log.process, forger.organization_id, fee.id)
    assert "there is no charge" in desk.refusal(due.price.transaction_id)
    forger.write(*forger.fee_charged(fee))
    assert desk.refund(due.price.transaction_id) == 10_000
    assert forger.failures() == []


@pytest.mark.each_database
def test_refunds_at_once_never_exceed_the_charge(
    forger: LinkForger, installation: Installation
) -> None:
    desk, charge = lookup(forger)
    desks = [Desk(installation.process(), desk.owner, desk.stream_id) for _ in range(2)]
    begun = desk.balance_micros

    def one(caller: int) -> object:
        process = desks[caller % 2].process
        wanted = asked(charge, "0.006", reference=f"t-{caller // 2}")
        return process.accounts.refund(desk.stream_id, wanted, process.cause()).refund.amount_micros

    got = all_at_once(6, one)
    assert got.count(6_000) == 2, got  # The two callers with the reference that was first.
    assert desk.balance_micros - begun == 6_000
    assert forger.failures() == []
