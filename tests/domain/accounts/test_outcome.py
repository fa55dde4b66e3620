"""Outcomes: either taken or withdrawn, and answered once."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from domain.accounts.committer import Outcome
from domain.errors import ServiceUnavailable

PATIENCE_S = 10.0


def test_of_taking_and_withdrawing_one_comes_first() -> None:
    with ThreadPoolExecutor(2) as pool:
        for _ in range(200):
            outcome, ready = Outcome(), Barrier(2)

            def claim(outcome: Outcome = outcome, ready: Barrier = ready) -> bool:
                ready.wait(PATIENCE_S)
                return outcome.claim()

            claims = [pool.submit(claim) for _ in range(2)]
            assert sum(each.result(PATIENCE_S) for each in claims) == 1


def test_who_waits_gets_the_position() -> None:
    outcome = Outcome()
    assert not outcome.wait(0.0)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(outcome.wait, PATIENCE_S)
        assert outcome.claim()
        outcome.succeed(7)
        assert waiting.result(PATIENCE_S)
    assert outcome.result() == 7


def test_who_waits_gets_the_error() -> None:
    outcome = Outcome()
    assert outcome.claim()
    outcome.fail(ServiceUnavailable())
    assert outcome.wait(0.0)
    with pytest.raises(ServiceUnavailable):
        outcome.result()


def test_it_is_open_from_being_taken_until_it_is_answered() -> None:
    outcome = Outcome()
    assert not outcome.is_open
    outcome.claim()
    assert outcome.is_open
    outcome.succeed(1)
    assert outcome.wait(0.0)  # Its submitter has heard it and goes on.
    assert not outcome.is_open


def test_who_has_many_in_hand_is_told_of_each_and_waits_for_none() -> None:
    told: list[str] = []
    outcome = Outcome(lambda: told.append("told"), lambda: told.append("rung"))
    assert outcome.claim()
    outcome.succeed(7)
    assert told == ["told"]
    assert outcome.result() == 7
