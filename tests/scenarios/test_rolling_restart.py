"""An earlier release is replaced process by process while a partner works; nothing is lost.

`TEST_OLD_COMMIT` is that release. `TEST_OLD_PYTHON` names an interpreter that has its locked
packages; without it one is made.
"""

import io
import itertools
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from pathlib import Path
from threading import Event, Thread
from uuid import UUID

import pytest

from tests.installation import numbers, wait_until
from tests.scenarios.partner import Partner
from tests.scenarios.system import PROCESSES, ROOT, Release, Running, System, failures, unfinished
from tests.servers.databases import Databases

# By default the last release whose modules have their former places.
EARLIER = os.environ.get("TEST_OLD_COMMIT", "289da21")
COMES_UP_S = 60.0
GOES_ON_S = 90.0
INSTALLED_S = 600.0
PAUSE_S = 0.1  # Between two requests of a kind: work is in flight always, and ends in time.
TELLS = {"link.usage_reached", "link.expiry_near"}
FOLLOWERS = ("projector", "dispatcher", "clock")
# The order of docs/deployment.md, and the two that an operator may take by mistake.
ORDERS = {
    "followers first": (*FOLLOWERS, "worker", "web"),
    "web first": ("web", "worker", *FOLLOWERS),
    "worker first": ("worker", "web", *FOLLOWERS),
}

pytestmark = [
    pytest.mark.soak,  # It installs the packages of a release and starts ten processes.
    pytest.mark.timeout(1_200),
]


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """The earlier release with its own packages; skips where its commit is not in this clone."""
    found = _git("cat-file", "-e", f"{EARLIER}^{{commit}}")
    if found.returncode != 0:
        pytest.skip(f"this clone does not have the commit {EARLIER}: git fetch --unshallow")
    home = tmp_path_factory.mktemp("earlier")
    root = home / "checkout"
    with tarfile.open(fileobj=io.BytesIO(_git("archive", EARLIER).stdout)) as archive:
        archive.extractall(root, filter="data")
    return Release(root, os.environ.get("TEST_OLD_PYTHON") or _installed(home, root))


def _git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    git = shutil.which("git") or "git"
    return subprocess.run([git, *arguments], cwd=ROOT, capture_output=True, check=False)


def _installed(home: Path, root: Path) -> str:
    subprocess.run([sys.executable, "-m", "venv", home / "venv"], check=True, timeout=INSTALLED_S)
    python = str(home / "venv/bin/python")
    pip = [python, "-m", "pip", "-qq", "--no-input", "--disable-pip-version-check"]
    lock = ["--require-hashes", "--requirement", root / "requirements.lock"]
    subprocess.run([*pip, "install", *lock], check=True, timeout=INSTALLED_S)
    return python


class Roll:
    """One installation with both releases on it, and the partners who work meanwhile."""

    def __init__(self, old: System, new: System) -> None:
        self.old = old
        self.new = new
        self.running = dict[str, Running]()
        self.partners = list[Partner]()
        self.client = ("", "")

    def begin(self) -> None:
        """Start the earlier release, with a partner who has money and plans."""
        self.command(self.old, "migrate")
        made = json.loads(self.command(self.old, "org", "create", "--name", "Acme", "--json"))["id"]
        client = json.loads(self.command(self.old, "client", "create", "--org", made, "--json"))
        self.client = (client["client_id"], client["client_secret"])
        self.command(self.old, "wallet", "deposit", made, "1000000", "--reference", "first")
        self.command(self.old, "plans", "import", "app/data/demo_plans.json")
        self.running = {name: self.old.start(name) for name in PROCESSES}
        for each in self.running.values():
            _comes_up(each)

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
        _comes_up(self.new.start(name))
        self.goes_on()
        self.running[name].close()

    def restart(self, name: str) -> None:
        """Stop the old process as systemd does, and start the new one in its place."""
        assert self.running[name].stop() == 0, self.running[name].said()[-3000:]
        _comes_up(self.new.start(name))

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


def _comes_up(running: Running) -> None:
    running.says("serving" if running.name == "web" else "is at work", COMES_UP_S)


@pytest.fixture
def roll(tmp_path: Path, databases: Databases, broker_url: str, earlier: Release) -> Iterator[Roll]:
    url = databases.new()
    # As behind one proxy: a token of one release is good at the other.
    shared = {
        "SIGNING_KEYS": str(tmp_path / "keys"),
        "PUBLIC_URL": "https://api.example",
        "WEB_WORKERS": "2",
    }
    homes = [tmp_path / "old", tmp_path / "new"]
    for home in homes:
        home.mkdir()
    old = System(homes[0], url, broker_url, earlier, **shared)
    new = System(homes[1], url, broker_url, **shared)
    yield Roll(old, new)
    old.close()
    new.close()
    databases.drop(url)


@contextmanager
def at_work(partner: Partner) -> Iterator[None]:
    """Let a partner look up, send jobs of 1,000, buy links and top them up without pause."""
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
        lambda turn: partner.look_up_many(numbers(1_000, 1_000 * turn), stop),
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


@pytest.mark.parametrize("how", [Roll.replace, Roll.restart], ids=["beside", "in place"])
@pytest.mark.parametrize("order", ORDERS)
def test_each_process_is_replaced_while_a_partner_works(
    roll: Roll, order: str, how: Callable[[Roll, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    roll.begin()
    partner = roll.partner(roll.old)
    with ExitStack() as load:
        load.enter_context(at_work(partner))
        roll.goes_on()
        roll.command(roll.new, "migrate")
        roll.goes_on()
        for name in ORDERS[order]:
            how(roll, name)
            if name == "web":
                partner.url = roll.new.url  # What had no reply is sent again there, by its key.
                load.enter_context(at_work(roll.partner(roll.new)))
            if name == FOLLOWERS[-1]:
                roll.command(roll.new, "org", "create", "--name", "Events that are new")
            roll.goes_on()
    assert_that_nothing_is_lost(roll, capsys)


def test_an_old_follower_waits_at_an_event_that_only_the_new_release_knows(
    roll: Roll, capsys: pytest.CaptureFixture[str]
) -> None:
    roll.begin()
    roll.command(roll.new, "migrate")
    roll.restart("web")
    partner = roll.partner(roll.new)
    roll.command(roll.new, "org", "create", "--name", "Events that are new")
    partner.look_up_many(numbers(1_000), Event())
    for name in ("projector", "dispatcher"):
        roll.running[name].says("ledger.opened")
    for name in FOLLOWERS:
        roll.restart(name)
    with at_work(partner):
        roll.goes_on()
    roll.restart("worker")
    assert_that_nothing_is_lost(roll, capsys)


@pytest.mark.parametrize(("refresh_s", "told"), [("900", 500), ("0", 200)])
def test_an_old_web_reads_no_link_that_the_new_release_tells_of_unless_it_tells_nothing(
    roll: Roll, refresh_s: str, told: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """The change log asks for READINGS_REFRESH_S=0 until all processes are replaced."""
    roll.new.environment["READINGS_REFRESH_S"] = refresh_s
    roll.begin()
    partner = roll.partner(roll.old)
    plans = partner.ask("GET", "/v1/plans?country=FR").data["data"]
    plan_id = min(plans, key=lambda each: int(each["validity_days"]))["id"]
    for _ in range(2):
        partner.buy(plan_id, Event())
    had, more = partner.promised.links
    roll.command(roll.new, "migrate")
    for name in FOLLOWERS:
        roll.restart(name)
    roll.command(roll.new, "sandbox", "advance", "160")  # A day before its plan ends.
    if told != HTTPStatus.OK:
        wait_until(lambda: TELLS & topics(roll, had), GOES_ON_S)
    key, add = {"Idempotency-Key": "once"}, {"add": [plan_id]}
    assert partner.ask("PUT", f"/v1/links/{had}/plans", add, key).status == told
    for name in ("worker", "web"):
        roll.restart(name)
    partner.url = roll.new.url
    wait_until(
        lambda: partner.ask("PUT", f"/v1/links/{had}/plans", add, key).status == HTTPStatus.OK,
        GOES_ON_S,
    )
    partner.promised.topups[had] = 2
    partner.top_up(more, Event())
    partner.buy(plan_id, Event())
    assert_that_nothing_is_lost(roll, capsys)


def topics(roll: Roll, link_id: str) -> set[str]:
    return {each.TOPIC for each in roll.new.container.log.history(UUID(link_id))}


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
    letters = json.loads(roll.new.run("dead-letters", "list", "--json").stdout)["data"]
    assert [each for each in letters if each["count"]] == []
