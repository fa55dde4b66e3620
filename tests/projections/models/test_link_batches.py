"""What is read of links is the same however the log was cut into batches, and as it was decided."""

import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import select

from domain.accounts.wallet import Wallet
from domain.links.link import Link
from domain.links.plan_change import PlanChange
from domain.log.log import Recorded
from domain.personal import in_clear
from projections.engine.read_model import ReadModel
from tests.installation import Installation, Process
from tests.projections.forgery import forged
from tests.projections.histories import Life
from tests.projections.looking import Rows, rows

pytestmark = pytest.mark.each_database

MODELS = ("links", "due_list", "transactions", "statements", "usage")


@pytest.fixture(scope="module", params=[0, pytest.param(1, marks=pytest.mark.soak)])
def process(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, migrated: Path
) -> Iterator[Process]:
    """An installation in which everything has happened to links that can, much of it often."""
    installation = Installation(tmp_path_factory.mktemp("lived"), like=migrated)
    process = installation.process()
    life = Life(process, seed=request.param)
    life.go_on(150)
    life.finish()
    process.projector.catch_up()
    yield process
    installation.close()


@pytest.fixture(scope="module")
def events(process: Process) -> list[Recorded]:
    return process.log.read(0, 1_000_000)


def projected(
    process: Process, model: ReadModel, events: Sequence[Recorded], cuts: Sequence[int], name: str
) -> Rows:
    """Project events into tables of their own, batch by batch; return the rows by table."""
    fresh = model.of(name)
    edges = [0, *cuts, len(events)]
    with process.views.writing() as connection:
        fresh.metadata.create_all(connection)
        for start, end in pairwise(edges):
            fresh.project(connection, events[start:end])
    found = rows(process, [fresh])
    return {
        table.name: found[new.name] for table, new in zip(model.tables, fresh.tables, strict=True)
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_batches_can_be_cut_anywhere(process: Process, events: list[Recorded], name: str) -> None:
    model: ReadModel = getattr(process, name)
    whole = projected(process, model, events, [], "whole")
    assert any(whole.values())
    dice = random.Random(7)
    # On PostgreSQL a short batch is written by the same statements as a batch of one event.
    is_sqlite = process.views.engine.dialect.name == "sqlite"
    for trial, pieces in enumerate((3, 20, 150) if is_sqlite else (30,)):
        cuts = sorted(dice.sample(range(len(events)), pieces))
        assert projected(process, model, events, cuts, f"cut{trial}") == whole
    if is_sqlite:
        singly = range(1, len(events))
        assert projected(process, model, events, singly, "singly") == whole


def test_why_an_older_refund_came_follows_from_the_failure_before_it(
    process: Process, events: list[Recorded]
) -> None:
    older = [
        Recorded(position, forged(event, reason=None))
        if isinstance(event, Wallet.Refunded)
        else Recorded(position, event)
        for position, event in events
    ]
    found = projected(process, process.transactions, older, range(1, len(older)), "older")
    assert found == projected(process, process.transactions, events, [], "newer")
    with process.views.reading() as connection:
        rows = connection.execute(select(process.transactions.rows)).all()
    told = {(row.reference_type, row.reason) for row in rows if row.kind == "refund"}
    assert told >= {("job", "lookup_unavailable"), ("plan_change", "provisioning_error")}
    assert all((row.refund_of is None) == (row.kind != "refund") for row in rows)


def ids(events: Sequence[Recorded], kind: type[Link.Event] | type[PlanChange.Event]) -> set[UUID]:
    return {each.event.originator_id for each in events if isinstance(each.event, kind)}


def test_every_link_reads_as_its_aggregate(process: Process, events: list[Recorded]) -> None:
    links = [process.log.get(Link, link_id) for link_id in ids(events, Link.Event)]
    found = {each.id: each for each in process.read(process.links.all, None, limit=10**6)}
    assert set(found) == {link.id for link in links if link.is_visible}
    assert len(found) >= 3
    assert {"ended", "unlisted"} <= {each.status for each in found.values()}
    for link in links:
        if not link.is_visible:
            continue
        row = found[link.id]
        assert row.organization_id == link.organization_id
        status = "ended" if row.status == "unlisted" else row.status
        assert (row.iccid, in_clear(row.name), status) == (link.iccid, link.name, link.state)
        assert (row.created_at, row.lpa) == (link.activated_at, link.lpa)
        assert (row.installed_at, row.first_used_at) == (link.installed_at, link.first_used_at)
        assert row.activations == list(link.activations.values())


def test_links_are_active_now_whose_status_says_so(
    process: Process, events: list[Recorded]
) -> None:
    links = [process.log.get(Link, link_id) for link_id in ids(events, Link.Event)]
    for organization_id in {link.organization_id for link in links}:
        mine = [link for link in links if link.organization_id == organization_id]
        found = process.read(process.links.active_at, organization_id, process.clock())
        active = [link.id for link in mine if link.is_visible and link.state == "active"]
        assert found == sorted(active)


def test_the_history_of_a_link_is_what_the_wallet_says_of_it(
    process: Process, events: list[Recorded]
) -> None:
    for link_id in ids(events, Link.Event):
        entries = {
            each.event.transaction_id
            for each in events
            if isinstance(each.event, Wallet.Moved) and str(link_id) in str(each.event.metadata)
        }
        organization_id = process.log.get(Link, link_id).organization_id
        found, total = process.read(
            process.transactions.link_history, organization_id, link_id, slice(0, 1_000)
        )
        assert {each.id for each in found} == entries
        assert total == len(entries)


def test_what_is_unfinished_is_what_has_a_next_step(
    process: Process, events: list[Recorded]
) -> None:
    links = [process.log.get(Link, link_id) for link_id in ids(events, Link.Event)]
    changes = [process.log.get(PlanChange, each) for each in ids(events, PlanChange.Event)]
    still = {each.id for each in changes if each.finished_at is None}
    still |= {each.id for each in links if each.stage not in {"active", "ended"} or each.open_call}
    found = process.read(process.due_list.all)
    assert {row.id for row in found} == still
    assert still
