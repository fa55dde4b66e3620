"""A fee is frozen once and charged once, whoever is killed and however many run at once."""

from collections.abc import Callable, Iterator
from threading import Barrier, Thread
from typing import Literal, NamedTuple
from uuid import UUID

import pytest

from domain.accounts.monthly_fee import MonthlyFee, monthly_fee_id
from tests.faulty_network import Killed
from tests.installation import Installation, Process, SetClock
from tests.workers.fees import (
    activate,
    charged,
    customer,
    failures,
    frozen,
    moment,
    pay_in,
    set_fee,
    switch,
)
from tests.workers.meanwhile import around, failing

FEBRUARY = [("2026-02", "1.50")]


class Kill(NamedTuple):
    """The end of a process, before or after a call, and what it leaves."""

    place: str
    when: Literal["before", "after"]
    is_frozen: bool
    is_charged: bool


def fee_of(process: Process, organization_id: UUID) -> MonthlyFee:
    return process.log.get(MonthlyFee, monthly_fee_id(organization_id, "2026-02"))


@pytest.fixture
def clock() -> SetClock:
    return SetClock(moment("2026-01-15 12:00"))


@pytest.fixture
def process(installation: Installation, clock: SetClock) -> Process:
    return installation.process(clock)


@pytest.fixture
def other(installation: Installation, clock: SetClock) -> Process:
    """Another process on the same files."""
    return installation.process(clock)


@pytest.fixture
def organization_id(process: Process, clock: SetClock) -> UUID:
    """An organization that owes 1.50 for February, which has begun."""
    registered = customer(process)
    clock.now = moment("2026-02-01 00:01")
    return registered


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """What happens here is foreseen: it is no error for anybody to look at."""
    yield
    assert [record for record in caplog.get_records("call") if record.exc_info] == []


@pytest.fixture
def run_other(other: Process, clock: SetClock) -> Callable[[], object]:
    """What lets the other process have its tick, a moment later."""

    def run() -> None:
        clock.forward(seconds=1)
        assert other.monthly_fees.run() == 1

    return run


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(
    "place",
    ["fee_book.newest", "link_spans.active_at", "log.append", "log.get", "committer.commit"],
)
def test_another_process_may_do_all_of_it_in_between(
    process: Process,
    organization_id: UUID,
    run_other: Callable[[], object],
    monkeypatch: pytest.MonkeyPatch,
    place: str,
) -> None:
    around(monkeypatch, process, place, before=run_other)
    assert process.monthly_fees.run() == 0
    assert charged(process, organization_id) == FEBRUARY
    assert failures(process) == []


def test_the_last_money_pays_for_one_charge_of_two_processes(
    process: Process,
    clock: SetClock,
    run_other: Callable[[], object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    organization_id = customer(process, balance="1.50")
    clock.now = moment("2026-02-01 00:01")
    around(monkeypatch, process, "committer.commit", before=run_other)
    assert process.monthly_fees.run() == 0
    pay_in(process, organization_id, "1.50")
    clock.forward(days=2)
    assert process.monthly_fees.run() == 0
    assert charged(process, organization_id) == FEBRUARY


@pytest.mark.slow
@pytest.mark.usefixtures("quiet")
def test_two_clocks_at_once_charge_each_organization_once(
    installation: Installation, process: Process, clock: SetClock
) -> None:
    organizations = [customer(process) for _ in range(30)]
    clock.now = moment("2026-04-02")
    start = Barrier(2)

    def tick(each: Process) -> None:
        start.wait()
        each.monthly_fees.run()

    threads = [Thread(target=tick, args=(installation.process(clock),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    months = ["2026-02", "2026-03", "2026-04"]
    for organization_id in organizations:
        assert charged(process, organization_id) == [(month, "1.50") for month in months]
    assert failures(process) == []


@pytest.mark.parametrize(
    "kill",
    [
        Kill("log.append", "before", is_frozen=False, is_charged=False),
        Kill("log.append", "after", is_frozen=True, is_charged=False),
        Kill("committer.commit", "before", is_frozen=True, is_charged=False),
        Kill("committer.commit", "after", is_frozen=True, is_charged=True),
    ],
)
def test_a_process_that_is_killed_leaves_the_rest_to_the_next(
    process: Process,
    other: Process,
    organization_id: UUID,
    monkeypatch: pytest.MonkeyPatch,
    kill: Kill,
) -> None:
    around(monkeypatch, process, kill.place, **{kill.when: failing(Killed())})
    with pytest.raises(Killed):
        process.monthly_fees.run()
    assert frozen(other, organization_id) == (dict(FEBRUARY) if kill.is_frozen else {})
    assert charged(other, organization_id) == (FEBRUARY if kill.is_charged else [])
    assert other.monthly_fees.run() == (0 if kill.is_charged else 1)
    assert charged(other, organization_id) == FEBRUARY
    assert failures(other) == []


def test_what_is_frozen_stays_whatever_changes_before_the_charge(
    process: Process, other: Process, organization_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    around(monkeypatch, process, "committer.commit", before=failing(Killed()))
    with pytest.raises(Killed):
        process.monthly_fees.run()
    (link_id,) = fee_of(process, organization_id).due.link_ids
    switch(other, link_id, "suspended", at=moment("2026-01-31"))
    activate(other, organization_id)
    activate(other, organization_id)
    set_fee(other, organization_id, "7")
    assert other.monthly_fees.run() == 1
    assert charged(other, organization_id) == FEBRUARY
    assert fee_of(other, organization_id).is_charged
