"""Processes that are replaced one by one while partners work, and what must hold at the end."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.house.load import counts, goes_on
from tests.house.partner import Partner
from tests.house.running import COMES_UP_S, Running
from tests.house.system import Release, System
from tests.installation import wait_until
from tests.servers.databases import Databases


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
        self.old.command("migrate")
        made = self.old.json("org", "create", "--name", "Acme")["id"]
        client = self.old.json("client", "create", "--org", made)
        self.organization, self.client = made, (client["client_id"], client["client_secret"])
        self.old.command("wallet", "deposit", made, "1000000", "--reference", "first")
        self.old.command("plans", "import", "app/data/demo_plans.json")
        self.running = self.old.start_all()

    def partner(self, system: System) -> Partner:
        """Return the client at `web` of one of the releases."""
        made = Partner(system.url, *self.client)
        wait_until(lambda: made.authorize().status == 200, COMES_UP_S)
        self.partners.append(made)
        return made

    def replace(self, name: str) -> None:
        """Start the new process beside the old one, let both work, then kill the old one."""
        self.new.start(name).comes_up()
        self.goes_on()
        self.running[name].close()

    def restart(self, name: str) -> None:
        """Stop the old process as systemd does, and start the new one in its place."""
        assert self.running[name].stop() == 0, self.running[name].said()[-3000:]
        self.new.start(name).comes_up()

    def goes_on(self) -> None:
        """Wait until each partner has another job, another link and another top-up."""
        goes_on(*self.partners)


@contextmanager
def two_systems(home: Path, databases: Databases, broker_url: str, old: Release) -> Iterator[Roll]:
    """Make two systems as behind one proxy: a token of one is good at the other."""
    url, made = databases.new(), list[System]()
    shared = {"SIGNING_KEYS": str(home / "keys"), "PUBLIC_URL": "https://api.example"}
    for name, release in (("old", old), ("new", Release())):
        (home / name).mkdir()
        made.append(System(home / name, url, broker_url, release, **shared))
    yield Roll(*made)
    for each in made:
        each.close()
    databases.drop(url)


def assert_that_nothing_is_lost(roll: Roll, capsys: pytest.CaptureFixture[str]) -> None:
    done = [(counts(each), dict(each.troubles)) for each in roll.partners]
    with capsys.disabled():
        print("\n", done)  # noqa: T201  # Figures for whoever measures.
    at_the_end = Partner(roll.new.url, *roll.client)
    at_the_end.authorize()
    for each in roll.partners:
        at_the_end.promised = each.promised
        at_the_end.check()
    roll.new.check()
