"""Threads that wait for messages are asleep until there is one, or they should end."""

from queue import Empty
from threading import Event, Thread

import dramatiq
import pytest

from app.adapters.queues.in_process import InProcessBroker
from app.processes import runtime
from app.processes.runtime import Messages, WaitingWorker
from tests.installation import PATIENCE_S

THREADS = 3


@pytest.fixture
def broker() -> InProcessBroker:
    return InProcessBroker()


def test_a_message_wakes_a_thread_and_the_end_wakes_all(broker: InProcessBroker) -> None:
    heard = Event()
    actor = dramatiq.actor(heard.set, broker=broker, queue_name="bells", actor_name="hear")
    worker = WaitingWorker(broker, "bells", THREADS)
    worker.start()
    actor.send()
    assert heard.wait(PATIENCE_S)
    worker.stop(timeout=int(PATIENCE_S * 1_000))
    assert not [each for each in worker.workers if each.is_alive()]


def test_what_is_in_hand_at_the_end_is_finished(broker: InProcessBroker) -> None:
    began, go_on, done = Event(), Event(), Event()

    def work() -> None:
        began.set()
        assert go_on.wait(PATIENCE_S)
        done.set()

    actor = dramatiq.actor(work, broker=broker, queue_name="bells")
    worker = WaitingWorker(broker, "bells", THREADS)
    worker.start()
    actor.send()
    assert began.wait(PATIENCE_S)
    stop = Thread(target=worker.stop, args=(int(PATIENCE_S * 1_000),))
    stop.start()
    go_on.set()
    stop.join(PATIENCE_S)
    assert done.is_set()
    assert not stop.is_alive()


def test_nobody_looks_up_while_there_is_nothing() -> None:
    messages, got = Messages(), list[object]()
    waits = list[float | None]()
    real = messages.not_empty.wait
    asleep = Event()

    def wait(timeout: float | None = None) -> bool:
        waits.append(timeout)
        asleep.set()
        return real(timeout)

    messages.not_empty.wait = wait  # type: ignore[method-assign]  # To see what it waits for.

    def take() -> None:
        got.append(messages.get(timeout=0.001))

    thread = Thread(target=take)
    thread.start()
    assert asleep.wait(PATIENCE_S)
    messages.put("one")
    thread.join(PATIENCE_S)
    assert (waits, got) == ([None], ["one"])


def test_after_the_end_what_is_left_is_given_out_and_then_nothing() -> None:
    messages = Messages()
    messages.put("left")
    messages.end()
    assert messages.get() == "left"
    for block in (True, False):
        with pytest.raises(Empty):
            messages.get(block=block)


def test_a_worker_at_rest_takes_no_message_and_goes_on_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runtime, "PAUSE_S", 0.001)
    rests, got = Event(), list[object]()
    rests.set()
    messages = Messages(rests.is_set)
    messages.put("one")
    with pytest.raises(Empty):
        messages.get(block=False)
    thread = Thread(target=lambda: got.append(messages.get()))
    thread.start()
    thread.join(0.05)
    assert got == []
    rests.clear()
    thread.join(PATIENCE_S)
    assert got == ["one"]
