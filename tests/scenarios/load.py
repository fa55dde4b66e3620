"""A partner at work in the background."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

from tests.installation import numbers
from tests.scenarios.partner import Partner


@contextmanager
def load(partner: Partner) -> Iterator[None]:
    """Let the partner look up, send jobs and buy links as fast as the replies come."""
    stop, failed = Event(), list[BaseException]()
    plan_id = partner.ask("GET", "/v1/plans?country=FR").data["data"][0]["id"]

    def work() -> None:
        starts = itertools.count(0, 100)
        try:
            while not stop.is_set():
                partner.look_up("+447400123456", stop)
                partner.look_up_many(numbers(100, next(starts)), stop)
                partner.buy(plan_id, stop)
        except BaseException as error:  # noqa: BLE001  # It is raised below, in the test.
            failed.append(error)

    thread = Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    if failed:
        raise failed[0]


def grown(partner: Partner) -> Callable[[], bool]:
    """Return what tells whether the partner has another job and another link."""
    jobs, links = len(partner.promised.jobs), len(partner.promised.links)
    return lambda: len(partner.promised.jobs) > jobs and len(partner.promised.links) > links
