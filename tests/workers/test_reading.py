"""Links are read in the background: what nobody asks for is known, and told once."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from threading import Event, Thread
from uuid import UUID, uuid4

import pytest
from msgspec.structs import replace

from app.processes.runtime import Runtime
from domain.links.link import Link
from domain.links.network import NetworkReading, NoSuchEndpoint, Usage
from domain.links.readings import record_plans
from domain.provider_errors import NotAnswered, Unavailable
from projections.stores.reading_schedule import DueReading
from tests.installation import Process, wait_until
from tests.workers.link_lab import Lab
from workers import reading
from workers.reading import UNANSWERED_MAX, BackgroundReading, Lane


def settle(lab: Lab, background: BackgroundReading | None = None) -> int:
    """Read all that is due now, as the clock's threads do; return how many links were."""
    lab.process.projector.catch_up()
    background = background or lab.process.background_reading
    background.tick()
    return read_lanes(background)


def read_lanes(background: BackgroundReading) -> int:
    """Do what the threads of all lanes would do, without waiting for a turn."""
    count = 0
    for lane in background.lanes.values():
        while (taken := lane.claim()) is not None:
            lane.done(answered=background.read(taken[0], taken[1].usage))
            count += 1
    return count


def told(lab: Lab, link_id: UUID) -> list[str]:
    """Return what the log says of a link since it was activated."""
    topics = [
        each.event.TOPIC  # type: ignore[attr-defined]  # every event has one
        for each in lab.process.log.read(0, 10_000)
        if each.event.originator_id == link_id and isinstance(each.event, Link.Event)
    ]
    return topics[topics.index("link.activated") + 1 :]


def shares(lab: Lab, link_id: UUID) -> list[int]:
    return [
        each.percent
        for each in lab.process.events(Link.UsageReached)
        if each.originator_id == link_id
    ]


def seen(lab: Lab, link: Link) -> Usage | None:
    found = lab.process.readings.load([link.id])
    return found.get(link.id, NetworkReading()).usage


def until_used(lab: Lab, link: Link, percent: float) -> None:
    """Let time pass until so much of its first plan is used up."""
    assert link.endpoint_id is not None
    while True:
        addon = lab.simulator.usage(link.endpoint_id, timeout_s=1).addons[0]
        if addon.used_mb * 100 >= percent * 1_000:
            return
        lab.clock.forward(minutes=5 if addon.used_mb * 100 >= (percent - 5) * 1_000 else 60)


def test_each_share_of_a_plan_is_told_once_and_in_order(lab: Lab) -> None:
    link = lab.create()
    for percent, expected in [(49, []), (50, [50]), (95, [50, 80]), (100, [50, 80, 100])]:
        until_used(lab, link, percent)
        settle(lab)
        lab.clock.forward(seconds=900)
        if percent in {49, 50}:  # Later ones may have been reached in these minutes.
            assert shares(lab, link.id) == expected
            continue
        settle(lab)
        assert shares(lab, link.id)[: len(expected)] == expected
    assert shares(lab, link.id) == [50, 80, 100]


def test_the_end_of_a_plan_is_told_a_day_before_though_the_network_is_away(lab: Lab) -> None:
    link = lab.create()
    lab.clock.forward(hours=1)
    settle(lab)
    usage = seen(lab, link)
    assert usage is not None
    ends_at = usage.addons[0].expires_at
    assert ends_at is not None
    lab.network.before("usage", *[Unavailable("down")] * 100)
    lab.clock.now = ends_at - timedelta(hours=24, seconds=1)
    settle(lab)
    assert "link.expiry_near" not in told(lab, link.id)
    lab.clock.forward(seconds=1)
    lab.process.background_reading.tick()
    assert told(lab, link.id).count("link.expiry_near") == 1
    lab.clock.forward(minutes=1)
    settle(lab)
    assert told(lab, link.id).count("link.expiry_near") == 1


def test_that_a_plan_is_over_is_told_once_by_the_clock_though_the_network_is_away_or_lies(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = lab.create()
    lab.clock.forward(hours=1)
    settle(lab)
    (addon,) = seen(lab, link).addons  # type: ignore[union-attr]  # It was read.
    assert told(lab, link.id).count("link.plan_started") == 1
    ends_at = addon.expires_at
    assert ends_at is not None
    usage = lab.network.usage
    with monkeypatch.context() as patched:  # The network leaves its plan out.
        patched.setattr(
            lab.network, "usage", lambda *args, **more: replace(usage(*args, **more), addons=[])
        )
        lab.clock.forward(hours=30)
        settle(lab)
    assert "link.plan_ended" not in told(lab, link.id)
    lab.clock.forward(hours=1)
    settle(lab)
    lab.network.before("usage", *[Unavailable("down")] * 100)
    lab.clock.now = ends_at - timedelta(seconds=1)
    settle(lab)
    assert "link.plan_ended" not in told(lab, link.id)
    lab.clock.now = ends_at
    for _ in range(3):
        lab.process.background_reading.tick()
        lab.clock.forward(minutes=20)
    later = replace(addon, expires_at=ends_at + timedelta(days=9))
    link_now = lab.link(link.id)
    record_plans(
        link_now,
        replace(seen(lab, link), addons=[later]),  # type: ignore[type-var]  # It was read.
        lab.clock(),
        lab.process.cause(),
    )
    assert link_now.pending_events == []
    ends = [each for each in told(lab, link.id) if each.startswith("link.plan_")]
    assert ends == ["link.plan_started", "link.plan_ended"]


def test_what_happened_to_a_plan_while_nothing_was_read_is_told_afterwards_once(lab: Lab) -> None:
    lab.installation.environment["READINGS_REFRESH_S"] = "0"
    link = lab.create()
    lab.restart()
    lab.clock.forward(days=60)
    lab.process.link_readings.read(lab.link(link.id), lab.process.cause(), live=True)
    assert "link.plan_ended" not in told(lab, link.id)
    lab.installation.environment["READINGS_REFRESH_S"] = "900"
    lab.restart()
    lab.clock.forward(minutes=20)
    for _ in range(3):
        settle(lab)
        lab.clock.forward(hours=2)
    ends = [each for each in told(lab, link.id) if each.startswith("link.plan_")]
    assert ends == ["link.plan_started", "link.plan_ended"]


def test_a_link_that_cannot_be_read_keeps_no_other_from_being_told(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    links = [lab.create() for _ in range(2)]
    lab.clock.forward(hours=1)
    settle(lab)
    ends_at = {each.id: seen(lab, each).addons[0].expires_at for each in links}  # type: ignore[union-attr]  # It was read.
    broken, other = sorted(ends_at, key=lambda each: ends_at[each])  # type: ignore[arg-type,return-value]  # It was used.
    lab.clock.now = max(ends_at.values()) - timedelta(hours=23)  # type: ignore[operator,type-var]  # As above.
    background = lab.process.background_reading
    find = background.link_readings.log.find

    def failing(kind: type[Link], link_id: UUID, *more: object) -> Link | None:
        if link_id == broken:
            raise ZeroDivisionError
        return find(kind, link_id, *more)  # type: ignore[arg-type]  # As they come.

    with monkeypatch.context() as patched:
        patched.setattr(background.link_readings.log, "find", failing)
        background.tick()
    assert "link.expiry_near" in told(lab, other)
    assert "telling of the end of a plan" in caplog.text
    lab.clock.forward(minutes=15)
    background.tick()
    assert "link.expiry_near" in told(lab, broken)


def test_who_has_just_read_a_link_saves_a_call(lab: Lab) -> None:
    link = lab.create()
    lab.clock.forward(hours=1)
    lab.process.link_readings.read(lab.link(link.id), lab.process.cause(), live=True)
    asked = lab.network.count("usage")
    lab.clock.forward(seconds=600)
    assert settle(lab) == 1
    assert lab.network.count("usage") == asked
    lab.clock.forward(seconds=299)
    assert settle(lab) == 0
    lab.clock.forward(seconds=1)
    assert settle(lab) == 1
    assert lab.network.count("usage") == asked + 1


def test_without_background_reading_nothing_is_told(lab: Lab) -> None:
    lab.installation.environment["READINGS_REFRESH_S"] = "0"
    link = lab.create()
    lab.restart()
    until_used(lab, link, 80)
    lab.process.link_readings.read(lab.link(link.id), lab.process.cause(), live=True)
    assert told(lab, link.id) == ["link.installed", "link.first_used"]


def test_a_link_that_has_ended_is_never_read_again(lab: Lab) -> None:
    link = lab.create()
    settle(lab)
    ended = lab.link(link.id)
    ended.end([], lab.process.cause())
    lab.process.log.append(ended)
    asked = lab.network.count("usage")
    lab.clock.forward(days=30)
    settle(lab)
    lab.restart()
    settle(lab)
    assert lab.network.count("usage") == asked
    assert told(lab, link.id)[-1] == "link.ended"
    lab.is_odd = True  # Its endpoint is there.


def test_a_link_that_is_suspended_is_read_too(lab: Lab) -> None:
    link = lab.create()
    settle(lab)
    lab.switch(link.id, "suspended")
    assert link.endpoint_id is not None
    lab.simulator.resume(link.endpoint_id, timeout_s=1)
    lab.clock.forward(seconds=900)
    settle(lab)
    assert lab.link(link.id).status == "active"


def test_a_drained_network_is_read_on(lab: Lab) -> None:
    link = lab.create()
    lab.process.drain("simulated")
    lab.clock.forward(hours=1)
    assert settle(lab) == 1
    assert seen(lab, link) is not None


def test_a_link_whose_plans_are_over_is_read_less_often(lab: Lab) -> None:
    lab.create()
    lab.clock.forward(days=30)
    settle(lab)
    lab.clock.forward(seconds=4 * 900 - 1)
    assert settle(lab) == 0
    lab.clock.forward(seconds=1)
    assert settle(lab) == 1


def test_an_endpoint_that_the_network_does_not_know_keeps_nothing_up(lab: Lab) -> None:
    lab.create()
    lab.network.before("usage", NoSuchEndpoint("gone"))
    lab.clock.forward(hours=1)
    assert settle(lab) == 1
    assert settle(lab) == 0
    assert lab.process.observed.readings() == {"oldest_reading_seconds": {"simulated": 0.0}}


def test_a_network_that_is_away_is_left_alone_for_a_while(lab: Lab) -> None:
    """But links of which it tells oddly keep no other from being read."""
    count, lane = UNANSWERED_MAX + 2, lab.process.background_reading.lanes["simulated"]
    for _ in range(count):
        lab.create()
    lab.clock.forward(hours=1)
    lab.network.before("usage", *[NotAnswered("odd")] * UNANSWERED_MAX)
    assert settle(lab) == count
    assert lane.is_empty
    lab.clock.forward(hours=2)
    lab.network.before("usage", *[Unavailable("down")] * 10)
    asked = lab.network.count("usage")
    settle(lab)
    settle(lab)
    assert lab.network.count("usage") == asked + UNANSWERED_MAX
    assert not lane.is_empty
    lane._next_s = 0.0  # noqa: SLF001  # The while is over.
    settle(lab)
    assert lab.network.count("usage") == asked + count


@pytest.mark.each_database
def test_the_longest_waiting_comes_first_and_organizations_take_turns(process: Process) -> None:
    turns, now = process.reading_schedule, process.time()
    many, few = uuid4(), uuid4()
    links = [DueReading(uuid4(), many, "simulated", 10 + n, now) for n in range(5)]
    links += [DueReading(uuid4(), few, "simulated", 20 + n, now) for n in range(2)]
    links += [DueReading(uuid4(), few, "other", 30, now)]
    turns.enter(links, now)
    for n, each in enumerate(links):  # Those of `few` have waited for the shortest time.
        turns.move(each.link_id, now + timedelta(seconds=n), None, None)
    later = now + timedelta(seconds=6)
    ids = [each.link_id for each in links]
    assert [*turns.due("simulated", later, 9)] == [ids[n] for n in (0, 5, 1, 6, 2, 3, 4)]
    assert [*turns.due("simulated", later, 3)] == [ids[0], ids[5], ids[1]]
    assert [*turns.due("simulated", now + timedelta(seconds=1), 9)] == ids[:2]


def hasten(process: Process, owner: UUID) -> None:
    with process.stores.writing() as connection:
        process.reading_schedule.hasten(connection, "simulated", owner)


@pytest.mark.each_database
def test_only_the_links_of_one_organization_are_asked_for_when_its_time_has_passed(
    process: Process,
) -> None:
    turns, later = process.reading_schedule, process.time() + timedelta(hours=1)
    mine, other = uuid4(), uuid4()
    links = [
        DueReading(uuid4(), owner, name, 10, later)
        for owner, name in ((mine, "simulated"), (other, "simulated"), (mine, "other"))
    ]
    turns.enter(links, process.time())
    hasten(process, mine)
    assert turns.due("simulated", process.time(), 9) == {links[0].link_id: True}
    assert turns.due("other", process.time(), 9) == {}


def test_a_link_that_is_asked_for_while_it_is_read_is_read_once_more(lab: Lab) -> None:
    ask = partial(hasten, lab.process, lab.create().organization_id)
    lab.clock.forward(hours=1)
    lab.network.after("usage", ask, ask)  # As it was due, and as it was asked for.
    assert [settle(lab) for _ in range(4)] == [1, 1, 1, 0]


@pytest.mark.each_database
def test_turns_by_a_clock_that_was_set_back_come_after_their_pause(process: Process) -> None:
    turns, now, pause = process.reading_schedule, process.time(), timedelta(hours=1)
    ahead, asked, right = (DueReading(uuid4(), uuid4(), "simulated", n, now) for n in (10, 11, 12))
    turns.enter([ahead, asked], now + timedelta(hours=3))
    turns.enter([right], now)
    turns.move(ahead.link_id, now + 4 * pause, None, now + 3 * pause)
    turns.move(right.link_id, now + 2 * pause, None, now)
    hasten(process, asked.organization_id)
    Runtime(process, {"clock"})._purge()  # noqa: SLF001  # Instead of a minute.
    assert turns.due("simulated", now, 9) == {asked.link_id: True}
    assert turns.due("simulated", now + pause, 9).keys() == {asked.link_id, ahead.link_id}
    assert turns.oldest(["simulated"]) == {"simulated": now}
    assert len(turns.due("simulated", now + 2 * pause, 9)) == 3


@pytest.mark.each_database
def test_a_restart_goes_on_where_the_last_life_was(lab: Lab) -> None:
    """Also where the store was lost: it is filled again."""
    first = lab.create()
    lab.clock.forward(seconds=900)
    settle(lab)
    asked = lab.network.count("usage")
    lab.clock.forward(seconds=450)
    second = lab.create()
    lab.restart()
    assert settle(lab) == 0
    lab.clock.forward(seconds=450)
    assert settle(lab) == 1
    lab.restart()
    lab.clock.forward(seconds=450)
    assert settle(lab) == 1
    assert lab.network.count("usage") == asked + 2
    assert {seen(lab, each) is not None for each in (first, second)} == {True}
    with lab.process.stores.writing() as connection:
        connection.exec_driver_sql("DELETE FROM reading_turns")
    lab.restart()
    lab.clock.forward(seconds=900)
    assert settle(lab) == 2


@pytest.mark.each_database
def test_many_clocks_at_once_tell_a_fact_once(lab: Lab) -> None:
    link = lab.create()
    until_used(lab, link, 100)
    clocks = [lab.other_process().background_reading for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(lambda each: each.read(link.id, None), clocks)] == [True] * 4
    assert shares(lab, link.id) == [50, 80, 100]


def test_a_fact_that_another_writer_has_kept_out_is_told_soon(lab: Lab) -> None:
    link = lab.create()
    until_used(lab, link, 50)
    lab.network.after("usage", lambda: lab.see(link.id))
    settle(lab)
    assert shares(lab, link.id) == []
    lab.clock.forward(seconds=1)
    lab.process.background_reading.tick()
    assert shares(lab, link.id) == [50]


def test_what_happens_meanwhile_is_the_last_word(lab: Lab) -> None:
    """A status that is asked for, or an end."""
    asked, ended = lab.create(), lab.create()
    lab.clock.forward(hours=1)

    def end() -> None:
        link = lab.link(ended.id)
        link.end([], lab.process.cause())
        lab.process.log.append(link)

    lab.network.after("usage", lambda: lab.switch(asked.id, "suspended"))
    assert lab.process.background_reading.read(asked.id, None)
    assert lab.link(asked.id).status == "suspended"
    assert "link.status_seen" not in told(lab, asked.id)
    until_used(lab, ended, 80)
    lab.network.after("usage", end)
    assert lab.process.background_reading.read(ended.id, None)
    assert told(lab, ended.id) == ["link.ended"]
    lab.is_odd = True  # Its endpoint is there.


@contextmanager
def threads(background: BackgroundReading) -> Iterator[None]:
    stop = Event()
    made = [
        Thread(target=background.work, args=(name, stop))
        for name in background.lanes
        for _ in range(reading.READERS)
    ]
    for each in made:
        each.start()
    try:
        yield
    finally:
        stop.set()
        for each in made:
            each.join(20)


def test_a_network_that_hangs_holds_up_no_other(lab: Lab) -> None:
    opened, links = Event(), [lab.create() for _ in range(6)]
    lab.clock.forward(hours=1)
    lab.process.projector.catch_up()
    background = lab.process.background_reading
    hanging = Lane(1_000.0)
    background = BackgroundReading(
        **{**vars(background), "lanes": {"hanging": hanging, **background.lanes}}
    )
    reads = background.read

    def read(link_id: UUID, last: Usage | None, may_call: Callable[[], bool]) -> bool | None:
        if link_id in held:
            opened.wait(20)
            return False
        return reads(link_id, last, may_call)

    held = {uuid4() for _ in range(reading.READERS + 3)}
    background.read = read  # type: ignore[method-assign]  # As a network that answers nobody.
    hanging.feed({each: NetworkReading() for each in held})
    with threads(background):
        background.tick()
        wait_until(lambda: all(seen(lab, each) for each in links))
        assert not hanging.is_empty
        opened.set()


def test_a_lane_keeps_to_its_pace() -> None:
    lane = Lane(2.0)
    waits = [lane.wait_s() for _ in range(5)]
    assert [round(each, 1) for each in waits] == [0.0, 0.5, 1.0, 1.5, 2.0]


def test_a_database_that_is_away_ends_no_thread(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    link = lab.create()
    lab.clock.forward(hours=1)
    lab.process.projector.catch_up()
    background = lab.process.background_reading
    move, failures = background.reading_schedule.move, [ZeroDivisionError("once")]

    def failing(*arguments: object) -> None:
        if failures:
            raise failures.pop()
        move(*arguments)  # type: ignore[arg-type]  # As they come.

    monkeypatch.setattr(background.reading_schedule, "move", failing)
    with threads(background):
        background.tick()
        wait_until(lambda: not failures and background.lanes["simulated"]._busy == 0)  # noqa: SLF001  # The thread has gone on.
        lab.clock.forward(hours=1)
        lab.process.link_readings.readings.forget(lab.clock())
        wait_until(lambda: background.tick() or seen(lab, link) is not None)  # type: ignore[func-returns-value]  # It reads anew.
    assert "the reading of links of simulated" in caplog.text
