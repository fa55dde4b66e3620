"""Deliveries are made in order, again after failures, until they end; nothing waits for them."""

from collections.abc import Callable
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
from domain.webhooks.deliveries import (
    DELAYS,
    DISABLED_AFTER,
    FAILURES_FREE,
    PAUSE_MAX,
    Delivery,
    Health,
    Sent,
)
from projections.stores.deliveries import LEASE
from tests.installation import Installation, Process, SetClock, on_sqlite, sqlite_only
from tests.support.erasing import erase_months
from tests.workers.webhooks.lab import DOWN, GONE, OK, Script, Told, work_of
from workers.webhooks import RETENTION, SLOTS

WRONG = Sent(500, None, 5)


@pytest.fixture
def lab(process: Process) -> Told:
    return Told(process)


def die(*_: object) -> None:
    raise SystemExit


def test_a_failure_is_tried_again_by_the_schedule_with_the_same_id_and_then_given_up(
    lab: Told,
) -> None:
    lab.sender.always = WRONG
    lab.happen("a")
    for delay in DELAYS:
        lab.deliver()
        due_at = lab.one.next_attempt_at
        assert due_at == lab.clock() + delay
        lab.clock.now = due_at - timedelta(microseconds=1)
        count = len(lab.sender.attempts)
        lab.try_one()
        assert len(lab.sender.attempts) == count
        lab.clock.now = due_at
    lab.deliver()
    ended = lab.one
    assert (ended.status, ended.attempts, ended.next_attempt_at) == ("failed", 10, None)
    assert len({each.id for each in lab.sender.attempts}) == 1
    assert sum(DELAYS, timedelta()) > timedelta(days=3)


def test_410_disables_at_once_and_cancels_what_waits(lab: Told) -> None:
    other = lab.endpoint(lab.owner)
    lab.plan()
    lab.sender.always = GONE
    lab.happen("a", "b")
    lab.try_one()
    assert lab.disabled == "gone"
    assert [each.status for each in lab.all] == ["failed", "cancelled"]
    assert [each.status for each in lab.deliveries(lab.owner, other)] == ["pending"] * 2
    assert len(lab.sender.attempts) == 1


def test_410_of_an_address_that_was_changed_meanwhile_disables_nothing(lab: Told) -> None:
    def move() -> None:
        lab.sender.meanwhile = int
        lab.clock.forward(seconds=1)
        lab.change(Changes(url="https://b.example"))

    lab.sender.answers, lab.sender.meanwhile = [GONE], move
    lab.happen("a")
    lab.try_one()
    assert lab.disabled is None
    lab.clock.forward(seconds=5)
    lab.deliver()
    assert lab.one.status == "delivered"
    assert lab.sender.attempts[-1].url == "https://b.example"


def test_seven_days_of_failures_without_a_success_disable(
    lab: Told, caplog: pytest.LogCaptureFixture
) -> None:
    lab.sender.always = DOWN
    began = lab.clock()
    for hour in range(0, 24 * 8, 12):
        lab.clock.now = began + timedelta(hours=hour)
        lab.happen(f"d-{hour}")
        lab.deliver()
        if lab.disabled:
            break
    assert lab.disabled == "failing"
    assert lab.clock() - began == DISABLED_AFTER
    assert f"{lab.hook} of {lab.owner} is disabled: failing" in caplog.text
    assert "a.example" not in caplog.text
    lab.plan()
    assert {each.status for each in lab.all} <= {"failed", "cancelled"}
    lab.change(Changes(enabled=True))
    lab.clock.forward(minutes=2)
    lab.happen("later")
    lab.deliver()
    assert lab.disabled is None  # The failures of before do not count.


def test_a_clock_that_jumps_ahead_disables_no_endpoint(lab: Told) -> None:
    del lab.process.cut_off
    lab.process.monotonic, lab.sender.always = lambda: 0.0, DOWN
    lab.process.cut_off.live()
    lab.work = work_of(lab.process, lab.sender, lab.bells)
    lab.happen("before")
    lab.deliver()
    lab.clock.forward(days=8)
    lab.happen("at the jump")
    lab.deliver()
    assert lab.disabled is None


def test_one_success_begins_the_seven_days_anew(lab: Told) -> None:
    for day in range(16):
        lab.sender.always = OK if day == 6 else DOWN
        lab.happen(f"d-{day}")
        lab.deliver()
        assert lab.disabled == ("failing" if day >= 14 else None)
        lab.clock.forward(days=1)


def test_a_test_that_fails_begins_no_seven_days(lab: Told) -> None:
    lab.sender.answers = [DOWN, WRONG]
    lab.process.webhooks.test(lab.its, lab.process.cause())
    lab.settle(), lab.clock.forward(days=8)
    lab.happen("a"), lab.deliver()
    assert (lab.disabled, lab.all[-1].status) == (None, "pending")


@pytest.mark.parametrize("days", [6, 7])
def test_a_failure_that_ends_behind_a_success_forgets_nothing_of_it(lab: Told, days: int) -> None:
    lab.sender.answers = [WRONG]
    lab.happen("a")
    lab.try_one()
    lab.clock.forward(days=days)
    lab.happen("b")

    def succeed() -> None:
        lab.sender.meanwhile = int
        lab.sender.answers = [OK, WRONG]
        work_of(lab.process, lab.sender).deliver(lab.owner, lab.hook)

    lab.sender.meanwhile = succeed
    lab.try_one()
    assert lab.disabled is None
    lab.sender.answers, lab.sender.always = [], WRONG
    lab.clock.forward(days=2)
    lab.deliver()
    assert lab.disabled is None


@pytest.mark.each_database
def test_first_attempts_are_in_order_per_stream_and_a_repeat_holds_up_nothing(
    installation: Installation, lab: Told
) -> None:
    lab.happen("a", "b", "c")
    other = installation.process(lab.clock)
    seen: list[Delivery] = []

    def meanwhile() -> None:
        """While the first is under way nobody may begin the second of the same wallet."""
        lab.sender.meanwhile = int
        taken = other.webhook_deliveries.claim(lab.hook, lab.clock(), SLOTS)
        assert taken is None
        seen.extend(lab.all)

    lab.sender.answers, lab.sender.meanwhile = [WRONG], meanwhile
    for _ in range(3):
        lab.try_one()
    positions = [each.data["position"] for each in lab.sender.attempts]
    assert positions == [each.position for each in seen]
    lab.clock.forward(seconds=5)
    lab.deliver()
    assert lab.sender.attempts[3].id == lab.sender.attempts[0].id
    assert {each.status for each in lab.all} == {"delivered"}


@pytest.mark.each_database
def test_an_endpoint_has_few_at_once_and_repeats_half_of_them(lab: Told) -> None:
    asked = [lab.process.webhooks.test(lab.its, lab.process.cause()) for _ in range(9)]
    lab.plan()
    in_hand = [lab.claim() for _ in range(5)]
    taken = [each for each in in_hand if each is not None]
    assert len(taken) == SLOTS
    assert [each.has_more for each in taken] == [True] * SLOTS
    assert {each.delivery.id for each in taken} <= {*asked}
    for each in taken:
        failed = replace(each.delivery, attempts=1, next_attempt_at=lab.clock())
        assert lab.store.settle(each, failed, each.health, lab.clock())
    again = [lab.claim() for _ in range(SLOTS)]
    assert sorted(each.delivery.attempts for each in again if each is not None) == [0, 0, 1, 1]


@pytest.mark.parametrize("dies", [on_sqlite("in the call"), "after the call"])
def test_an_attempt_of_a_killed_worker_is_made_again_with_the_same_id(
    installation: Installation, lab: Told, monkeypatch: pytest.MonkeyPatch, dies: str
) -> None:
    lab.happen("a")
    with monkeypatch.context() as patch:
        if dies == "in the call":
            lab.sender.meanwhile = die  # type: ignore[assignment]  # It does not return.
        else:
            patch.setattr(lab.store, "settle", die)
        with pytest.raises(SystemExit):
            lab.try_one()
    sender = Script()
    work = work_of(installation.process(lab.clock), sender)
    work.deliver(lab.owner, lab.hook)
    assert sender.attempts == []  # It may still be under way.
    lab.clock.forward(seconds=LEASE.total_seconds())
    work.deliver(lab.owner, lab.hook)
    assert [each.id for each in sender.attempts] == [lab.sender.attempts[0].id]
    assert lab.one.status == "delivered"


@pytest.mark.each_database
def test_a_worker_that_was_taken_over_writes_nothing(lab: Told) -> None:
    lab.happen("a")
    stale = lab.claim()
    assert stale is not None
    lab.clock.forward(seconds=LEASE.total_seconds())
    taken = lab.claim()
    assert taken is not None
    late = replace(stale.delivery, attempts=1, status="failed", next_attempt_at=None)
    assert not lab.store.settle(stale, late, stale.health, lab.clock())
    done = replace(taken.delivery, attempts=1, status="delivered", next_attempt_at=None)
    assert lab.store.settle(taken, done, taken.health, lab.clock())
    assert not lab.store.settle(stale, late, stale.health, lab.clock())
    assert lab.one.status == "delivered"


@pytest.mark.each_database
def test_who_looked_at_the_clock_before_another_took_a_delivery_leaves_it_to_that_one(
    lab: Told,
) -> None:
    lab.happen("a")
    lab.clock.forward(minutes=1)
    assert lab.claim() is not None
    assert lab.claim(timedelta(milliseconds=5)) is None
    assert lab.claim(timedelta(seconds=5)) is None


def test_a_worker_that_dies_after_it_disabled_asks_once_more_and_ends_it(
    lab: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.sender.always = GONE
    lab.happen("a")
    with monkeypatch.context() as patch:
        patch.setattr(lab.store, "settle", die)
        with pytest.raises(SystemExit):
            lab.try_one()
    lab.clock.forward(seconds=LEASE.total_seconds())
    lab.deliver()
    assert lab.disabled == "gone"
    assert lab.one.status == "cancelled"
    assert len(lab.sender.attempts) == 1


def test_an_endpoint_that_keeps_failing_rests_as_a_whole_for_a_minute_at_most(lab: Told) -> None:
    lab.sender.always = WRONG
    lab.happen(*map(str, range(FAILURES_FREE + 20)))
    pauses = []
    while len(pauses) < 12:
        lab.deliver()
        count, began = len(lab.sender.attempts), lab.clock()
        while len(lab.sender.attempts) == count:
            lab.clock.forward(seconds=1)
            lab.try_one()
        pauses.append(lab.clock() - began)
    assert len(lab.sender.attempts) >= FAILURES_FREE
    assert max(pauses) == PAUSE_MAX
    lab.clock.forward(milliseconds=-5)  # A machine whose clock is behind leaves it alone as well.
    assert lab.claim() is None
    assert lab.store.due(lab.clock()) == []
    lab.clock.forward(milliseconds=5)
    lab.sender.always = OK
    lab.clock.forward(seconds=60)
    lab.deliver()
    assert {each.status for each in lab.all} == {"delivered"}


def test_what_is_asked_for_again_during_its_last_attempt_is_sent_whatever_becomes_of_that(
    lab: Told,
) -> None:
    webhooks, sender = lab.process.webhooks, lab.sender
    test_id = webhooks.test(lab.its, lab.process.cause())

    def ask_again() -> None:
        sender.meanwhile = int
        webhooks.redeliver(lab.its, test_id, None, lab.process.cause())
        lab.plan()

    sender.answers, sender.meanwhile = [DOWN], ask_again
    lab.settle()
    lab.settle()
    assert [each.id for each in sender.attempts] == [str(test_id)] * 2
    assert lab.one.status == "delivered"


def test_a_redelivery_for_another_endpoint_than_that_of_the_delivery_does_nothing(
    lab: Told,
) -> None:
    other = lab.endpoint(lab.owner, events=["job.finished"])
    lab.happen("a")
    lab.deliver()
    webhooks = lab.process.webhooks
    webhooks.redeliver(webhooks.get(lab.owner, other), lab.one.id, None, lab.process.cause())
    lab.settle()
    assert len(lab.sender.attempts) == 1


@pytest.mark.each_database
@pytest.mark.parametrize("change", [on_sqlite("disable"), on_sqlite("delete"), "erase"])
def test_what_waits_for_an_endpoint_that_is_told_nothing_any_more_is_cancelled(
    lab: Told, change: str
) -> None:
    lab.happen("a", "b")
    assert not lab.store.cancel(lab.hook, lab.clock() - timedelta(minutes=1))
    match change:
        case "disable":
            lab.change(Changes(enabled=False))
        case "delete":
            lab.process.webhooks.delete(lab.its, lab.process.cause())
        case _:
            erase_months(lab.process.vault, "z", lab.owner)
    lab.deliver()
    assert [each.status for each in lab.all] == ["cancelled"] * 2
    assert lab.sender.attempts == []


@pytest.mark.each_database
def test_thirty_days_are_kept(lab: Told) -> None:
    lab.happen("a")
    lab.deliver()
    lab.clock.forward(days=1)
    lab.happen("b")
    assert lab.store.forget(lab.clock() - RETENTION) == 0
    lab.clock.forward(days=29)
    assert lab.store.forget(lab.clock() - RETENTION) == 0
    lab.clock.forward(seconds=1)
    assert lab.store.forget(lab.clock() - RETENTION) == 1
    assert lab.one.status == "pending"
    lab.clock.forward(days=1)
    assert lab.store.forget(lab.clock() - RETENTION) == 1
    assert lab.store.due(lab.clock()) == []


def plans_of(lab: Told, act: Callable[[], object]) -> list[tuple[str, str]]:
    """Return what SQLite is asked of deliveries by an act, each with its plan."""
    engine, asked = lab.process.views.engine, list[tuple[str, Any]]()

    def keep(*facts: Any) -> None:
        if "webhook_deliveries" in facts[2]:
            asked.append((facts[2], facts[3]))

    event.listen(engine, "before_cursor_execute", keep)
    act()
    event.remove(engine, "before_cursor_execute", keep)
    with lab.process.views.reading() as connection:
        explain = connection.exec_driver_sql
        return [(it, str([*explain(f"EXPLAIN QUERY PLAN {it}", given)])) for it, given in asked]


@sqlite_only("PostgreSQL chooses by the size of tables")
def test_a_long_backlog_is_neither_sorted_for_a_choice_nor_read_for_a_count(lab: Told) -> None:
    def look() -> None:
        lab.claim()
        lab.store.page(lab.owner, lab.hook, None, slice(0, 1))
        lab.store.backlog()

    lab.happen("a")
    plans = [plan for asked, plan in plans_of(lab, look) if asked.startswith("SELECT")]
    assert len(plans) == 6
    for told in plans:
        assert "TEMP B-TREE" not in told
        assert "SCAN webhook_deliveries'" not in told
    assert "COVERING INDEX webhook_deliveries_newest" in plans[2]


def test_the_beat_rings_for_what_is_due_and_for_nothing_else(lab: Told) -> None:
    lab.work.beat()
    assert lab.bells.taken() == []
    lab.sender.answers = [WRONG]
    lab.happen("a")
    lab.bells.taken()
    lab.work.beat()
    assert lab.bells.taken() == [(lab.owner, lab.hook)]
    lab.try_one()
    lab.work.beat()
    assert lab.bells.taken() == []
    lab.clock.forward(seconds=5)
    lab.work.beat()
    assert lab.bells.taken() == [(lab.owner, lab.hook)]


def test_leases_and_pauses_from_before_a_clock_was_set_back_hold_up_nothing(lab: Told) -> None:
    lab.happen("a")
    lab.clock.forward(hours=1)
    assert lab.claim() is not None
    lab.clock.forward(hours=-1)
    lab.deliver()
    assert lab.one.status == "delivered"


@pytest.mark.each_database
@pytest.mark.parametrize("failures", [0, on_sqlite(1), 2, 9])
def test_what_a_clock_that_was_set_back_has_planned_waits_no_longer_than_its_pause(
    lab: Told, failures: int
) -> None:
    purge = partial(Runtime._purge, Runtime(lab.process, {"clock"}))  # noqa: SLF001  # Instead of a minute.
    pause = (timedelta(0), *DELAYS)[failures]
    lab.clock.forward(hours=3)
    lab.sender.always = WRONG
    lab.happen("a")
    for count in range(failures):
        lab.deliver()
        if count + 1 < failures:
            lab.clock.now += DELAYS[count]
    planned = lab.clock() + pause
    lab.clock.forward(hours=-3)
    assert lab.one.next_attempt_at == planned
    assert lab.store.due(lab.clock()) == []
    purge()
    assert lab.one.next_attempt_at == lab.clock() + pause
    lab.sender.always = OK
    lab.clock.now += pause
    lab.deliver()
    assert lab.one.status == "delivered"
    assert len(lab.sender.attempts) == failures + 1


def test_failures_by_a_clock_that_was_set_back_begin_when_that_is_noticed(clock: SetClock) -> None:
    ahead = Health(0, None).after(clock() + timedelta(hours=3), is_success=False)
    assert ahead.after(clock(), is_success=False) == Health(2, clock())


@sqlite_only("PostgreSQL chooses by the size of tables")
def test_what_is_planned_is_put_right_along_the_index(lab: Told) -> None:
    lab.happen("a")
    right = lab.clock() - timedelta(hours=3)
    plans = plans_of(lab, lambda: lab.store.put_right(right))
    assert lab.one.next_attempt_at == right
    for _, plan in plans:
        assert "webhook_deliveries_due (endpoint_id=? AND next_attempt_at>" in plan
    assert len(plans) == 4


def fail_all(lab: Told) -> list[UUID]:
    """Let all deliveries but one have failed, and the last be cancelled; return their ids."""
    ids, rows = [each.id for each in lab.all], lab.store._rows  # noqa: SLF001  # Instead of four days.
    with lab.process.views.writing() as connection:
        connection.execute(rows.update().values(status="failed"))
        cancelled = rows.update().where(rows.c.id == ids[-1]).values(status="cancelled")
        connection.execute(cancelled)
    return ids


def test_what_has_failed_or_was_cancelled_since_a_moment_is_told_again(
    lab: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = lab.process
    for reference in ("a", "b", "c", "d"):
        lab.clock.forward(minutes=1)
        process.deposit(lab.owner, "1.00", reference)
        lab.settle()
    since = lab.clock.now - timedelta(minutes=2)
    first, *told = fail_all(lab)
    lab.sender.attempts.clear()
    failed = Failed(since, partial(lab.store.undelivered, lab.owner, lab.hook, since))
    monkeypatch.setattr(webhook_commands, "REDELIVERED_MAX", 2)

    def ask(key: str, failed: Failed = failed) -> tuple[list[UUID], bool, bool]:
        ask_again, cause = process.webhooks.redeliver_failed, process.cause()
        asked, replayed = ask_again(lab.its, failed, key, cause)
        return asked.delivery_ids, asked.has_more, replayed

    assert ask("k-1") == (told[:2], True, False)
    assert ask("k-1") == (told[:2], True, True)
    with pytest.raises(IdempotencyKeyReused):
        ask("k-1", failed._replace(since=lab.clock.now))
    lab.plan()
    assert lab.bells.taken() == [(lab.owner, lab.hook)], "they do not wait for a beat"
    lab.deliver()
    assert ask("k-1") == (told[:2], True, True)
    assert ask("k-2") == (told[2:], False, False)
    lab.settle()
    assert ask("k-3") == ([], False, False)
    assert [each.id for each in lab.sender.attempts] == [str(each) for each in told]
    left = {each.id for each in lab.all if each.status == "failed"}
    assert left == {first}
    lab.change(Changes(enabled=False))
    assert ask("k-1") == (told[:2], True, True)
    with pytest.raises(WebhookDisabled):
        ask("k-4")
