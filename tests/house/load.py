"""A partner at work in the background."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread

from tests.house.partner import Partner
from tests.installation import numbers, wait_until

GOES_ON_S = 300.0
PAUSE_S = 0.3  # Between two requests of a kind: work is in flight, and time is left for others.


@contextmanager
def at_work(partner: Partner, job: int = 100) -> Iterator[None]:
    """Let a partner look up, send jobs, buy links and top them up without pause."""
    stop, failed = Event(), list[BaseException]()
    plan_id = partner.ask("GET", "/v1/plans?country=FR").data["data"][0]["id"]

    def link_with_topup(_: int) -> None:
        partner.buy(plan_id, stop)
        for link_id in partner.promised.links.keys() - partner.promised.topups.keys():
            partner.top_up(link_id, stop)

    def repeat(work: Callable[[int], None]) -> None:
        try:
            for turn in itertools.count():
                if stop.wait(PAUSE_S):
                    return
                work(turn)
        except BaseException as error:  # noqa: BLE001  # It is raised below, in the test.
            failed.append(error)

    works = (
        lambda turn: partner.look_up_many(numbers(job, job * turn), stop),
        link_with_topup,
        lambda _: partner.look_up("+447400123456", stop),
    )
    threads = [Thread(target=repeat, args=(work,)) for work in works]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        stop.set()
        for each in threads:
            each.join()
    if failed:
        raise failed[0]


def counts(partner: Partner) -> Sequence[int]:
    promised = partner.promised
    return [len(promised.jobs), len(promised.links), len(promised.topups)]


def goes_on(*partners: Partner) -> None:
    """Wait until each partner has another job, another link and another top-up."""
    for each, had in [(each, counts(each)) for each in partners]:
        wait_until(lambda each=each, had=had: all(map(int.__lt__, had, counts(each))), GOES_ON_S)
