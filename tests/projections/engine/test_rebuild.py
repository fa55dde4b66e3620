"""A rebuilt read model is what the live one is, and nothing else is left of its making."""

import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import partial

import pytest
from sqlalchemy import select

from app.processes.erasing import erase, keys_of_months, keys_of_stream
from app.processes.migrate import migrate
from domain.accounts.approvals import Proposal
from domain.accounts.organization import Organization
from domain.accounts.wallet import Adjustment
from domain.finance.statement import Month
from domain.links.link import Link
from domain.months import first_instant, month_of, next_month
from domain.webhooks.commands import Draft
from projections.engine.rebuild import Filling, ignore_progress, rebuild_all
from tests.installation import Installation, Process, sqlite_only
from tests.projections.histories import Life
from tests.projections.looking import (
    FragileWallets,
    failures,
    place_of,
    places,
    projector_of,
    register,
    rows,
    tables,
)

SEEDS = 4 if os.environ.get("SOAK") == "1" else 1


def rebuild_them(process: Process) -> None:
    reached = rebuild_all(process.source, process.models)
    assert reached == {model.name: process.log.head() for model in process.models}


def end_books(process: Process) -> None:
    """Register a webhook, fall below a threshold, propose an adjustment, and close the month."""
    owner, cause = process.organization("5.00"), replace(process.cause(), actor="operator:1")
    low = partial(Organization.set_low_balance_threshold, threshold_micros=5_000_000, cause=cause)
    process.accounts.change_organization(owner, low)
    process.look_up(owner)
    process.webhooks.register(Draft(owner, "https://a.example/", None, None, None), cause)
    process.accounts.move("deposit", owner, 1, "by-hand", cause)
    named = Adjustment.id_of(owner, "gift")
    names = {"reference": "gift", "reason": "a gift", "organization_id": owner}
    gift = Proposal.of(cause, "adjustment", named, amount_micros=2_000_000, **names)
    month = month_of(cause.at)
    later = replace(cause, at=first_instant(next_month(month)))
    process.log.append(gift, Month.close(month, later))


def forget_some(process: Process) -> None:
    """Name three links and erase one of them, a job, and all of an organization so far."""
    process.projector.catch_up()
    with process.views.reading() as connection:
        links = process.links.all(connection, None, limit=3)
        job_id = connection.execute(select(process.jobs.jobs.c.id)).scalars().first()
    cause = process.cause()
    for each in links:
        process.link_readings.rename(process.log.get(Link, each.id), "Named", cause)
    process.projector.step()
    found = [keys_of_stream(process, "link", links[0].id, None)]
    found.append(keys_of_stream(process, "job", job_id, None))
    end = next_month(month_of(cause.at))
    found += keys_of_months(process, end, links[1].organization_id, begin_anew=False)
    erase(process, found, cause)
    process.link_readings.rename(process.log.get(Link, links[0].id), "Named again", cause)


@pytest.mark.each_database
@pytest.mark.slow
@pytest.mark.rounds
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_rebuild_equals_what_was_projected_live(process: Process, seed: int) -> None:
    life = Life(process, seed)
    for _ in range(6):
        life.go_on(15)
        process.projector.step()
    life.finish()
    forget_some(process)
    end_books(process)
    process.projector.catch_up()
    live = rows(process)
    assert all(live.values())
    for _ in range(2):
        rebuild_them(process)
        assert rows(process) == live
    assert process.audit().failures == []


def test_one_model_that_cannot_be_built_holds_up_no_other(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FragileWallets, "broken_at", 1)
    process.organization()
    process.projector.catch_up()
    before = tables(process)
    for model in (process.wallets, process.transactions):
        with process.views.writing() as connection:
            connection.execute(model.tables[0].delete())
    models = [process.organizations, FragileWallets(), process.transactions]
    with pytest.raises(RuntimeError, match="a bug of this handler"):
        rebuild_all(process.source, models)
    found = rows(process)
    assert (found["wallets"], len(found["transactions"])) == ([], 1)
    assert tables(process) == before


@pytest.mark.each_database
def test_a_rebuild_that_fails_at_the_swap_changes_nothing(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.organization()
    process.projector.catch_up()
    before = (tables(process), rows(process), places(process))

    def refuse(*_: object) -> None:
        message = "no room on the disk"
        raise OSError(message)

    monkeypatch.setattr(process.positions, "start", refuse)
    with pytest.raises(OSError, match="no room"):
        rebuild_all(process.source, [process.wallets])
    assert (tables(process), rows(process), places(process)) == before


def test_a_model_that_has_stopped_is_mended_by_its_rebuild(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FragileWallets, "broken_at", 1)
    process.organization("1.00")
    projector_of(process, FragileWallets()).step()
    assert set(failures(process)) == {"wallets"}
    rebuild_all(process.source, [process.wallets])
    assert failures(process) == {}
    assert place_of(process, "wallets").position == process.log.head()
    assert len(rows(process)["wallets"]) == 1


def test_a_rebuild_catches_up_with_what_the_live_model_has_seen_meanwhile(process: Process) -> None:
    organization_id = process.organization("1.00")
    process.projector.catch_up()

    def meanwhile(*_: int) -> None:
        process.look_up(organization_id)
        process.projector.catch_up()

    models = [process.wallets]
    reached = rebuild_all(process.source, models, meanwhile)
    assert reached == {"wallets": process.log.head()} == {"wallets": 7}
    assert process.audit().failures == []


@sqlite_only("the log is a file; on PostgreSQL it is restored together with the read models")
@pytest.mark.parametrize("more", [0, 1, 5], ids=["shorter", "as long", "longer"])
def test_a_log_that_was_restored_is_told_apart_and_read_anew(
    installation: Installation, process: Process, more: int
) -> None:
    backup = installation.directory / "backup.db"
    register(process, 2)
    with closing(sqlite3.connect(installation.log_file)) as log:
        log.execute("VACUUM INTO ?", (str(backup),))
    register(process, 1)
    process.projector.catch_up()
    process.close()
    for suffix in ("", "-wal", "-shm"):
        installation.log_file.with_name(f"service.db{suffix}").unlink(missing_ok=True)
    shutil.copy(backup, installation.log_file)
    restored = installation.process()
    register(restored, more)
    assert migrate(restored) == [model.name for model in restored.models]
    assert restored.audit().ok
    assert len(rows(restored)["organizations"]) == 2 + more


def test_a_generation_can_be_filled_up_to_a_position(process: Process) -> None:
    register(process, 5)
    filling = Filling(process.views, [process.organizations])
    for until, last in ((0, None), (3, 3)):
        filling.run(process.log, until, ignore_progress)
        assert (filling.last and filling.last.position) == last
        [fresh] = filling.fresh.values()
        assert len(rows(process, [fresh])[fresh.tables[0].name]) == until
