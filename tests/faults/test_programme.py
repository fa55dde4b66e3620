"""The fault programme on real servers: whatever dies under load, every reply stays true.

`make soak` (SOAK=1) runs it and writes docs/reliability.md; without SOAK it takes ten minutes.
"""

import json
import random
import statistics
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from app.processes.readiness import what_is_missing
from tests.app.cli.shell import shell_of
from tests.faults.blows import KILLS, fill_disk, purge, without_late_work
from tests.faults.load import FAILING
from tests.faults.observer import Observer
from tests.faults.partner import Partner
from tests.faults.places import lanes
from tests.faults.programme import Programme, under_load
from tests.faults.report import SOAK, WRITES, Report
from tests.faults.servers import private_servers, program
from tests.faults.system import System, running_system
from tests.faults.truth import Truth
from tests.house.partner import NUMBER_PATH
from tests.installation import numbers, wait_until

SEED = 2026
TIMES = 2 if SOAK else 1  # Each failpoint.
KILLS_AT_LEAST = 40 if SOAK else 10
RESTARTS = 5 if SOAK else 1
PURGES = 3 if SOAK else 1
JUMP_S = 7_200.0
LONG_S = 3_600

pytestmark = [
    pytest.mark.soak,
    pytest.mark.timeout(LONG_S),
    # The port mapper of RabbitMQ goes on beside its starter, and is ended by its guard.
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),
]


@pytest.fixture(scope="module")
def report(request: pytest.FixtureRequest) -> Iterator[Report]:
    """The table, written at the end where that was asked for and nothing has failed."""
    made = Report()
    yield made
    if WRITES and not request.session.testsfailed:
        made.write()


@pytest.fixture(scope="module")
def observer(system: System) -> Iterator[Observer]:
    """Whoever follows the log of that system, through everything that befalls it."""
    with watching(system) as made:
        yield made


@contextmanager
def watching(system: System) -> Iterator[Observer]:
    made = Observer(system.installation.process())
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """All processes on servers of their own."""
    directory = tmp_path_factory.mktemp("system")
    with private_servers() as servers, running_system(directory, servers) as made:
        yield made


def test_processes_may_be_killed_at_every_failpoint(
    system: System, observer: Observer, report: Report
) -> None:
    with under_load(system, observer, report, SEED) as programme:
        quiet_recovery(programme)
        programme.reach_all(lanes(TIMES, SEED))
        first_items(programme, "over all failpoints")
        patience(programme)


def test_processes_and_servers_may_be_killed_and_restarted_at_any_moment(
    system: System, observer: Observer, report: Report
) -> None:
    system.servers.checkpoint()
    chance = random.Random(SEED)
    kills = [*chain.from_iterable(repeat(list(KILLS), -(-KILLS_AT_LEAST // len(KILLS))))]
    kills = [*kills[: len(KILLS)], *chance.sample(kills[len(KILLS) :], KILLS_AT_LEAST - len(KILLS))]
    chance.shuffle(kills)
    with under_load(system, observer, report, SEED + 1) as programme:
        for fault in kills:
            programme.inflict(fault, partial(KILLS[fault], system))
        for _ in range(RESTARTS):
            programme.inflict("RabbitMQ restarted", system.servers.rabbitmq.restart)
            programme.inflict("PostgreSQL restarted", system.servers.postgres.restart)


def test_queues_disk_and_clock_may_fail(system: System, observer: Observer, report: Report) -> None:
    system.servers.checkpoint()
    with under_load(system, observer, report, SEED + 2) as programme:
        for _ in range(PURGES):
            programme.inflict("queues purged", lambda: purge(system))
        if system.servers.disk is not None:
            programme.inflict("disk of PostgreSQL full", lambda: fill_disk(programme))
        with without_late_work(programme):
            programme.inflict("all clocks two hours ahead, then right", lambda: jump(system))


def jump(system: System) -> None:
    """Set all clocks ahead, and right again when `web` is no longer ready."""
    system.shift_clock(JUMP_S)
    wait_until(lambda: readiness(system) == 503)
    system.shift_clock(0)


def readiness(system: System) -> int:
    """Return the status of a probe of web."""
    try:
        with urlopen(f"http://127.0.0.1:{system.installation.environment['PORT']}/readyz") as reply:
            return int(reply.status)
    except HTTPError as error:
        with error:
            return error.code


def test_a_restored_log_rebuilds_what_is_newer_and_serves_again(
    system: System, observer: Observer, report: Report
) -> None:
    with under_load(system, observer, report, SEED + 3) as before:
        pass
    dump = back_up(system)
    live_on(before.load.partner)
    lags = system.outside.observed.follower_lags
    wait_until(lambda: not any(lag.behind for lag, _ in lags()))  # Else nothing would be newer.
    assert set(system.stop_members()) == {0}
    began_at = time.monotonic()
    restore(system, dump)
    system.reopen()
    assert what_is_missing(system.outside) is not None
    system.start_members()
    migrated = shell_of(system.installation).run("migrate", "--json")
    assert "no longer holds the event" in migrated.stderr
    assert len(json.loads(migrated.stdout)["built"]) == len(system.outside.models)
    with watching(system) as again, under_load(system, again, report, SEED + 5):
        report.note("log restored from a backup, read models newer", began_at)
        found = Truth(before.load, again).check()
        assert found.all() == []


def live_on(partner: Partner) -> None:
    """Let things happen that the backup does not know."""
    for number in range(20):
        reply = partner.ask(
            "POST", f"{NUMBER_PATH}%2B{numbers(1, number)[0][1:]}", key=f"new-{number}"
        )
        assert reply.status == 200


# What has to be backed up; all else can be rebuilt or lost.
TABLES = ("log_events", "personal_keys", "personal_key_branches")
STEP_S_MAX = 60.0


def back_up(system: System) -> Path:
    """Dump the rows of the log and of the keys of personal data; return the file."""
    dump = system.directory / "backup.sql"
    chosen = [f"--table={table}" for table in TABLES]
    _run("pg_dump", "--data-only", *chosen, "--file", dump, system.database_url)
    return dump


def restore(system: System, dump: Path) -> None:
    """Put the log back to where it was; nobody else may be connected to it meanwhile.

    The tables stay, because views read them.
    """
    stop = ["--set", "ON_ERROR_STOP=1", "--single-transaction", "--quiet"]
    empty = ["--command", f"TRUNCATE {', '.join(TABLES)}"]
    _run("psql", "--no-psqlrc", *stop, *empty, "--file", dump, system.database_url)


def _run(name: str, *arguments: str | Path) -> None:
    command = [program(name), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=STEP_S_MAX)
    assert done.returncode == 0, done.stderr


QUIET_RUNS = 5


def quiet_recovery(programme: Programme) -> None:
    """Measure what "recovery" takes after no fault at all: the time of the work itself."""
    for _ in range(QUIET_RUNS):
        programme.inflict("none, for comparison", int)
    first_items(programme, "undisturbed")


def first_items(programme: Programme, when: str) -> None:
    """Note how long after its 202 the first items of a job were settled.

    A number that fails holds its slice up until it has been asked for three times.
    """
    settled_at = programme.observer.settled_at
    jobs = [
        job
        for job in programme.load.ledger.of("job")
        if job.id in settled_at and FAILING not in job.request["phone_numbers"]
    ]
    waits = sorted(1_000 * max(0.0, settled_at[job.id] - job.answered_at) for job in jobs)
    assert waits
    found = (
        f"median {statistics.median(waits):.0f} ms, longest {waits[-1]:.0f} ms, {len(waits)} jobs"
    )
    programme.report.figures.append((f"from 202 to the first settled items, {when}", found))


def patience(programme: Programme) -> None:
    """Note how long clients had to ask until they were answered, repeats included."""
    for kind, name in (("lookup", "lookup"), ("job", "job accepted"), ("link", "link")):
        promises = programme.load.ledger.of(kind)  # type: ignore[arg-type]  # From the line above.
        waits = sorted(each.answered_at - each.began_at for each in promises)
        found = f"median {statistics.median(waits):.1f} s, longest {waits[-1]:.1f} s"
        programme.report.figures.append(
            (f"{name}: until answered, with repeats, over all failpoints", found)
        )
