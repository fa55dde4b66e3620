"""Attempts at sandbox numbers are counted once each, in all processes together."""

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

from tests.installation import Installation, Process

NUMBER = "+15005550004"


def test_attempts_are_counted_by_organization_and_number(process: Process) -> None:
    mine, other = uuid4(), uuid4()
    count = process.sandbox_attempts.count
    assert [count(mine, NUMBER), count(mine, NUMBER)] == [1, 2]
    assert [count(other, NUMBER), count(mine, "+15005550002"), count(mine, NUMBER)] == [1, 1, 3]


def test_no_two_attempts_get_the_same_count(installation: Installation) -> None:
    processes, organization_id = [installation.process() for _ in range(3)], uuid4()

    def count(number: int) -> int:
        return processes[number % 3].sandbox_attempts.count(organization_id, NUMBER)

    with ThreadPoolExecutor(6) as pool:
        counts = sorted(pool.map(count, range(30)))
    assert counts == list(range(1, 31))
