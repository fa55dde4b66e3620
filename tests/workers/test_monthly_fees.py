"""A frozen fee is charged once, oldest month first, whatever dies, races or fails."""

import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from operator import attrgetter
from typing import Any, Literal, NamedTuple
from uuid import UUID, uuid4

import pytest

from domain.accounts.monthly_fee import MonthlyFee
from domain.cause import utc_now
from domain.errors import ServiceUnavailable
from projections.engine import consumer
from tests.faulty_network import Killed
from tests.installation import (
    Installation,
    Process,
    SetClock,
    on_sqlite,
    postgresql_only,
    timed,
    wait_until,
)
from tests.projections.looking import place_of
from tests.workers.fees import (
    activate,
    bill,
    charged,
    clock_at,
    customer,
    failures,
    fall_due,
    frozen,
    moment,
    set_fee,
    set_status,
)
from tests.workers.queueing import Queue
from workers.fees import FAILURES_MAX, PAUSE

FEBRUARY = [("2026-02", "1.50")]
clock = clock_at("2026-01-15 12:00")
other = timed


@pytest.fixture
def organization_id(process: Process) -> UUID:
    """An organization that owes 1.50 for February, which has begun."""
    registered = customer(process)
    process.time.now = moment("2026-02-01 00:01")
    return registered


def tick(process: Process, at: str) -> int:
    process.time.now = moment(at)
    return bill(process)


def test_missed_months_are_reckoned_each_as_of_its_own_first_instant(process: Process) -> None:
    organization_id = customer(process)
    process.time.now = moment("2026-02-20")
    activate(process, organization_id)
    process.time.now = moment("2026-03-20")
    set_fee(process, organization_id, "4")
    process.time.now = moment("2026-04-20")
    set_status(process, organization_id, "suspended")
    process.time.now = moment("2026-05-20")
    set_status(process, organization_id, "active")
    tick(process, "2026-06-02 09:00")
    assert charged(process, organization_id) == [
        ("2026-02", "1.50"),
        ("2026-03", "3.00"),
        ("2026-04", "8.00"),
        ("2026-06", "8.00"),
    ]


def test_a_short_balance_is_tried_again_a_day_later_and_not_before(process: Process) -> None:
    process.due_work.publisher = queue = Queue("billing")
    organization_id = customer(process, balance="0")
    tick(process, "2026-02-01 00:01")
    process.deposit(organization_id, "1.50")
    assert tick(process, "2026-02-01 23:59") == 0
    process.time.now = moment("2026-02-02 00:01") - timedelta(microseconds=1)
    process.due_work.beat()
    assert (bill(process), queue.taken()) == (0, [])
    process.time.forward(seconds=1)
    process.due_work.beat()
    assert queue.taken() == [()]
    assert tick(process, "2026-02-02 00:01") == 1
    assert charged(process, organization_id) == FEBRUARY


def test_a_later_month_is_frozen_at_its_time_and_waits_for_the_older_one(process: Process) -> None:
    organization_id = customer(process, fee="3", balance="1")
    tick(process, "2026-02-28 23:00")
    set_fee(process, organization_id, "1")
    tick(process, "2026-03-01 00:01")
    set_fee(process, organization_id, "9")
    owed = {"2026-02": "3.00", "2026-03": "1.00"}
    assert frozen(process, organization_id) == owed
    tick(process, "2026-03-02 00:01")
    assert charged(process, organization_id) == []
    process.deposit(organization_id, "2")
    tick(process, "2026-03-03 00:01")
    assert charged(process, organization_id) == [("2026-02", "3.00")]
    process.deposit(organization_id, "1")
    tick(process, "2026-03-04 00:01")
    assert charged(process, organization_id) == [*owed.items()]
    assert failures(process) == []


def test_what_is_owed_is_charged_though_the_organization_was_suspended_since(
    process: Process,
) -> None:
    organization_id = customer(process, balance="0")
    tick(process, "2026-02-01 00:01")
    set_status(process, organization_id, "suspended")
    process.deposit(organization_id, "1.50")
    tick(process, "2026-02-02 00:01")
    assert charged(process, organization_id) == FEBRUARY


def test_a_clock_that_goes_back_a_month_and_forth_again_charges_nothing_twice(
    process: Process,
) -> None:
    organization_id = customer(process)
    for at in ("2026-03-02", "2026-02-10", "2026-01-20", "2026-03-03"):
        tick(process, at)
    assert charged(process, organization_id) == [("2026-02", "1.50"), ("2026-03", "1.50")]


def test_a_round_has_bounds_and_those_who_cannot_pay_hold_up_nobody(process: Process) -> None:
    organizations = []
    for balance in ("0", "0", "9", "9", "9"):
        organizations.append(customer(process, balance=balance))
        process.time.forward(seconds=1)  # The oldest organization has the first turn.
    process.time.now = moment("2026-02-01 00:01")
    counts = []
    for _ in range(4):
        count = bill(process, most=2)
        counts.append((sum(len(frozen(process, each)) for each in organizations), count))
    assert counts == [(2, 0), (4, 2), (5, 1), (5, 0)]
    assert [charged(process, each) for each in organizations] == 2 * [[]] + 3 * [FEBRUARY]


@pytest.mark.each_database
@pytest.mark.slow
def test_however_many_cannot_pay_a_fee_is_found(process: Process) -> None:
    """A statement of PostgreSQL has 65,535 values at most, and one of SQLite 250,000 or fewer."""
    many = 260_000 if process.views.engine.dialect.name == "sqlite" else 66_000
    due = fall_due(process, customer(process), "2026-01")
    process.projector.catch_up()
    resting, look = {f"fee {each}" for each in range(many)}, process.due_list.fees
    (found,) = process.views.read(look, process.time(), resting, 9)
    assert found.id == due
    assert process.views.read(look, process.time(), resting | {found.owner}, 9) == []


def test_fees_are_charged_in_the_order_in_which_they_fell_due(process: Process) -> None:
    organizations = []
    for _ in range(4):
        organizations.append(customer(process))
        process.time.forward(seconds=1)
    first = [(each, "2026-01") for each in reversed(organizations)]
    for each in first:  # All at one moment.
        fall_due(process, *each)
    process.time.now = moment("2026-03-01 00:01")
    assert bill(process) == 12
    then = [(each, month) for each in organizations for month in ("2026-02", "2026-03")]
    order = [(each.organization_id, each.month) for each in process.events(MonthlyFee.Charged)]
    assert order == [*first, *then]


def test_what_is_settled_is_not_looked_at_again(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    customer(process)
    customer(process, fee="0")
    tick(process, "2026-02-01 00:01")

    for asked in ("history", "newest", "follow"):  # The head tells whether it is the same log.
        monkeypatch.setattr(process.log, asked, failing(AssertionError("nothing is due")))
    for _ in range(10):
        process.time.forward(days=2)
        process.monthly_fees.run()


def test_a_process_that_starts_again_looks_only_at_months_after_the_newest_fee(
    installation: Installation, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    customer(process)
    tick(process, "2026-05-01 00:01")
    later = installation.process(process.time)
    active_at, asked = later.links.active_at, list[str]()

    def watched(*of: Any) -> Sequence[UUID]:
        asked.append(f"{of[-1]:%Y-%m}")
        return active_at(*of)

    monkeypatch.setattr(later.links, "active_at", watched)
    bill(later)
    tick(later, "2026-06-01 00:01")
    assert asked == ["2026-06"]


def test_years_without_a_fee_are_asked_for_at_once(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    organization_id, log = customer(process, fee="0"), process.log.recorder
    read, asked = log.select_events, list[UUID]()
    monkeypatch.setattr(log, "select_events", lambda it, **of: asked.append(it) or read(it, **of))
    tick(process, "2036-02-01 00:01")
    assert asked == [organization_id]


def test_what_is_owed_is_told_to_operators_without_a_word_about_the_customer(
    process: Process, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "workers.fees")
    organization_id = customer(process, balance="0")
    tick(process, "2026-02-01 00:01")
    (told,) = caplog.messages
    assert told == (
        f"{organization_id} owes the fee of 2026-02: The wallet balance does not cover this charge:"
        " 1.50 USD is required, 0.00 USD is available."
    )
    process.deposit(organization_id, "2")
    tick(process, "2026-02-02 00:01")
    assert caplog.messages[1:] == [f"the fee of 2026-02 was charged to {organization_id}"]


class Kill(NamedTuple):
    """The end of a process, before or after a call, and what it leaves."""

    place: str
    when: Literal["before", "after"]
    is_frozen: bool
    is_charged: bool


def fee_of(process: Process, organization_id: UUID) -> MonthlyFee:
    return process.log.get(MonthlyFee, MonthlyFee.id_of(organization_id, "2026-02"))


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """What happens here is expected, so nothing is logged with a traceback."""
    yield
    assert [record for record in caplog.get_records("call") if record.exc_info] == []


@pytest.fixture
def run_other(other: Process, clock: SetClock) -> Callable[[], object]:
    """A function that gives the other process its tick, a moment later."""

    def run() -> None:
        clock.forward(seconds=3)  # Then a fee that is being charged is free for others.
        assert bill(other) == 1

    return run


@pytest.mark.each_database
@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(
    "place",
    [
        # What comes before a read or between reads does not depend on the database.
        *(
            pytest.param(each, marks=pytest.mark.any_database)
            for each in ("organizations.all", "links.active_at", "log.get")
        ),
        "log.append",
        "committer.commit",
    ],
)
def test_another_process_may_do_all_of_it_in_between(
    process: Process,
    organization_id: UUID,
    run_other: Callable[[], object],
    monkeypatch: pytest.MonkeyPatch,
    place: str,
) -> None:
    around(monkeypatch, process, place, before=run_other)
    bill(process)
    assert charged(process, organization_id) == FEBRUARY
    assert failures(process) == []


@pytest.mark.each_database
@pytest.mark.parametrize(
    "kill",
    [
        # Whoever dies before a call leaves what the call before it has left.
        on_sqlite(Kill("log.append", "before", is_frozen=False, is_charged=False)),
        Kill("log.append", "after", is_frozen=True, is_charged=False),
        on_sqlite(Kill("committer.commit", "before", is_frozen=True, is_charged=False)),
        Kill("committer.commit", "after", is_frozen=True, is_charged=True),
    ],
)
def test_a_process_that_is_killed_leaves_the_rest_to_the_next(
    process: Process,
    other: Process,
    organization_id: UUID,
    monkeypatch: pytest.MonkeyPatch,
    kill: Kill,
) -> None:
    around(monkeypatch, process, kill.place, **{kill.when: failing(Killed())})
    with pytest.raises(Killed):
        bill(process)
    assert frozen(other, organization_id) == (dict(FEBRUARY) if kill.is_frozen else {})
    assert charged(other, organization_id) == (FEBRUARY if kill.is_charged else [])
    process.time.forward(seconds=3)
    assert bill(other) == (0 if kill.is_charged else 1)
    assert charged(other, organization_id) == FEBRUARY
    assert failures(other) == []


@postgresql_only("a file has no clock of its own")
@pytest.mark.parametrize("ahead", [timedelta(days=40), timedelta(days=400)])
def test_a_worker_whose_clock_is_ahead_charges_no_month_early(
    installation: Installation, ahead: timedelta
) -> None:
    """The server's clock, which all share, has not seen that month begin."""
    right = installation.process()
    registered = customer(right)
    wrong = installation.process(lambda: utc_now() + ahead)
    assert bill(wrong) == 0
    assert frozen(right, registered) == {}


def test_a_server_whose_clock_is_ahead_has_nobody_charge_early(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = installation.process()
    registered = customer(process)
    told = utc_now() + timedelta(days=40)
    fall_due(process, registered, "2026-01")
    monkeypatch.setattr(process.views, "server_time", lambda: told)
    assert bill(process) == 0
    assert list(frozen(process, registered)) == ["2026-01"]


def test_an_unknown_outcome_is_settled_by_the_log(
    process: Process, organization_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    around(monkeypatch, process, "committer.commit", after=failing(ServiceUnavailable()))
    bill(process)
    process.time.now += PAUSE
    assert bill(process) == 0
    assert charged(process, organization_id) == FEBRUARY


def test_the_error_of_one_organization_stops_no_other_and_is_not_the_end(
    process: Process, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first, second, third = (customer(process) for _ in range(3))
    process.time.now = moment("2026-02-01 00:01")
    history, broken = process.log.history, [second]

    def fragile(stream_id: UUID) -> object:
        if stream_id in broken:
            message = "a bug"
            raise RuntimeError(message)
        return history(stream_id)

    monkeypatch.setattr(process.log, "history", fragile)
    assert bill(process) == 2
    assert charged(process, first) == charged(process, third) == FEBRUARY
    assert caplog.messages == [f"the monthly fee of {second} failed"]
    broken.clear()
    assert bill(process) == 1
    assert charged(process, second) == FEBRUARY


def test_a_fee_of_nobody_holds_up_nobody(
    process: Process, organization_id: UUID, caplog: pytest.LogCaptureFixture
) -> None:
    nobody = uuid4()
    fall_due(process, nobody, "2026-01")
    assert bill(process) == 1
    process.time.now = moment("2026-03-01 00:01")
    assert bill(process) == 1
    assert frozen(process, nobody) == {"2026-01": "0.000001"}
    assert list(frozen(process, organization_id)) == ["2026-02", "2026-03"]
    assert caplog.messages == []  # It is owed, and no error.


def test_a_log_that_is_gone_is_not_asked_for_every_organization(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    organizations = [customer(process) for _ in range(FAILURES_MAX + 2)]
    process.time.now = moment("2026-02-01 00:01")
    asked: list[UUID] = []

    def gone(stream_id: UUID) -> None:
        asked.append(stream_id)
        raise ServiceUnavailable

    with monkeypatch.context() as patch:
        patch.setattr(process.log, "history", gone)
        bill(process)
    assert len(asked) == FAILURES_MAX
    assert bill(process) == len(organizations)
    assert all(charged(process, each) == FEBRUARY for each in organizations)


@pytest.mark.parametrize("part", ["organizations", "links"])
def test_nothing_is_frozen_while_a_read_model_that_is_needed_has_stopped(
    process: Process,
    organization_id: UUID,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    part: str,
) -> None:
    caplog.set_level(logging.WARNING, "workers.fees")
    with monkeypatch.context() as patch:
        model = next(each for each in process.models if each.name == part)
        patch.setattr(model, "follow", failing(RuntimeError("a bug of this handler")))
        patch.setattr(consumer, "RETRY_MAX_S", 0.05)
        activate(process, organization_id)
        process.projector.catch_up()
        bill(process)
    assert caplog.messages[-1] == "monthly fees of 2026-02 wait for read models that stopped"
    fee_id = MonthlyFee.id_of(organization_id, "2026-02")
    assert process.log.find(MonthlyFee, fee_id) is None

    def goes_on() -> bool:
        process.projector.step()  # It tries a read model that stopped again by and by.
        return place_of(process, part).failure is None

    wait_until(goes_on)
    assert bill(process) == 1
    assert charged(process, organization_id) == FEBRUARY


def nothing() -> None:
    """Do nothing."""


def around(
    monkeypatch: pytest.MonkeyPatch,
    process: Process,
    place: str,
    *,
    before: Callable[[], object] = nothing,
    after: Callable[[], object] = nothing,
) -> None:
    """Call something once, around the next call of a method such as `log.append`."""
    part, call = place.split(".")
    owner = attrgetter(part)(process)
    real, pending = getattr(owner, call), [True]

    def called(*args: object, **kwargs: object) -> object:
        is_next = bool(pending)
        pending.clear()
        if is_next:
            before()
        answer = real(*args, **kwargs)
        if is_next:
            after()
        return answer

    monkeypatch.setattr(owner, call, called)


def failing(error: BaseException) -> Callable[..., object]:
    def fail(*_: object) -> None:
        raise error

    return fail
