"""Deliveries are made in order, again after failures, until they end; nothing waits for them."""

from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace
from sqlalchemy import event

from app.processes.runtime import Runtime
from domain.errors import IdempotencyKeyReused, WebhookDisabled
from domain.webhooks import commands as webhook_commands
from domain.webhooks.commands import Changes, Failed
from domain.webhooks.endpoint import WebhookEndpoint
from domain.webhooks.ports import Delivery, Sent
from domain.webhooks.retries import DELAYS, DISABLED_AFTER, FAILURES_FREE, PAUSE_MAX, Health
from projections.stores.deliveries import LEASE
from tests.installation import Installation, Process, SetClock, on_sqlite, sqlite_only
from tests.support.erasing import erase_months
from tests.workers.webhooks.lab import DOWN, GONE, OK, Lab, Script, work_of
from workers.webhooks import RETENTION, SLOTS

WRONG = Sent(500, None, 5)


@pytest.fixture
def lab(process: Process) -> Lab:
    made = Lab(process)
    made.plan()
    return made


@pytest.fixture
def owner(lab: Lab) -> UUID:
    return lab.process.organization()


@pytest.fixture
def endpoint(lab: Lab, owner: UUID) -> UUID:
    return lab.endpoint(owner)


def happen(lab: Lab, owner: UUID, *references: str) -> None:
    """Let something be told of each."""
    for each in references:
        lab.process.deposit(owner, "1.00", each)
    lab.plan()


def one(lab: Lab, owner: UUID, endpoint: UUID) -> Delivery:
    [found] = lab.deliveries(owner, endpoint)
    return found


def is_disabled(lab: Lab, endpoint: UUID) -> str | None:
    disabled = lab.process.log.get(WebhookEndpoint, endpoint).disabled
    return None if disabled is None else disabled.reason


def test_a_failure_is_tried_again_by_the_schedule_with_the_same_id_and_then_given_up(
    lab: Lab, owner: UUID, endpoint: UUID, clock: SetClock
) -> None:
    lab.sender.always = WRONG
    happen(lab, owner, "a")
    for delay in DELAYS:
        lab.deliver()
        due_at = one(lab, owner, endpoint).next_attempt_at
        assert due_at == clock() + delay
        clock.now = due_at - timedelta(microseconds=1)
        count = len(lab.sender.attempts)
        lab.work.deliver(owner, endpoint)
        assert len(lab.sender.attempts) == count
        clock.now = due_at
    lab.deliver()
    ended = one(lab, owner, endpoint)
    assert (ended.status, ended.attempts, ended.next_attempt_at) == ("failed", 10, None)
    assert len({each.id for each in lab.sender.attempts}) == 1
    assert sum(DELAYS, timedelta()) > timedelta(days=3)


def test_410_disables_at_once_and_cancels_what_waits(lab: Lab, owner: UUID, endpoint: UUID) -> None:
    other = lab.endpoint(owner)
    lab.plan()
    lab.sender.always = GONE
    happen(lab, owner, "a", "b")
    lab.work.deliver(owner, endpoint)
    assert is_disabled(lab, endpoint) == "gone"
    assert [each.status for each in lab.deliveries(owner, endpoint)] == ["failed", "cancelled"]
    assert [each.status for each in lab.deliveries(owner, other)] == ["pending"] * 2
    assert len(lab.sender.attempts) == 1


@pytest.mark.any_database
def test_410_of_an_address_that_was_changed_meanwhile_disables_nothing(
    lab: Lab, owner: UUID, endpoint: UUID, clock: SetClock
) -> None:
    def move() -> None:
        lab.sender.meanwhile = int
        clock.forward(seconds=1)
        changes = Changes(url="https://b.example")
        lab.process.webhooks.change(
            lab.process.webhooks.get(owner, endpoint), changes, lab.process.cause()
        )

    lab.sender.answers, lab.sender.meanwhile = [GONE], move
    happen(lab, owner, "a")
    lab.work.deliver(owner, endpoint)
    assert is_disabled(lab, endpoint) is None
    clock.forward(seconds=5)
    lab.deliver()
    assert one(lab, owner, endpoint).status == "delivered"
    assert lab.sender.attempts[-1].url == "https://b.example"


def test_seven_days_of_failures_without_a_success_disable(
    lab: Lab, owner: UUID, endpoint: UUID, clock: SetClock, caplog: pytest.LogCaptureFixture
) -> None:
    lab.sender.always = DOWN
    began = clock()
    for hour in range(0, 24 * 8, 12):
        clock.now = began + timedelta(hours=hour)
        happen(lab, owner, f"d-{hour}")
        lab.deliver()
        if is_disabled(lab, endpoint):
            break
    assert is_disabled(lab, endpoint) == "failing"
    assert clock() - began == DISABLED_AFTER
    assert f"{endpoint} of {owner} is disabled: failing" in caplog.text
    assert "a.example" not in caplog.text
    lab.plan()
    assert {each.status for each in lab.deliveries(owner, endpoint)} <= {"failed", "cancelled"}
    cause = lab.process.cause()
    lab.process.webhooks.change(
        lab.process.webhooks.get(owner, endpoint), Changes(enabled=True), cause
    )
    clock.forward(minutes=2)
    happen(lab, owner, "later")
    lab.deliver()
    assert is_disabled(lab, endpoint) is None  # The failures of before do not count.


@pytest.mark.any_database
def test_a_clock_that_jumps_ahead_disables_no_endpoint(
    lab: Lab, owner: UUID, endpoint: UUID, clock: SetClock
) -> None:
    del lab.process.cut_off
    lab.process.monotonic, lab.sender.always = lambda: 0.0, DOWN
    lab.process.cut_off.live()
    lab.work = work_of(lab.process, lab.sender, lab.bells)
    happen(lab, owner, "before")
    lab.deliver()
    clock.forward(days=8)
    happen(lab, owner, "at the jump")
    lab.deliver()
    assert is_disabled(lab, endpoint) is None


@pytest.mark.any_database
def test_one_success_begins_the_seven_days_anew(
    lab: Lab, owner: UUID, endpoint: UUID, clock: SetClock
) -> None:
    for day in range(16):
        lab.sender.always = OK if day == 6 else DOWN
        happen(lab, owner, f"d-{day}")
        lab.deliver()
        assert is_disabled(lab, endpoint) == ("failing" if day >= 14 else None)
        clock.forward(days=1)


@pytest.mark.any_database
@pytest.mark.parametrize("days", [6, 7])
def test_a_failure_that_ends_behind_a_success_forgets_nothing_of_it(
    lab: Lab, owner: UUID, endpoint: UUID, clock: SetClock, days: int
) -> None:
    lab.sender.answers = [WRONG]
    happen(lab, owner, "a")
    lab.work.deliver(owner, endpoint)
    clock.forward(days=days)
    happen(lab, owner, "b")

    def succeed() -> None:
        lab.sender.meanwhile = int
        lab.sender.answers = [OK, WRONG]
        work_of(lab.process, lab.sender).deliver(owner, endpoint)

    lab.sender.meanwhile = succeed
    lab.work.deliver(owner, endpoint)
    assert is_disabled(lab, endpoint) is None
    lab.sender.answers, lab.sender.always = [], WRONG
    clock.forward(days=2)
    lab.deliver()
    assert is_disabled(lab, endpoint) is None


def test_first_attempts_are_in_order_per_stream_and_a_repeat_holds_up_nothing(
    installation: Installation, lab: Lab, owner: UUID, endpoint: UUID, clock: SetClock
) -> None:
    happen(lab, owner, "a", "b", "c")
    other = installation.process(clock)
    seen: list[Delivery] = []

    def meanwhile() -> None:
        """While the first is under way nobody may begin the second of the same wallet."""
        lab.sender.meanwhile = int
        taken = other.webhook_deliveries.claim(endpoint, clock(), SLOTS)
        assert taken is None
        seen.extend(lab.deliveries(owner, endpoint))

    lab.sender.answers, lab.sender.meanwhile = [WRONG], meanwhile
    for _ in range(3):
        lab.work.deliver(owner, endpoint)
    positions = [each.data["position"] for each in lab.sender.attempts]
    assert positions == [each.position for each in seen]
    clock.forward(seconds=5)
    lab.deliver()
    assert lab.sender.attempts[3].id == lab.sender.attempts[0].id
    assert {each.status for each in lab.deliveries(owner, endpoint)} == {"delivered"}


def test_an_endpoint_has_few_at_once_and_repeats_half_of_them(
    lab: Lab, endpoint: UUID, owner: UUID, clock: SetClock
) -> None:
    store = lab.process.webhook_deliveries
    asked = [
        lab.process.webhooks.test(lab.process.webhooks.get(owner, endpoint), lab.process.cause())
        for _ in range(9)
    ]
    lab.plan()
    in_hand = [store.claim(endpoint, clock(), SLOTS) for _ in range(5)]
    taken = [each for each in in_hand if each is not None]
    assert len(taken) == SLOTS
    assert [each.has_more for each in taken] == [True] * SLOTS
    assert {each.delivery.id for each in taken} <= {*asked}
    for each in taken:
        failed = replace(each.delivery, attempts=1, next_attempt_at=clock())
        assert store.settle(each, failed, each.health, clock())
    again = [store.claim(endpoint, clock(), SLOTS) for _ in range(SLOTS)]
    assert sorted(each.delivery.attempts for each in again if each is not None) == [0, 0, 1, 1]


@pytest.mark.parametrize("dies", [on_sqlite("in the call"), "after the call"])
def test_an_attempt_of_a_killed_worker_is_made_again_with_the_same_id(  # noqa: PLR0913  # Fixtures are named one by one.
    installation: Installation,
    lab: Lab,
    owner: UUID,
    endpoint: UUID,
    clock: SetClock,
    monkeypatch: pytest.MonkeyPatch,
    dies: str,
) -> None:
    def die(*_: object) -> None:
        raise SystemExit

    happen(lab, owner, "a")
    with monkeypatch.context() as patch:
        if dies == "in the call":
            lab.sender.meanwhile = die  # type: ignore[assignment]  # It does not return.
        else:
            patch.setattr(lab.process.webhook_deliveries, "settle", die)
        with pytest.raises(SystemExit):
            lab.work.deliver(owner, endpoint)
    successor = installation.process(clock)
    sender = Script()
    work = work_of(successor, sender)
    work.deliver(owner, endpoint)
    assert sender.attempts == []  # It may still be under way.
    clock.forward(seconds=LEASE.total_seconds())
    work.deliver(owner, endpoint)
    assert [each.id for each in sender.attempts] == [lab.sender.attempts[0].id]
    assert one(lab, owner, endpoint).status == "delivered"


def test_a_worker_that_was_taken_over_writes_nothing(
    lab: Lab, owner: UUID, endpoint: UUID, clock: SetClock
) -> None:
    happen(lab, owner, "a")
    store = lab.process.webhook_deliveries
    stale = store.claim(endpoint, clock(), SLOTS)
    assert stale is not None
    clock.forward(seconds=LEASE.total_seconds())
    taken = store.claim(endpoint, clock(), SLOTS)
    assert taken is not None
    late = replace(stale.delivery, attempts=1, status="failed", next_attempt_at=None)
    assert not store.settle(stale, late, stale.health, clock())
    done = replace(taken.delivery, attempts=1, status="delivered", next_attempt_at=None)
    assert store.settle(taken, done, taken.health, clock())
    assert not store.settle(stale, late, stale.health, clock())
    assert one(lab, owner, endpoint).status == "delivered"


def test_who_looked_at_the_clock_before_another_took_a_delivery_leaves_it_to_that_one(
    lab: Lab, owner: UUID, endpoint: UUID, clock: SetClock
) -> None:
    happen(lab, owner, "a")
    clock.forward(minutes=1)
    store = lab.process.webhook_deliveries
    assert store.claim(endpoint, clock(), SLOTS) is not None
    assert store.claim(endpoint, clock() - timedelta(milliseconds=5), SLOTS) is None
    assert store.claim(endpoint, clock() - timedelta(seconds=5), SLOTS) is None


@pytest.mark.any_database
def test_a_worker_that_dies_after_it_disabled_asks_once_more_and_ends_it(
    lab: Lab, owner: UUID, endpoint: UUID, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise SystemExit

    lab.sender.always = GONE
    happen(lab, owner, "a")
    with monkeypatch.context() as patch:
        patch.setattr(lab.process.webhook_deliveries, "settle", die)
        with pytest.raises(SystemExit):
            lab.work.deliver(owner, endpoint)
    clock.forward(seconds=LEASE.total_seconds())
    lab.deliver()
    assert is_disabled(lab, endpoint) == "gone"
    assert one(lab, owner, endpoint).status == "cancelled"
    assert len(lab.sender.attempts) == 1


def test_an_endpoint_that_keeps_failing_rests_as_a_whole_for_a_minute_at_most(
    lab: Lab, owner: UUID, endpoint: UUID, clock: SetClock
) -> None:
    lab.sender.always = WRONG
    happen(lab, owner, *map(str, range(FAILURES_FREE + 20)))
    pauses = []
    while len(pauses) < 12:
        lab.deliver()
        count, began = len(lab.sender.attempts), clock()
        while len(lab.sender.attempts) == count:
            clock.forward(seconds=1)
            lab.work.deliver(owner, endpoint)
        pauses.append(clock() - began)
    assert len(lab.sender.attempts) >= FAILURES_FREE
    assert max(pauses) == PAUSE_MAX
    clock.forward(milliseconds=-5)  # A machine whose clock is behind leaves it alone as well.
    assert lab.process.webhook_deliveries.claim(endpoint, clock(), SLOTS) is None
    assert lab.process.webhook_deliveries.due(clock()) == []
    clock.forward(milliseconds=5)
    lab.sender.always = OK
    clock.forward(seconds=60)
    lab.deliver()
    assert {each.status for each in lab.deliveries(owner, endpoint)} == {"delivered"}


@pytest.mark.any_database
def test_a_redelivery_for_another_endpoint_than_that_of_the_delivery_does_nothing(
    lab: Lab, owner: UUID, endpoint: UUID
) -> None:
    other = lab.endpoint(owner, events=["job.finished"])
    happen(lab, owner, "a")
    lab.deliver()
    told = one(lab, owner, endpoint).id
    lab.process.webhooks.redeliver(
        lab.process.webhooks.get(owner, other), told, None, lab.process.cause()
    )
    lab.settle()
    assert len(lab.sender.attempts) == 1


@pytest.mark.parametrize("change", [on_sqlite("disable"), on_sqlite("delete"), "erase"])
def test_what_waits_for_an_endpoint_that_is_told_nothing_any_more_is_cancelled(
    lab: Lab, owner: UUID, endpoint: UUID, change: str
) -> None:
    happen(lab, owner, "a", "b")
    webhooks, cause = lab.process.webhooks, lab.process.cause()
    assert not lab.process.webhook_deliveries.cancel(endpoint, cause.at - timedelta(minutes=1))
    match change:
        case "disable":
            webhooks.change(webhooks.get(owner, endpoint), Changes(enabled=False), cause)
        case "delete":
            webhooks.delete(webhooks.get(owner, endpoint), cause)
        case _:
            erase_months(lab.process.vault, "z", owner)
    lab.deliver()
    assert [each.status for each in lab.deliveries(owner, endpoint)] == ["cancelled"] * 2
    assert lab.sender.attempts == []


def test_thirty_days_are_kept(lab: Lab, owner: UUID, endpoint: UUID, clock: SetClock) -> None:
    happen(lab, owner, "a")
    lab.deliver()
    clock.forward(days=1)
    happen(lab, owner, "b")
    store = lab.process.webhook_deliveries
    assert store.forget(clock() - RETENTION) == 0
    clock.forward(days=29)
    assert store.forget(clock() - RETENTION) == 0
    clock.forward(seconds=1)
    assert store.forget(clock() - RETENTION) == 1
    assert one(lab, owner, endpoint).status == "pending"
    clock.forward(days=1)
    assert store.forget(clock() - RETENTION) == 1
    assert store.due(clock()) == []


@sqlite_only("PostgreSQL chooses by the size of tables")
def test_a_long_backlog_is_neither_sorted_for_a_choice_nor_read_for_a_count(
    lab: Lab, owner: UUID, endpoint: UUID, clock: SetClock
) -> None:
    happen(lab, owner, "a")
    store, engine = lab.process.webhook_deliveries, lab.process.views.engine
    asked: list[tuple[str, Any]] = []

    @event.listens_for(engine, "before_cursor_execute")
    def keep(*facts: Any) -> None:
        if facts[2].startswith("SELECT") and "webhook_deliveries" in facts[2]:
            asked.append((facts[2], facts[3]))

    store.claim(endpoint, clock(), SLOTS)
    store.page(owner, endpoint, None, slice(0, 1))
    store.backlog()
    event.remove(engine, "before_cursor_execute", keep)
    with lab.process.views.reading() as connection:
        plans = [
            str([*connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {told}", values)])
            for told, values in asked
        ]
    assert len(plans) == 6
    for told in plans:
        assert "TEMP B-TREE" not in told
        assert "SCAN webhook_deliveries'" not in told
    assert "COVERING INDEX webhook_deliveries_newest" in plans[2]


def test_the_beat_rings_for_what_is_due_and_for_nothing_else(
    lab: Lab, owner: UUID, endpoint: UUID, clock: SetClock
) -> None:
    lab.work.beat()
    assert lab.bells.taken() == []
    lab.sender.answers = [WRONG]
    happen(lab, owner, "a")
    lab.bells.taken()
    lab.work.beat()
    assert lab.bells.taken() == [(owner, endpoint)]
    lab.work.deliver(owner, endpoint)
    lab.work.beat()
    assert lab.bells.taken() == []
    clock.forward(seconds=5)
    lab.work.beat()
    assert lab.bells.taken() == [(owner, endpoint)]


def test_leases_and_pauses_from_before_a_clock_was_set_back_hold_up_nothing(
    lab: Lab, owner: UUID, endpoint: UUID, clock: SetClock
) -> None:
    happen(lab, owner, "a")
    clock.forward(hours=1)
    assert lab.process.webhook_deliveries.claim(endpoint, clock(), SLOTS) is not None
    clock.forward(hours=-1)
    lab.deliver()
    assert one(lab, owner, endpoint).status == "delivered"


@pytest.mark.parametrize("failures", [0, on_sqlite(1), 2, 9])
def test_what_a_clock_that_was_set_back_has_planned_waits_no_longer_than_its_pause(
    lab: Lab, owner: UUID, endpoint: UUID, clock: SetClock, failures: int
) -> None:
    purge = partial(Runtime._purge, Runtime(lab.process, {"clock"}))  # noqa: SLF001  # Instead of a minute.
    pause = (timedelta(0), *DELAYS)[failures]
    clock.forward(hours=3)
    lab.sender.always = WRONG
    happen(lab, owner, "a")
    for count in range(failures):
        lab.deliver()
        if count + 1 < failures:
            clock.now += DELAYS[count]
    planned = clock() + pause
    clock.forward(hours=-3)
    assert one(lab, owner, endpoint).next_attempt_at == planned
    assert lab.process.webhook_deliveries.due(clock()) == []
    purge()
    assert one(lab, owner, endpoint).next_attempt_at == clock() + pause
    lab.sender.always = OK
    clock.now += pause
    lab.deliver()
    assert one(lab, owner, endpoint).status == "delivered"
    assert len(lab.sender.attempts) == failures + 1


def test_failures_by_a_clock_that_was_set_back_begin_when_that_is_noticed(clock: SetClock) -> None:
    ahead = Health(0, None).after(clock() + timedelta(hours=3), is_success=False)
    assert ahead.after(clock(), is_success=False) == Health(2, clock())


@sqlite_only("PostgreSQL chooses by the size of tables")
def test_what_is_planned_is_put_right_along_the_index(
    lab: Lab, owner: UUID, endpoint: UUID, clock: SetClock
) -> None:
    happen(lab, owner, "a")
    asked: list[tuple[str, Any]] = []

    @event.listens_for(lab.process.views.engine, "before_cursor_execute")
    def keep(*facts: Any) -> None:
        if "webhook_deliveries" in facts[2]:
            asked.append((facts[2], facts[3]))

    lab.process.webhook_deliveries.put_right(clock() - timedelta(hours=3))
    event.remove(lab.process.views.engine, "before_cursor_execute", keep)
    assert one(lab, owner, endpoint).next_attempt_at == clock() - timedelta(hours=3)
    with lab.process.views.reading() as connection:
        for told, values in asked:
            plan = str([*connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {told}", values)])
            assert "webhook_deliveries_due (endpoint_id=? AND next_attempt_at>" in plan
    assert len(asked) == 4


def fail_all(lab: Lab, owner: UUID, endpoint: UUID) -> list[UUID]:
    """Let all deliveries but one have failed, and the last be cancelled; return their ids."""
    ids, store = (
        [each.id for each in lab.deliveries(owner, endpoint)],
        lab.process.webhook_deliveries,
    )
    rows = store._rows  # noqa: SLF001  # Instead of four days.
    with lab.process.views.writing() as connection:
        connection.execute(rows.update().values(status="failed"))
        cancelled = rows.update().where(rows.c.id == ids[-1]).values(status="cancelled")
        connection.execute(cancelled)
    return ids


@pytest.mark.any_database
def test_what_has_failed_or_was_cancelled_since_a_moment_is_told_again(
    lab: Lab, owner: UUID, endpoint: UUID, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    process, commands = lab.process, lab.process.webhooks
    for reference in ("a", "b", "c", "d"):
        clock.forward(minutes=1)
        process.deposit(owner, "1.00", reference)
        lab.settle()
    since = clock.now - timedelta(minutes=2)
    first, *told = fail_all(lab, owner, endpoint)
    lab.sender.attempts.clear()
    find = partial(process.webhook_deliveries.undelivered, owner, endpoint, since)
    failed = Failed(since, find)
    monkeypatch.setattr(webhook_commands, "REDELIVERED_MAX", 2)

    def ask(key: str, failed: Failed = failed) -> tuple[list[UUID], bool, bool]:
        found = commands.get(owner, endpoint)
        asked, replayed = commands.redeliver_failed(found, failed, key, process.cause())
        return asked.delivery_ids, asked.has_more, replayed

    assert ask("k-1") == (told[:2], True, False)
    assert ask("k-1") == (told[:2], True, True)
    with pytest.raises(IdempotencyKeyReused):
        ask("k-1", failed._replace(since=clock.now))
    lab.plan()
    assert lab.bells.taken() == [(owner, endpoint)], "they do not wait for a beat"
    lab.deliver()
    assert ask("k-1") == (told[:2], True, True)
    assert ask("k-2") == (told[2:], False, False)
    lab.settle()
    assert ask("k-3") == ([], False, False)
    assert [each.id for each in lab.sender.attempts] == [str(each) for each in told]
    left = {each.id for each in lab.deliveries(owner, endpoint) if each.status == "failed"}
    assert left == {first}
    commands.change(commands.get(owner, endpoint), Changes(enabled=False), process.cause())
    assert ask("k-1") == (told[:2], True, True)
    with pytest.raises(WebhookDisabled):
        ask("k-4")
