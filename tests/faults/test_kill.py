"""The service is killed in the midst of its work, again and again: nothing is lost or doubled."""

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from threading import Event
from urllib.parse import quote

import pytest

from domain.accounts.wallet import Wallet, wallet_id
from domain.log.aggregate import Event as Fact
from domain.lookups.bulk_job import BulkJob
from domain.lookups.number_lookup import NumberLookup
from tests.app.cli.shell import shell_of
from tests.faults.ledger import Ledger
from tests.faults.partner import Partner
from tests.house.partner import NUMBER_PATH, Reply
from tests.house.running import Served
from tests.installation import (
    PRICE_MICROS,
    Installation,
    Process,
    numbers,
    wait_until,
)
from tests.projections.histories import DOWN
from tests.servers.running import free_port

KILLS = 6 if os.environ.get("SOAK") else 3
WALL_S_MAX = 60.0
DEPOSIT_MICROS = 1_000_000_000


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    made = Installation(tmp_path, PORT=str(free_port()), LOG_FORMAT="json")
    yield made
    made.close()


class Insistent:
    """Sends jobs and lookups side by side, each under its key until it was answered."""

    def __init__(self, installation: Installation) -> None:
        process = installation.process()
        process.keys.ensure()
        self.organization_id = process.organization("1000.00")
        client_id = process.client(self.organization_id)
        token = process.issuer.issue(client_id, self.organization_id, ["lookup", "wallet"])
        self.partner = Partner(int(installation.environment["PORT"]), token, Ledger())
        self.jobs: dict[str, str] = {}  # By key: what the client was promised.
        self.lookups: dict[str, str] = {}
        self._unanswered: dict[str, None] = {}  # In their order.
        self._made = 0

    def live(self, dead: Event) -> None:
        """Ask for more until the service is dead."""
        while not dead.is_set():
            self._made += 1
            kind = "job" if self._made % 3 == 0 else "lookup"
            for key in [*self._unanswered, f"{kind}-{self._made}"]:
                self._send(key)
            dead.wait(0.02)

    def settle(self) -> None:
        """Send what was never answered once more, then everything: each outcome has to stand."""
        for key in [*self._unanswered]:
            self._send(key)
        assert not self._unanswered
        for key, outcome in [*self.jobs.items(), *self.lookups.items()]:
            reply = self._ask(key)
            assert reply is not None
            assert (reply.replayed, _id_of(reply)) == (True, outcome)

    def _send(self, key: str) -> None:
        reply = self._ask(key)
        if reply is None:
            self._unanswered[key] = None
            return
        assert reply.status in {200, 202}, reply
        kept = self.jobs if key.startswith("job") else self.lookups
        kept[key] = _id_of(reply)
        self._unanswered.pop(key, None)

    def _ask(self, key: str) -> Reply | None:
        start = int(key.rpartition("-")[2])
        if key.startswith("job"):
            body = {"phone_numbers": [*numbers(999, start), DOWN]}
            return self.partner.once("POST", "/number-lookup/bulk", body, key)
        return self.partner.once("POST", NUMBER_PATH + quote(numbers(1, start)[0]), key=key)


def _id_of(reply: Reply) -> str:
    found = reply.json["data"].get("job_id") or reply.json["meta"]["lookup_id"]
    return str(found)


class Watcher:
    """Looks at the log of the service from outside."""

    def __init__(self, process: Process) -> None:
        self.process = process

    def events(self, kind: type[Fact]) -> int:
        return len(self.process.events(kind))

    def jobs(self) -> list[BulkJob]:
        created = self.process.events(BulkJob.Created)
        return [self.process.log.get(BulkJob, each.originator_id) for each in created]

    def in_the_midst(self) -> Callable[[], bool]:
        """Tell, from now on, when work has been done and work is open."""
        before = self.events(BulkJob.ItemsCompleted)

        def reached() -> bool:
            done = self.events(BulkJob.ItemsCompleted) > before + 2
            return done and any(job.finished_at is None for job in self.jobs())

        return reached

    def all_have_ended(self) -> bool:
        return all(job.finished_at is not None for job in self.jobs())


@pytest.mark.rounds
def test_whenever_it_is_killed_every_accepted_job_ends_and_the_money_is_exact(
    installation: Installation,
) -> None:
    started = time.monotonic()
    watcher = Watcher(installation.process())
    partner = Insistent(installation)
    for _ in range(KILLS):
        live_and_die(installation, partner, watcher)
    with closing(Served(shell_of(installation), "serve").comes_up()) as service:
        partner.settle()
        wait_until(watcher.all_have_ended, timeout_s=WALL_S_MAX)
        check_replies(partner)
        assert shell_of(installation).json("audit", "verify")["failures"] == []
        assert service.stop() == 0
    check_money(watcher, partner)
    assert time.monotonic() - started < WALL_S_MAX


def live_and_die(installation: Installation, partner: Insistent, watcher: Watcher) -> None:
    """Let the service live until it is in the midst of its work, then kill it."""
    dead = Event()
    with ThreadPoolExecutor(1) as pool:
        try:
            with closing(Served(shell_of(installation), "serve").comes_up()) as service:
                living = pool.submit(partner.live, dead)
                wait_until(watcher.in_the_midst())
                service.kill()
        finally:
            dead.set()
        living.result()
    forget_leases(watcher.process)


def forget_leases(process: Process) -> None:
    """Lose what the dead process held, so that nobody waits half a minute for it to lapse."""
    with process.stores.writing() as connection:
        connection.exec_driver_sql("DELETE FROM counters WHERE name = 'leases'")


def check_replies(partner: Insistent) -> None:
    """Every job that was promised reads back as one that has ended, as soon as followers know."""

    def has_ended(job_id: str) -> bool:
        reply = partner.partner.once("GET", f"/number-lookup/bulk/{job_id}")
        return reply is not None and reply.json["data"]["status"] in {"completed", "failed"}

    for job_id in partner.jobs.values():
        wait_until(partial(has_ended, job_id))


def check_money(watcher: Watcher, partner: Insistent) -> None:
    """Every promise was charged once; what failed was given back; nothing else happened."""
    jobs = watcher.jobs()
    assert {str(job.id) for job in jobs} == set(partner.jobs.values())
    assert watcher.events(NumberLookup.Answered) == len(partner.lookups)
    assert watcher.events(Wallet.Charged) == len(partner.jobs) + len(partner.lookups)
    failed = sum(len(job.failed) for job in jobs)
    completed = sum(len(job.completed) for job in jobs)
    assert completed + failed == 1_000 * len(jobs)
    assert failed >= len(jobs)
    wallet = watcher.process.log.get(Wallet, wallet_id(partner.organization_id))
    spent = (completed + len(partner.lookups)) * PRICE_MICROS
    assert wallet.balance_micros == DEPOSIT_MICROS - spent
