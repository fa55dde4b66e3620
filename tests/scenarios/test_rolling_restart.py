"""An earlier release is replaced process by process while a partner works; nothing is lost.

`TEST_OLD_COMMIT` is that release. `TEST_OLD_PYTHON` names an interpreter that has its locked
packages; without it one is made.
"""

import io
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from threading import Event
from uuid import UUID

import pytest

from tests.house.load import GOES_ON_S, at_work
from tests.house.system import ROOT, Release
from tests.installation import numbers, wait_until
from tests.scenarios.rolling import Roll, assert_that_nothing_is_lost, two_systems
from tests.servers.databases import Databases

# By default the last release whose modules have their former places.
EARLIER = os.environ.get("TEST_OLD_COMMIT", "289da21")
INSTALLED_S = 600.0
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


@pytest.fixture
def roll(tmp_path: Path, databases: Databases, broker_url: str, earlier: Release) -> Iterator[Roll]:
    with two_systems(tmp_path, databases, broker_url, earlier) as made:
        yield made


@pytest.mark.parametrize("how", [Roll.replace, Roll.restart], ids=["beside", "in place"])
@pytest.mark.parametrize("order", ORDERS)
def test_each_process_is_replaced_while_a_partner_works(
    roll: Roll, order: str, how: Callable[[Roll, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    roll.begin()
    partner = roll.partner(roll.old)
    with ExitStack() as load:
        load.enter_context(at_work(partner, 1_000))
        roll.goes_on()
        roll.new.command("migrate")
        roll.goes_on()
        for name in ORDERS[order]:
            how(roll, name)
            if name == "web":
                partner.url = roll.new.url  # What had no reply is sent again there, by its key.
                load.enter_context(at_work(roll.partner(roll.new), 1_000))
            if name == FOLLOWERS[-1]:
                roll.new.command("org", "create", "--name", "Events that are new")
            roll.goes_on()
    assert_that_nothing_is_lost(roll, capsys)


def test_an_old_follower_waits_at_an_event_that_only_the_new_release_knows(
    roll: Roll, capsys: pytest.CaptureFixture[str]
) -> None:
    roll.begin()
    roll.new.command("migrate")
    roll.restart("web")
    partner = roll.partner(roll.new)
    roll.new.command("org", "create", "--name", "Events that are new")
    partner.look_up_many(numbers(1_000), Event())
    for name in ("projector", "dispatcher"):
        roll.running[name].says("ledger.opened")
    for name in FOLLOWERS:
        roll.restart(name)
    with at_work(partner, 1_000):
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
    roll.new.command("migrate")
    for name in FOLLOWERS:
        roll.restart(name)
    to_its_last_day = timedelta(hours=160)
    roll.new.container.sandbox.advance(to_its_last_day, UUID(roll.organization))
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
