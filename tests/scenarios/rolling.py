"""Processes that are replaced one by one while partners work, and what must hold at the end."""

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from tests.installation import numbers, wait_until
from tests.scenarios.partner import Partner
from tests.scenarios.system import PROCESSES, Release, Running, System, failures, unfinished
from tests.servers.databases import Databases

COMES_UP_S = 60.0
GOES_ON_S = 90.0
PAUSE_S = 0.1  # Between two requests of a kind: work is in flight always, and ends in time.


class Roll:
    """One installation with both releases on it, and the partners who work meanwhile."""

    def __init__(self, old: System, new: System) -> None:
        self.old = old
        self.new = new
        self.running = dict[str, Running]()
        self.partners = list[Partner]()
        self.client = ("", "")
        self.organization = ""

    def begin(self) -> None:
        """Start the earlier release, with a partner who has money and plans."""
        self.command(self.old, "migrate")
        made = self.told("org", "create", "--name", "Acme")["id"]
        self.organization, self.client = made, self.new_client(made)
        self.command(self.old, "wallet", "deposit", made, "1000000", "--reference", "first")
        self.command(self.old, "plans", "import", "app/data/demo_plans.json")
        self.running = all_of(self.old)

    def new_client(self, organization: str) -> tuple[str, str]:
        made = self.told("client", "create", "--org", organization)
        return made["client_id"], made["client_secret"]

    def told(self, *arguments: str) -> Any:
        return json.loads(self.command(self.old, *arguments, "--json"))

    def command(self, system: System, *arguments: str) -> str:
        done = system.run(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def partner(self, system: System) -> Partner:
        """Return the client at `web` of one of the releases."""
        made = Partner(system.url, *self.client)
        wait_until(lambda: made.authorize().status == 200, COMES_UP_S)
        self.partners.append(made)
        return made

    def replace(self, name: str) -> None:
        """Start the new process beside the old one, let both work, then kill the old one."""
        comes_up(self.new.start(name))
        self.goes_on()
        self.running[name].close()

    def restart(self, name: str) -> None:
        """Stop the old process as systemd does, and start the new one in its place."""
        assert self.running[name].stop() == 0, self.running[name].said()[-3000:]
        comes_up(self.new.start(name))

    def goes_on(self) -> None:
        """Wait until each partner has another job, another link and another top-up."""
        for each in self.partners:
            had = _counts(each)
            wait_until(
                lambda each=each, had=had: all(map(int.__lt__, had, _counts(each))), GOES_ON_S
            )


def _counts(partner: Partner) -> Sequence[int]:
    promised = partner.promised
    return [len(promised.jobs), len(promised.links), len(promised.topups)]


@contextmanager
def two_systems(
    home: Path,
    databases: Databases,
    broker_url: str,
    old: Release,
    **changes: str,
) -> Iterator[Roll]:
    """Make two systems as behind one proxy: a token of one is good at the other."""
    url, made = databases.new(), list[System]()
    shared = {"SIGNING_KEYS": str(home / "keys"), "PUBLIC_URL": "https://api.example", **changes}
    for name, release in (("old", old), ("new", Release())):
        (home / name).mkdir()
        made.append(System(home / name, url, broker_url, release, **shared))
    yield Roll(*made)
    for each in made:
        each.close()
    databases.drop(url)


def all_of(system: System) -> dict[str, Running]:
    """Start one process of each kind."""
    started = {name: system.start(name) for name in PROCESSES}
    for each in started.values():
        comes_up(each)
    return started


def comes_up(running: Running) -> None:
    running.says("serving" if running.name == "web" else "is at work", COMES_UP_S)


@contextmanager
def at_work(partner: Partner, job: int = 1_000) -> Iterator[None]:
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


def assert_that_nothing_is_lost(roll: Roll, capsys: pytest.CaptureFixture[str]) -> None:
    troubles = [dict(each.troubles) for each in roll.partners]
    counts = [_counts(each) for each in roll.partners]
    with capsys.disabled():
        print("\n", counts, troubles)  # noqa: T201  # Figures for whoever measures.
    at_the_end = Partner(roll.new.url, *roll.client)
    at_the_end.authorize()
    for each in roll.partners:
        at_the_end.promised = each.promised
        at_the_end.check()
    assert unfinished(roll.new) == []
    assert failures(roll.new) == ""
