"""The service is killed in the midst of its work, again and again: nothing is lost or doubled."""

import itertools
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest

from domain.accounts.wallet import Wallet, wallet_id
from domain.lookups.bulk_job import BulkJob
from domain.lookups.single import NumberLookup
from tests.app.cli.shell import shell_of
from tests.house.partner import Partner
from tests.house.running import Served
from tests.installation import PRICE_MICROS, Installation, Process, numbers, wait_until
from tests.plan_files import make_demo
from tests.projections.histories import DOWN
from tests.servers.running import free_port

KILLS = 6 if os.environ.get("SOAK") else 2


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    made = Installation(tmp_path, PORT=str(free_port()), LOG_FORMAT="json")
    yield made
    made.close()


def live(partner: Partner, stop: Event) -> None:
    """Send a job and lookups, again and again, each under its key until it was answered."""
    for turn in itertools.count():
        partner.look_up_many([*numbers(999, turn), DOWN], stop)
        for number in numbers(2, turn):
            partner.look_up(number, stop)
        if stop.wait(0.02):
            return


def jobs(process: Process) -> list[BulkJob]:
    created = process.events(BulkJob.Created)
    return [process.log.get(BulkJob, each.originator_id) for each in created]


def in_the_midst(process: Process) -> Callable[[], bool]:
    """Tell, from now on, when work has been done and work is open."""
    before = len(process.events(BulkJob.ItemsCompleted))

    def reached() -> bool:
        done = len(process.events(BulkJob.ItemsCompleted)) > before + 2
        return done and any(job.finished_at is None for job in jobs(process))

    return reached


def forget_leases(process: Process) -> None:
    """Lose what the dead process held, so that nobody waits half a minute for it to lapse."""
    with process.stores.writing() as connection:
        connection.exec_driver_sql("DELETE FROM counters WHERE name = 'leases'")


@pytest.mark.rounds
def test_whenever_it_is_killed_every_accepted_job_ends_and_the_money_is_exact(
    installation: Installation,
) -> None:
    stop, process = Event(), installation.process()
    demo = make_demo(process)
    process.deposit(demo.organization, "1000.00")  # A quick machine buys twenty jobs and more.
    before = process.log.get(Wallet, wallet_id(demo.organization)).balance_micros
    url = f"http://127.0.0.1:{installation.environment['PORT']}"
    partner = Partner(url, demo.client_id, demo.client_secret)
    with ThreadPoolExecutor(1) as pool:
        try:
            for number in range(KILLS):
                with closing(Served(shell_of(installation), "serve").comes_up()) as service:
                    if not number:
                        assert partner.authorize().status == 200
                        living = pool.submit(live, partner, stop)
                    wait_until(in_the_midst(process))
                    service.kill()
                forget_leases(process)
            with closing(Served(shell_of(installation), "serve").comes_up()) as service:
                had = len(partner.promised.charges)
                wait_until(lambda: living.done() or len(partner.promised.charges) > had)
                stop.set()
                living.result()
                partner.check()
                assert shell_of(installation).json("audit", "verify")["failures"] == []
                assert service.stop() == 0
        finally:
            stop.set()
    assert "no reply" in {each.partition(" ")[2] for each in partner.troubles}
    assert partner.given_up == 0
    spent = before - process.log.get(Wallet, wallet_id(demo.organization)).balance_micros
    check_money(process, partner, spent)


def check_money(process: Process, partner: Partner, spent_micros: int) -> None:
    """Every promise was charged once; what failed was given back; nothing else happened."""
    made, lookups = jobs(process), len(partner.promised.charges)
    assert {str(job.id) for job in made} == partner.promised.jobs.keys()
    assert len(process.events(NumberLookup.Answered)) == lookups
    assert len(process.events(Wallet.Charged)) == len(made) + lookups
    failed = sum(len(job.failed) for job in made)
    completed = sum(len(job.completed) for job in made)
    assert completed + failed == 1_000 * len(made)
    assert failed >= len(made)
    assert spent_micros == (completed + lookups) * PRICE_MICROS
