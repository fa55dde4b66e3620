"""A standby takes over, with or without the newest commits; processes begin anew by themselves.

The log is never wrong afterwards: it may be shorter, and then it says so.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

from app.processes.lives import Lives
from domain.accounts.organization import Organization
from domain.accounts.wallet import Wallet, wallet_id
from domain.cause import Clock, utc_now
from domain.errors import ServiceUnavailable
from domain.lookups.single import LookupResult, NumberLookup
from projections.engine.database import is_outage
from tests.app.adapters.pair import Pair
from tests.installation import Installation, Process, wait_until

GAPS = """
    SELECT originator_id FROM log_events GROUP BY originator_id
    HAVING max(originator_version) <> count(*) OR min(originator_version) <> 1
"""
COMES_BACK_S = 15.0
OTHERS = 6

Seen = dict[int, tuple[UUID, int]]

pytestmark = pytest.mark.timeout(120)  # Two servers, and base backups.


@pytest.fixture(scope="module")
def servers() -> Iterator[Pair]:
    with Pair() as pair:
        yield pair


@pytest.fixture
def pair(servers: Pair) -> Pair:
    """A primary and its standby, restored if an earlier test has changed them."""
    servers.restore()
    return servers


@pytest.fixture
def installation(tmp_path: Path, pair: Pair) -> Iterator[Installation]:
    with psycopg.connect(pair.primary.url(), autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    made = Installation(tmp_path, DATABASE_URL=pair.url)
    yield made
    made.close()


class Alive(Lives):
    """A process as it runs: at a new server it begins anew."""

    now: Process


Begins = Callable[..., Alive]


@pytest.fixture
def begins(installation: Installation) -> Iterator[Begins]:
    made: list[Alive] = []

    def begin(clock: Clock = utc_now) -> Alive:
        made.append(Alive(installation.process(clock)))
        made[-1].start()
        return made[-1]

    yield begin
    for each in made:
        each.stop()


def spend(alive: Alive, organization: UUID, price_micros: int = 100_000) -> LookupResult:
    return alive.now.look_up(organization, price_micros=price_micros)


def insist(call: Callable[[], object]) -> None:
    """Repeat a call until a server takes writes, as a client of the service would."""

    def done() -> bool:
        try:
            call()
        except Exception as error:
            if is_outage(error):
                return False
            raise
        return True

    wait_until(done, COMES_BACK_S)


def settled(*processes: Alive) -> None:
    """Wait until each has begun anew where it must, for nothing has told it of the new server."""
    for each in processes:

        def is_there(each: Alive = each) -> bool:
            try:
                each.now.log.head()
            except ServiceUnavailable:
                return False
            return not each.now.log.is_over

        wait_until(is_there, COMES_BACK_S)


def everything(process: Process) -> Seen:
    """Read the log as a follower does; return the event at each position."""
    found: Seen = {}
    while batch := process.log.read(max(found, default=0), 500):
        for each in batch:
            assert isinstance(each.event.originator_id, UUID)
            found[each.position] = (each.event.originator_id, each.event.originator_version)
    return found


def check(process: Process, before: Seen) -> list[str]:
    """Fail unless the log is whole; return the losses that it knows."""
    process.projector.catch_up()
    after = everything(process)
    assert all(before[position] == after[position] for position in before.keys() & after.keys())
    with process.views.reading() as connection:
        assert connection.exec_driver_sql(GAPS).all() == []
    report = process.audit()
    assert report.failures == []
    return [loss.reason for loss in report.losses]


def balances(process: Process, organization: UUID) -> tuple[int, int, int]:
    """Return the balance as the ledger adds up, as it can be spent, and as it is shown."""
    entries = [
        each
        for each in process.log.history(wallet_id(organization))
        if isinstance(each, Wallet.Moved)
    ]
    signed = (-1 if isinstance(each, Wallet.Charged) else 1 for each in entries)
    total = sum(sign * each.amount_micros for sign, each in zip(signed, entries, strict=True))
    shown = process.ask(process.wallets.get, organization)
    assert shown is not None
    return (
        total,
        process.log.get(Wallet, wallet_id(organization)).balance_micros,
        (shown.balance_micros),
    )


def test_a_wallet_goes_on_from_the_log_of_the_new_server_and_followers_with_it(
    pair: Pair, begins: Begins
) -> None:
    """Another process has made just as much as was lost, so no version tells."""
    ours, theirs = begins(), begins()
    organization = ours.now.organization("10.00")
    spend(theirs, organization)
    pair.lose_sight()
    for _ in range(6):
        spend(ours, organization, 1_000_000)
    follow(ours)
    before = everything(ours.now)
    pair.fail_over()
    for _ in range(OTHERS):
        insist(lambda: spend(theirs, organization))
    insist(lambda: spend(ours, organization))
    expected = 9_900_000 - (OTHERS + 1) * 100_000
    assert balances(ours.now, organization) == (expected, expected, expected)
    follow(ours)
    places = {each.position for each in ours.now.positions.all(ours.now.views).values()}
    assert places == {ours.now.log.head()}
    assert len(check(ours.now, before)) == 1


def test_an_aggregate_that_was_read_before_the_loss_is_not_appended_to(
    pair: Pair, begins: Begins
) -> None:
    """Another event stands at the place of the one that was lost, so no version tells."""
    ours, theirs = begins(), begins()
    organization = ours.now.organization("")
    pair.lose_sight()
    lost = ours.now.log.get(Organization, organization)
    lost.change_price(1, ours.now.cause())
    ours.now.log.append(lost)
    pair.fail_over()
    insist(lambda: change_price(theirs, organization, 2))
    lost.change_price(3, ours.now.cause())
    old = ours.now
    with pytest.raises(ServiceUnavailable):
        old.log.append(lost)
    settled(ours)
    assert ours.now is not old
    with pytest.raises(ServiceUnavailable):
        old.log.get(Organization, organization)
    change_price(ours, organization, 4)
    prices = [getattr(each, "price_micros", None) for each in ours.now.log.history(organization)]
    assert prices == [None, 2, 4]
    assert len(check(ours.now, {})) == 1


def test_nothing_is_lost_where_commits_wait_for_the_standby(pair: Pair, begins: Begins) -> None:
    process = begins()
    organization = process.now.organization("10.00")
    assert not process.now.views.waits_for_standby()
    pair.wait_for_standby("ANY 1 (*)")  # As docs/deployment.md says.
    assert process.now.views.waits_for_standby(), "then all that can be seen may be signed"
    answered = [spend(process, organization).lookup.id for _ in range(5)]
    before = everything(process.now)
    pair.fail_over()
    insist(lambda: spend(process, organization))
    assert balances(process.now, organization) == (9_400_000,) * 3
    assert all(process.now.log.find(NumberLookup, each) for each in answered)
    assert before.keys() <= everything(process.now).keys()
    assert check(process.now, before) == []


def follow(alive: Alive) -> None:
    """Let all followers of the log read what there is."""
    alive.now.projector.catch_up()
    while alive.now.dispatcher.step():
        pass


def change_price(alive: Alive, organization: UUID, price_micros: int) -> None:
    read = alive.now.log.get(Organization, organization)
    read.change_price(price_micros, alive.now.cause())
    alive.now.log.append(read)
