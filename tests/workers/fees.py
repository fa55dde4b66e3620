"""Organizations with links that cost a fee each month, and what came of it."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest

from domain.accounts.monthly_fee import MonthlyFee
from domain.accounts.organization import Status
from domain.cause import Cause
from domain.links.bought_plan import BoughtPlan
from domain.links.esim import Esim
from domain.links.link import Link
from domain.links.network import Endpoint, LinkStatus
from domain.money import format_amount, parse_amount
from projections.audit.report import Failure
from projections.models.transactions import EntryFilter, Transaction
from tests.installation import Process, SetClock

PLAN = BoughtPlan(uuid4(), "eu-5gb-30d", "Europe 5 GB", 0, 5_000, 30, ["AT", "DE"])
REQUEST = "request-1"


def moment(text: str) -> datetime:
    """Read a moment in UTC, such as `2026-02-01` or `2026-02-01 00:01`."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def clock_at(text: str, scope: Any = "function") -> Any:
    """Return a fixture: a clock that stands still at a moment."""
    return pytest.fixture(lambda: SetClock(moment(text)), scope=scope)


def customer(process: Process, fee: str = "1.50", balance: str = "100.00", links: int = 1) -> UUID:
    """Register an organization with so many active links; a balance of "" is no wallet."""
    registered = process.organization(balance, fee=fee)
    for _ in range(links):
        activate(process, registered)
    return registered


def activate(process: Process, organization_id: UUID) -> UUID:
    """Let an organization have one more link, which has cost nothing."""
    link, esim = active_link(organization_id, process.cause())
    process.log.append(link, esim)
    return link.id


def active_link(organization_id: UUID, cause: Cause) -> tuple[Link, Esim]:
    """Make a link that is active from that moment on; nothing of it is on the log yet."""
    link_id = uuid4()
    iccid = f"8988{link_id.int % 10**15:015d}"
    link = Link.request(
        link_id,
        cause,
        organization_id=organization_id,
        name=None,
        plan=PLAN,
        sponsor_profiles=[],
        currency="USD",
        deadline=cause.at,
    )
    esim = Esim.register("simulated", iccid, cause)
    esim.reserve(link_id, cause)
    link.record(Link.EsimReserved, cause, iccid=iccid, sponsor_profile=None)
    link.request_endpoint(cause.at, cause)
    endpoint = Endpoint(endpoint_of(link_id), iccid, str(link_id))
    link.activate(endpoint, None, cause, adopted=False)
    return link, esim


def endpoint_of(link_id: UUID) -> str:
    """Return the endpoint of such a link; no network has it."""
    return f"endpoint-{link_id}"


def switch(process: Process, link_id: UUID, status: LinkStatus, at: datetime | None = None) -> None:
    """Suspend or reactivate a link, by default now."""
    cause = Cause(at or process.clock(), REQUEST)
    link = process.log.get(Link, link_id)
    link.request_status(status, cause.at, cause)
    link.settle_status(status, cause)
    process.log.append(link)


def set_status(process: Process, organization_id: UUID, status: Status) -> None:
    process.change(organization_id, lambda it, cause: it.change_status(status, cause))


def set_fee(process: Process, organization_id: UUID, fee: str) -> None:
    micros = parse_amount(fee)
    process.change(organization_id, lambda it, cause: it.change_monthly_link_fee(micros, cause))


def fall_due(process: Process, organization_id: UUID, month: str) -> UUID:
    """Let a fee of one link fall due, without the clock's round; return its id."""
    facts = {"fee_micros": 1, "link_ids": [uuid4()], "currency": "USD"}
    fee = MonthlyFee.fall_due(organization_id, month, process.cause(), **facts)
    process.log.append(fee)
    return fee.id


def bill(process: Process, most: int = 500) -> int:
    """Let a worker record what falls due, and charge it; return how many fees were charged."""
    before = len(process.events(MonthlyFee.Charged))
    process.monthly_fees.run(most)
    process.projector.catch_up()
    return len(process.events(MonthlyFee.Charged)) - before


def frozen(process: Process, organization_id: UUID) -> dict[str, str]:
    """Return what fell due by month, whether it was charged or not."""
    due = (
        each for each in process.events(MonthlyFee.Due) if each.organization_id == organization_id
    )
    return {each.month: format_amount(len(each.link_ids) * each.fee_micros) for each in due}


def charges(process: Process, organization_id: UUID) -> list[Transaction]:
    """Return the transactions of monthly fees, oldest first."""
    process.projector.catch_up()
    wanted = EntryFilter(kind="monthly_link_fee")
    found, _ = process.read(process.transactions.page, organization_id, wanted, slice(0, 1_000))
    return found[::-1]


def charged(process: Process, organization_id: UUID) -> list[tuple[str, str]]:
    """Return month and amount of each charge in the order in which the wallet booked them."""
    return [(each.metadata["month"], each.amount) for each in charges(process, organization_id)]


def failures(process: Process) -> list[Failure]:
    """Return what the auditor finds wrong with the log and with every read model."""
    process.projector.catch_up()
    return process.audit().failures
