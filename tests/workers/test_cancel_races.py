"""A job is cancelled while workers settle it, and any of them dies at any place of a commit."""

import os
from collections.abc import Callable
from random import Random

import pytest

from domain.accounts.wallet import Wallet, wallet_id
from domain.errors import JobFinished
from domain.lookups import bulk_commands
from domain.lookups.bulk_commands import BulkRequest
from domain.lookups.bulk_job import BulkJob
from projections.audit.auditor import verify
from tests.faulty_network import Killed
from tests.installation import PRICE_MICROS, CountingProvider, Installation, Process, numbers
from tests.workers.jobs import DEPOSIT_MICROS
from tests.workers.together import together

SEEDS, GROUP = (200 if os.environ.get("SOAK") == "1" else 40), 20
ITEMS, SLICE = 10, 3
STEPS = 14
DIES, SOMEBODY_ELSE = 0.06, 0.25  # Per place that is passed.
DEPTH_MAX = 3  # Of those who come between.


class Race:
    """One job, two workers and a caller who cancels, interleaved and killed by a seed.

    Each is a process of its own, made anew after a kill. Who passes the beginning or the end of a
    commit, or the call of a provider, may die there, or somebody else may go first.
    """

    def __init__(self, installation: Installation, seed: int) -> None:
        self.installation, self.dice = installation, Random(seed)
        self.outside = installation.process()
        self.organization_id = self.outside.organization("100.00")
        wanted = numbers(ITEMS, seed * ITEMS)
        self.down = self.dice.sample(wanted, self.dice.choice((0, 1, 4)))
        request = BulkRequest(self.organization_id, wanted, PRICE_MICROS, "USD", None)
        self.job_id = self.outside.bulk_create.run(request, self.outside.cause())[0].id
        self.processes: dict[str, Process] = {}
        self.busy: list[str] = []
        self.told: set[str] = set()
        self.kills = 0
        self.is_calm = False

    def run(self) -> None:
        for _ in range(STEPS):
            self.step(self.dice.choice(("one", "two", "two", "caller")))
        self.is_calm = True
        for slice_index in range(-(-ITEMS // SLICE)):
            self.act("one", lambda it, index=slice_index: it.bulk_lookup.work(self.job_id, index))
        self.act("caller", self.cancel)

    def step(self, name: str) -> None:
        if name == "caller":
            if self.dice.random() < 0.3:
                self.act(name, self.cancel)
            return
        index = self.dice.randrange(-(-ITEMS // SLICE))
        self.act(name, lambda process: process.bulk_lookup.work(self.job_id, index))

    def act(self, name: str, do: Callable[[Process], object]) -> None:
        """Let a process do something; one that dies of it is another one the next time."""
        if name in self.busy:
            return
        process = self.processes.get(name) or self.hire(name)
        self.busy.append(name)
        try:
            do(process)
        except Killed:
            self.kills += 1
            del self.processes[name]
        finally:
            self.busy.remove(name)

    def cancel(self, process: Process) -> None:
        job = process.bulk_cancel.find(self.organization_id, self.job_id)
        try:
            assert process.bulk_cancel.run(job, process.cause()).cancelled_count
        except JobFinished:
            self.told.add("finished")
        else:
            self.told.add("cancelled")

    def hire(self, name: str) -> Process:
        provider = CountingProvider(self.down, meanwhile=self.passes)
        process = self.processes[name] = self.installation.process(provider=provider)
        for owner, call in ((process.committer, "commit"), (process.log, "append")):
            setattr(owner, call, self.passing(getattr(owner, call)))
        return process

    def passing(self, real: Callable[..., object]) -> Callable[..., object]:
        def called(*args: object, **kwargs: object) -> object:
            self.passes()
            answer = real(*args, **kwargs)
            self.passes()
            return answer

        return called

    def passes(self) -> None:
        if self.is_calm:
            return
        if self.dice.random() < DIES:
            raise Killed
        if len(self.busy) < DEPTH_MAX and self.dice.random() < SOMEBODY_ELSE:
            self.step(self.dice.choice(("one", "two", "caller", "caller")))

    def check(self) -> str:
        """Expect one outcome for all, and money for what was answered alone; return the outcome."""
        job = self.outside.log.get(BulkJob, self.job_id)
        assert len(self.told) == 1, self.told  # Who was told one thing is never told the other.
        assert job.finished_at is not None
        assert ("cancelled" in self.told) == (job.cancelled_count > 0)
        ended = len(job.completed) + len(job.failed) + job.cancelled_count
        assert (ended, job.completed & job.failed) == (ITEMS, set())
        wallet = self.outside.log.get(Wallet, wallet_id(self.organization_id))
        spent = DEPOSIT_MICROS - wallet.balance_micros
        assert spent == len(job.completed) * PRICE_MICROS
        return "cancelled in part" if job.cancelled_count not in {0, ITEMS} else self.told.pop()


@pytest.mark.slow
@pytest.mark.rounds
@pytest.mark.any_database
@pytest.mark.parametrize("first", range(0, SEEDS, GROUP))
def test_whoever_dies_every_item_ends_once_and_its_money_is_right(
    installation: Installation, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_commands, "SLICE_ITEMS", SLICE)
    seen, kills = set(), 0
    for seed in range(first, first + GROUP):
        race = Race(installation, seed)
        try:
            race.run()
            seen.add(race.check())
        except Exception as error:
            raise AssertionError(seed) from error
        kills += race.kills
    assert seen >= {"cancelled in part", "finished"}
    assert kills > GROUP // 2
    parts = race.outside
    parts.projector.catch_up()
    report = verify(parts.log, parts.views, parts.positions, parts.models)  # Event by event.
    assert report.failures == []


def test_twelve_who_cancel_at_once_beside_a_worker_give_back_once(
    installation: Installation,
) -> None:
    process = installation.process()
    organization_id = process.organization("100.00")
    request = BulkRequest(organization_id, numbers(1_000), PRICE_MICROS, "USD", None)
    job_id = process.bulk_create.run(request, process.cause())[0].id
    askers = [installation.process() for _ in range(3)]
    told = list[tuple[int, int]]()

    def ask(asker: Process) -> None:
        job = asker.bulk_cancel.find(organization_id, job_id)
        cancelled = asker.bulk_cancel.run(job, asker.cause())
        told.append((cancelled.cancelled_count, cancelled.version))

    worker = installation.process(provider=CountingProvider())
    calls = [lambda asker=asker: ask(asker) for asker in askers for _ in range(4)]
    together(lambda: worker.bulk_lookup.work(job_id, 0), *calls)
    job = process.log.get(BulkJob, job_id)
    assert len(told) == 12
    assert {count for count, _ in told} == {job.cancelled_count}
    refunds = [
        each.event for each in process.log.read(0, 1_000) if isinstance(each.event, Wallet.Refunded)
    ]
    assert [each.amount_micros for each in refunds] == [job.cancelled_count * PRICE_MICROS]
    process.projector.catch_up()
    report = verify(process.log, process.views, process.positions, process.models)
    assert report.failures == []
