"""What must be true at the end: of log, read models and money, and of every reply."""

from collections import Counter
from collections.abc import Iterator
from typing import TypeVar, cast
from uuid import UUID

import msgspec

from app.adapters.networks.simulated.subscription import Subscription
from domain.accounts.monthly_fee import MonthlyFee
from domain.accounts.wallet import Deposit, Wallet, wallet_id
from domain.links.link import Link, Stage
from domain.links.plan_change import PlanChange
from domain.log.aggregate import Root
from domain.lookups.bulk_job import BulkJob
from domain.lookups.number_lookup import NumberLookup
from projections.audit.auditor import verify
from tests.installation import PRICE_MICROS
from tests.simulation.customers import Customers, outcome_of
from tests.simulation.template import Template
from tests.simulation.world import World
from tests.workers.link_checks import Books, is_cancelled

EVENTS_MAX = 100_000
INTENTS = (Link.EndpointRequested, Link.OrderRequested)
ENDPOINTS = "SELECT document FROM simulated_endpoints WHERE NOT is_removed"

R = TypeVar("R", bound=Root)


def check(world: World, customers: Customers, template: Template) -> None:
    """Expect that everything has ended well, even after all work was asked for once more."""
    books = Books(world.outside.log)
    check_log_and_views(world)
    check_calls(world, books)
    check_money(books, template)
    check_promises(books, customers)
    check_all_ended(world, books)
    head = world.outside.log.head()
    told = [ask for ask in customers.ledger.keyed() if ask in customers.ledger.successes]
    for ask in told:  # The ledger tells whether the answer is another one.
        customers.send(ask)
    assert world.outside.log.head() == head, "an answer that was given again has cost something"


class Holders:
    """Who holds which eSIM, from the events alone; looked at after every step of a run."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._position = 0
        self._holders: dict[str, UUID] = {}

    def check(self) -> None:
        """Only the link that holds an eSIM may have an endpoint with it, and one at most.

        So no eSIM is given away while something can still come alive on it.
        """
        for recorded in self._world.outside.log.read(self._position, EVENTS_MAX):
            self._position, event = recorded.position, recorded.event
            if isinstance(event, (Link.EsimReserved, Link.Imported)):
                assert event.iccid not in self._holders, f"{event.iccid} is taken twice"
                self._holders[event.iccid] = cast("UUID", event.originator_id)
            elif isinstance(event, Link.EsimReleased):
                assert self._holders.pop(event.iccid) == event.originator_id
        with self._world.outside.stores.reading() as connection:
            documents = connection.exec_driver_sql(ENDPOINTS).scalars().all()
        there = [msgspec.json.decode(each, type=Subscription) for each in documents]
        assert len({each.reference for each in there}) == len(there), "a link has two endpoints"
        for each in there:
            holder = self._holders.get(each.iccid)
            assert str(holder) == each.reference, f"{each.iccid} is alive and {holder} holds it"


def check_log_and_views(world: World) -> None:
    parts = world.outside
    parts.projector.catch_up()
    report = verify(parts.log, parts.views, parts.positions, parts.models)
    assert report.failures == [], report.failures
    assert world.stopped == [], world.stopped


def check_calls(world: World, books: Books) -> None:
    """No worker calls the network without an intent that it alone has won."""
    for link in books.every(Link):
        intents = sum(
            isinstance(each, INTENTS) and each.originator_id == link.id for each in books.events
        )
        calls = sum(world.calls[call, str(link.id)] for call in ("create_endpoint", "order"))
        assert calls <= intents, f"link {link.id}: {calls} calls for {intents} intents"
    for change in books.every(PlanChange):
        intents = sum(
            isinstance(each, PlanChange.PlanAdditionStarted) and each.originator_id == change.id
            for each in books.events
        )
        references = [str(each.activation_id) for each in change.requested.additions]
        calls = sum(world.calls["add_plan", each] for each in references)
        assert calls <= intents, f"change {change.id}: {calls} calls for {intents} intents"


def check_money(books: Books, template: Template) -> None:
    """Each wallet holds, to the micro-unit, what was paid in minus what was bought."""
    worth: Counter[UUID] = Counter()
    for organization_id, amount_micros in _worth(books):
        worth[organization_id] += amount_micros
    for organization_id in template.organizations:
        wallet = books.get(Wallet, wallet_id(organization_id))
        assert wallet.balance_micros == worth[organization_id], (
            f"the wallet of {organization_id} has {wallet.balance_micros}, "
            f"not {worth[organization_id]}"
        )
        assert wallet.balance_micros >= 0


def _worth(books: Books) -> Iterator[tuple[UUID, int]]:
    """Yield the amounts paid in and, as negative amounts, the prices of what was bought."""
    adjusted = [each for each in books.events if isinstance(each, Wallet.Adjusted)]
    fees = [each.due for each in books.every(MonthlyFee) if each.is_charged]
    yield from ((each.organization_id, each.amount_micros) for each in books.every(Deposit))
    yield from ((each.organization_id, each.amount_micros) for each in adjusted)
    yield from ((each.organization_id, -each.price.amount_micros) for each in fees)
    yield from ((it.answer.organization_id, -PRICE_MICROS) for it in books.every(NumberLookup))
    for job in books.every(BulkJob):
        yield job.organization_id, -PRICE_MICROS * len(job.completed)
    for link in books.every(Link):
        bought = [] if is_cancelled(link) else [*link.activations.values()]
        yield from ((link.organization_id, -each.plan.price_micros) for each in bought)


def check_promises(books: Books, customers: Customers) -> None:
    """What a caller was told is in the log, paid for once, and was not taken back."""
    for ask, stream_id in customers.ledger.told:
        charged = books.entries(Wallet.Charged, str(stream_id))
        refunded = books.entries(Wallet.Refunded, str(stream_id))
        match ask.kind:
            case "lookup":
                assert books.get(NumberLookup, stream_id).answer.price is not None, ask
                assert (charged, refunded) == ([PRICE_MICROS], []), ask
            case "job":
                job = books.get(BulkJob, stream_id)
                assert charged == [PRICE_MICROS * len(ask.numbers)], ask
                completed, failed, cancelled = ended = outcome_of(job)
                assert sum(refunded) == PRICE_MICROS * (len(failed) + cancelled), ask
                assert len(completed) + len(failed) + cancelled == len(ask.numbers), ask
                assert customers.ledger.cancelled.get(stream_id, ended) == ended, ask
            case "link":
                link = books.get(Link, stream_id)
                price = link.requested.plan.price_micros
                assert link.requested.plan.plan_id == ask.plan_id, ask
                assert link.stage is (Stage.ENDED if link.ended else Stage.ACTIVE), ask
                paid = [price] if price else []
                assert (charged, refunded) == (paid, paid if is_cancelled(link) else []), ask
            case "change":
                change = books.get(PlanChange, stream_id)
                assert change.failure is None, ask
                assert [each.plan.plan_id for each in change.added] == [*ask.add], ask
                assert [each.activation_id for each in change.removed] == [*ask.remove], ask
                gone = is_cancelled(books.get(Link, change.link_id))
                assert refunded == (charged if gone else []), ask
            case _:
                assert books.get(Deposit, stream_id).amount_micros == ask.amount_micros, ask
                assert books.entries(Wallet.Deposited, ask.key or "") == [ask.amount_micros], ask


def check_all_ended(world: World, books: Books) -> None:
    """Every job, link and change has come to its end, and the network knows the same links."""
    for job in books.every(BulkJob):
        assert job.finished_at is not None, f"job {job.id} has not ended"
    links = books.every(Link)
    for link in links:
        assert link.stage in {Stage.ACTIVE, Stage.ENDED}, f"link {link.id} is {link.stage}"
        open_now = (link.status_intent, link.open_change, link.end_intent)
        assert not any(open_now), f"link {link.id}"
    for change in books.every(PlanChange):
        assert change.finished_at is not None, f"change {change.id} has not ended"
    world.check_network(books, links)
