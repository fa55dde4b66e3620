"""Several real processes over one directory: a race at the first start, and a rotation seen."""

from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from app.security.keys import KeyRing
from domain.cause import utc_now
from tests.app.security.rings import RETIRE_AFTER_S, OtherProcess


@pytest.fixture
def others(directory: Path) -> Iterator[list[OtherProcess]]:
    processes = [OtherProcess(directory, "ES256") for _ in range(3)]
    yield processes
    for process in processes:
        process.close()


def test_processes_that_start_at_once_end_with_one_key_and_one_pepper(
    others: list[OtherProcess], directory: Path
) -> None:
    for process in others:
        process.order("ensure")
    answers = [process.answer() for process in others]
    assert all(answer == answers[0] for answer in answers)
    assert len(list(directory.glob("*.pem"))) == 1
    assert not (directory / ".draft").exists()


def test_another_process_verifies_with_a_fresh_key_at_once_and_soon_signs_with_it(
    others: list[OtherProcess], directory: Path
) -> None:
    other = others[0]
    old_kid = other.ask("ensure")
    ring = KeyRing(directory, "ES256", utc_now, RETIRE_AFTER_S)
    for _ in range(20):
        assert other.ask("verify", ring.rotate()) is True
    new_kid = ring.rotate()
    rotated_at = monotonic()
    while (signing := other.ask("sign")) != new_kid:
        assert signing != old_kid
        assert monotonic() < rotated_at + 5
    assert other.ask("verify", "0" * 32) is False
