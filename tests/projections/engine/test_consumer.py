"""Whatever a consumer does with events, it takes each: once in a transaction, else at least once.

That holds in each mode, whoever else is active, whatever dies and whatever cannot be read.
"""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy.exc import OperationalError

from projections.engine import consumer as engine
from tests.installation import Installation, Process, wait_until
from tests.projections.engine.consumers import MODES, TABLE, Noting, NotingRows, Publishing, taken
from tests.projections.histories import run_on_log, write_row
from tests.projections.looking import failures, place_of, register, trouble_for

Make = Callable[[Process], Noting]


@pytest.fixture(params=MODES, ids=lambda mode: mode.name)
def make(request: pytest.FixtureRequest, process: Process) -> Make:
    """Make a consumer of a mode in a process; what is published goes into one queue."""
    TABLE.metadata.create_all(process.views.engine)
    queue = list[int]()

    def made(inside: Process) -> Noting:
        consumer: Noting = request.param(inside)
        if isinstance(consumer, Publishing):
            consumer.queue = queue
        return consumer

    return made


@pytest.fixture
def consumer(process: Process, make: Make, monkeypatch: pytest.MonkeyPatch) -> Noting:
    monkeypatch.setattr(engine, "RETRY_MAX_S", 0.05)
    return make(process)


def everything(process: Process) -> list[int]:
    return [row.position for row in process.log.stored(0, 1_000)]


def drain(consumer: Noting) -> None:
    while consumer.step():
        pass


def has_all(process: Process, consumer: Noting) -> bool:
    found = taken(process, consumer)
    return sorted(set(found) if isinstance(consumer, Publishing) else found) == everything(process)


@pytest.mark.each_database
def test_it_takes_the_log_in_batches_from_where_it_stood(
    process: Process, consumer: Noting, make: Make
) -> None:
    register(process, 7)
    assert [consumer.step() for _ in range(4)] == [3, 3, 1, 0]
    assert taken(process, consumer) == everything(process)
    register(process, 2)
    drain(make(process))
    assert taken(process, consumer) == everything(process)
    assert place_of(process, consumer.name).position == process.log.head()


@pytest.mark.each_database
def test_of_two_copies_that_are_active_one_writes(
    installation: Installation,
    process: Process,
    consumer: Noting,
    make: Make,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = make(installation.process())
    register(process, 2)
    drain(consumer)
    drain(other)
    register(process, 4)
    read, pending = consumer.read, [lambda: drain(other), lambda: register(process, 1)]

    def overtaken(after: int) -> Any:
        stretch = read(after)
        while pending:
            pending.pop(0)()
        return stretch

    monkeypatch.setattr(consumer, "read", overtaken)
    drain(consumer)
    assert has_all(process, consumer)
    assert place_of(process, consumer.name).position == process.log.head()


@pytest.mark.parametrize("dies_in", ["read", "prepare", "advance", "follow", "finish"])
def test_wherever_it_dies_the_next_one_loses_and_doubles_nothing(
    process: Process, consumer: Noting, make: Make, monkeypatch: pytest.MonkeyPatch, dies_in: str
) -> None:
    register(process, 5)
    consumer.step()
    where: Any = process.positions if dies_in == "advance" else consumer
    work = getattr(where, dies_in)

    def dies(*args: Any) -> None:
        work(*args)
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(where, dies_in, dies)
        with pytest.raises(SystemExit):
            consumer.step()
    drain(make(process))
    assert has_all(process, consumer)


def test_a_step_in_an_outage_moves_nothing_and_is_taken_again(
    process: Process, consumer: Noting, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(process, 2)
    trouble_for(process, monkeypatch, 1)
    with pytest.raises(OperationalError):
        consumer.step()
    drain(consumer)
    assert has_all(process, consumer)
    assert failures(process) == {}


def test_what_fails_stops_at_exactly_its_event_and_goes_on_when_it_is_mended(
    process: Process, consumer: Noting
) -> None:
    register(process, 5)
    consumer.broken_at = everything(process)[3]
    drain(consumer)
    assert taken(process, consumer) == everything(process)[:3]
    assert place_of(process, consumer.name).position == everything(process)[2]
    failure = f"RuntimeError on organization.registered at position {consumer.broken_at}"
    assert failures(process) == {consumer.name: failure}
    consumer.broken_at = 0
    wait_until(lambda: bool(consumer.step()))
    drain(consumer)
    assert has_all(process, consumer)
    assert failures(process) == {}


UNREADABLE = {
    "an unknown topic": ("nobody.knows", b"{}"),
    "no topic": ("", b"{}"),
    "the topic of an aggregate": ("bulk_job", b"{}"),
    "a topic that is no event": ("builtins:dict", b"{}"),
    "broken JSON": ("organization.registered", b'{"timestamp":'),
    "a missing field": ("organization.registered", b"{}"),
    "bytes that are no text": ("organization.registered", b'{"name": "\xff"}'),
    "lists without end": ("organization.registered", b"[" * 5_000),
}


@pytest.mark.parametrize("row", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_an_event_that_cannot_be_decoded_stops_all_but_those_that_take_bytes(
    process: Process, consumer: Noting, row: tuple[str, bytes]
) -> None:
    register(process, 2)
    position = write_row(process, uuid4().hex, 1, *row)
    register(process, 2)
    drain(consumer)
    if isinstance(consumer, NotingRows):
        assert has_all(process, consumer)
        return
    assert taken(process, consumer) == everything(process)[:2]
    assert place_of(process, consumer.name).position == position - 1
    assert f"position {position}" in failures(process)[consumer.name]
    gone = "DELETE FROM {table} WHERE {position} = ? RETURNING {position}"
    run_on_log(process, gone, (position,))
    wait_until(lambda: bool(consumer.step()))
    drain(consumer)
    assert has_all(process, consumer)


def test_what_it_does_not_use_is_passed_unread(process: Process, consumer: Noting) -> None:
    write_row(process, uuid4().hex, 1, "deposit.made", b"{}")
    drain(consumer)
    assert place_of(process, consumer.name).position == process.log.head()
    assert failures(process) == {}


@pytest.mark.each_database
def test_without_a_position_of_this_log_and_version_it_begins_anew(
    process: Process, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(process, 2)
    first = make(process)
    drain(first)
    head = process.log.head()
    rows = process.positions.rows
    with process.views.writing() as connection:
        connection.execute(rows.update().where(rows.c.name == first.name).values(stream_version=9))
    second = make(process)
    drain(second)
    monkeypatch.setattr(type(first), "version", 2)
    third = make(process)
    drain(third)
    assert (first.lost, second.lost, third.lost) == ([None], [head], [head])
    assert place_of(process, first.name).version == 2


def test_a_position_moves_now_and_then_where_nothing_is_asked(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = Publishing(process)
    consumer.queue = []
    consumer.unused = frozenset({"organization.registered"})
    register(process, 2)
    drain(consumer)
    reads, follow, start = list[int](), process.log.follow, process.log.head()

    def noted(after: int, *args: Any) -> Any:
        reads.append(after)
        return follow(after, *args)

    monkeypatch.setattr(process.log, "follow", noted)
    monkeypatch.setattr(engine, "MOVE_S", 1_000.0)
    monkeypatch.setattr(engine, "REFRESH_S", 1_000.0)
    for _ in range(2):
        register(process, 3)
        consumer.step()
    assert reads == [start, start + 3], "it reads nothing again"
    assert place_of(process, consumer.name).position == start
    consumer.step()
    assert place_of(process, consumer.name).position == process.log.head()
