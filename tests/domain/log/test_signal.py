"""A thread that waits for the log to grow misses no call."""

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

from domain.log.signal import Signal, Streams

LONG_S = 10.0


def test_a_call_between_looking_and_waiting_is_not_missed() -> None:
    signal = Signal()
    seen = signal.count
    signal.call()
    assert signal.wait(seen, LONG_S)


def test_a_wait_without_a_call_ends_and_says_so() -> None:
    signal = Signal()
    signal.call()
    assert not signal.wait(signal.count, 0.001)


def test_a_call_wakes_everybody() -> None:
    signal = Signal()
    seen = signal.count
    with ThreadPoolExecutor(8) as pool:
        waits = [pool.submit(signal.wait, seen, LONG_S) for _ in range(8)]
        signal.call()
        assert all(wait.result(LONG_S) for wait in waits)


def test_who_waits_for_one_stream_hears_of_that_or_of_any() -> None:
    signal, mine, other = Signal(), uuid4(), uuid4()
    with signal.watching(mine) as news:
        signal.call({other.hex})
        assert not news.is_set()
        for streams in ({other.hex, mine.hex}, None):
            signal.call(streams)
            assert news.wait(0)
            news.clear()


def test_an_observer_hears_before_anybody_is_woken() -> None:
    signal, heard = Signal(), list[tuple[Streams | None, int]]()
    signal.observer = lambda streams: heard.append((streams, signal.count))
    signal.call({"a"})
    signal.call()
    assert heard == [({"a"}, 0), (None, 1)]
