"""Nobody who waits for the log to grow sleeps through a call."""

from concurrent.futures import ThreadPoolExecutor

from domain.signal import Signal

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
