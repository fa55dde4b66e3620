"""An organization that asks for lookups, and what it looks like from its log."""

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar
from uuid import UUID

from app.adapters.networks.simulated.network import SimulatedNetwork
from domain.accounts.wallet import Wallet, wallet_id
from domain.links.link import Link
from domain.links.network import LinkStatus
from domain.log.log import Recorded
from domain.lookups.single import LookupResult
from projections.audit.auditor import check_log
from tests.installation import PATIENCE_S, PRICE_MICROS, CountingProvider, Installation, Process

NUMBER = "+14155550100"
T = TypeVar("T")


class Customer:
    """One organization, seen from one process."""

    process: Process
    organization_id: UUID
    simulator: SimulatedNetwork

    @property
    def wallet(self) -> Wallet:
        return self.process.log.get(Wallet, wallet_id(self.organization_id))

    @property
    def balance_micros(self) -> int:
        return self.wallet.balance_micros

    def link(self, link_id: UUID) -> Link:
        return self.process.log.get(Link, link_id)

    def see(self, link_id: UUID, status: LinkStatus | None = None) -> None:
        """Append to a link what a read of it might: the network shows another status."""
        link = self.link(link_id)
        other: LinkStatus = "active" if link.status == "inactive" else "inactive"
        link.record_seen(status or other, None, None, self.process.cause())
        self.process.log.append(link)

    def at_network(self, link_id: UUID) -> LinkStatus:
        """Return the status that the network has."""
        return self.simulator.usage(self.link(link_id).endpoint, timeout_s=1.0).status

    def recorded(self) -> list[Recorded]:
        return self.process.log.read(0, 10_000)

    def events(self) -> Counter[str]:
        """Count the events of the log by the topic of their class."""
        return Counter(type(each.event).TOPIC for each in self.recorded())  # type: ignore[attr-defined]  # every event has one

    def check(self) -> None:
        assert check_log(self.process.log).failures == []


class Asker(Customer):
    """One organization; `process` and `other` are two processes of the same installation."""

    def __init__(
        self, installation: Installation, provider: CountingProvider, amount: str = "1.00"
    ) -> None:
        self.provider = provider
        self.process = installation.process(provider=provider)
        self.other = installation.process(provider=provider)
        self.organization_id = self.process.organization(amount)

    def look_up(
        self,
        number: str = NUMBER,
        key: str | None = None,
        price_micros: int = PRICE_MICROS,
        process: Process | None = None,
    ) -> LookupResult:
        return (process or self.process).look_up(self.organization_id, number, key, price_micros)

    def create(
        self,
        wanted: Sequence[str],
        key: str | None = None,
        price_micros: int = PRICE_MICROS,
        process: Process | None = None,
    ) -> tuple[UUID, bool]:
        asked = process or self.process
        job, replayed = asked.ask_for_job(self.organization_id, wanted, key, price_micros)
        return job.id, replayed


def all_at_once(count: int, ask: Callable[[int], T]) -> list[T | Exception]:
    """Let so many callers ask together; return what each got, or what it was refused with."""
    together = Barrier(count)

    def one(caller: int) -> T | Exception:
        together.wait(PATIENCE_S)
        try:
            return ask(caller)
        except Exception as error:  # noqa: BLE001  # The test tells which are right.
            return error

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def together(*calls: Callable[[], object]) -> None:
    """Make calls at the same moment, each by a thread of its own; raises what one of them does."""
    for outcome in all_at_once(len(calls), lambda caller: calls[caller]()):
        if isinstance(outcome, Exception):
            raise outcome
