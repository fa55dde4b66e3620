"""What must be true at the end: of log, read models and money, and of every reply."""

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import UUID

import msgspec

from app.adapters.networks.simulated.subscription import Subscription
from domain.accounts.wallet import Deposit, Wallet
from domain.catalogue.plan import SIMULATED
from domain.ids import derive_id
from domain.links.esim import Esim
from domain.links.link import Link, Stage
from domain.links.lost_order import LostOrder
from domain.links.plan_change import PlanChange
from domain.log.aggregate import Root
from domain.lookups.bulk_job import BulkJob
from domain.lookups.single import NumberLookup
from projections.audit.auditor import verify
from tests.installation import PRICE_MICROS
from tests.simulation.customers import Customers, deposited, outcome_of
from tests.simulation.mirror import differences
from tests.simulation.world import World
from tests.workers.link_checks import Books, is_cancelled

if TYPE_CHECKING:
    from tests.simulation.simulation import Simulation

EVENTS_MAX = 100_000
INTENTS = (Link.EndpointRequested, Link.OrderRequested)
ENDPOINTS = "SELECT document FROM simulated_endpoints WHERE NOT is_removed"

R = TypeVar("R", bound=Root)


def check(world: World, run: "Simulation") -> None:
    """Expect that everything has ended well, even after all was asked for once more."""
    books, customers = Books(world.outside.log), run.customers
    check_log_and_views(world)
    check_calls(world, books)
    check_promises(books, customers)
    check_all_ended(world, books)
    for customer in range(1, len(customers.template.organizations) + 1):
        assert [*differences(partial(customers.get, customer))] == []
    paid, made = len(customers.roles.entries), set(customers.roles.streams)
    for request, *_ in [each for each in customers.told.values() if each[0].key is not None]:
        run.send(request)  # The customers tell whether the answer is another one.
    again = len(customers.roles.entries), set(customers.roles.streams)
    assert again == (paid, made), "an answer that was given again has cost something"


def has_ended(it: Any) -> bool:
    """Tell whether nothing is left to do for a link, a change, a job or a lost order."""
    match it:
        case Link():
            open_now = (it.open_call, it.open_change)
            return it.stage in {Stage.ACTIVE, Stage.ENDED} and not any(open_now)
        case LostOrder():
            return it.is_settled
        case Esim():
            return True
    return it.finished_at is not None


def is_unknown(it: Any) -> bool:
    """Tell whether the outcome of a call to the network is unknown for a link or a change."""
    intents = ("intent", "open_call")
    return not has_ended(it) and any(getattr(it, name, None) for name in intents)


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
        for each in there:  # One that was issued elsewhere lives before it is taken over.
            elsewhere = derive_id("imported_link", SIMULATED, each.iccid)
            holder = self._holders.get(each.iccid, elsewhere)
            assert str(holder) == each.reference, f"{each.iccid} is alive and {holder} holds it"


def check_log_and_views(world: World) -> None:
    parts = world.outside
    parts.projector.catch_up()
    report = verify(parts.source, parts.models)
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


def check_promises(books: Books, customers: Customers) -> None:
    """What a caller was told is in the log, paid for once, and was not taken back."""
    for request, named, body in customers.told.values():
        stream_id = UUID(named)
        if request.kind == "change":
            stream_id = customers.roles.streams[f"change {request.number}"][1]
        charged = books.entries(Wallet.Charged, str(stream_id))
        refunded = books.entries(Wallet.Refunded, str(stream_id))
        match request.kind:
            case "lookup":
                assert books.get(NumberLookup, stream_id).answer.price is not None, request
                assert (charged, refunded) == ([PRICE_MICROS], []), request
            case "job":
                job, count = books.get(BulkJob, stream_id), len(body["phone_numbers"])
                assert charged == [PRICE_MICROS * count], request
                completed, failed, cancelled = ended = outcome_of(job)
                assert sum(refunded) == PRICE_MICROS * (len(failed) + cancelled), request
                assert len(completed) + len(failed) + cancelled == count, request
                assert customers.cancelled.get(request.number, ended) == ended, request
            case "link":
                link = books.get(Link, stream_id)
                price = link.requested.plan.price_micros
                assert str(link.requested.plan.plan_id) == body["plan_id"], request
                assert link.stage is (Stage.ENDED if link.ended else Stage.ACTIVE), request
                paid = [price] if price else []
                back = paid if is_cancelled(link) else []
                assert (charged, refunded) == (paid, back), request
            case "change":
                change = books.get(PlanChange, stream_id)
                assert change.failure is None, request
                assert [str(each.plan.plan_id) for each in change.added] == body["add"], request
                assert [str(each.activation_id) for each in change.removed] == body["remove"]
                gone = is_cancelled(books.get(Link, change.link_id))
                assert refunded == (charged if gone else []), request
            case _:
                assert books.get(Deposit, stream_id).amount_micros == request.amount, request
                assert books.entries(Wallet.Deposited, deposited(request)) == [request.amount]


def check_all_ended(world: World, books: Books) -> None:
    """Every job, link and change has come to its end, and the network knows the same links."""
    links = books.every(Link)
    for each in chain(links, *map(books.every, (BulkJob, PlanChange, LostOrder))):
        assert has_ended(each), f"{each.TOPIC} {each.id} has not ended"
    world.check_network(books, links)
