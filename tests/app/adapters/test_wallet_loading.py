"""A wallet is what its newest entry says, whatever else lies in the database."""

from dataclasses import replace
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from domain.accounts.wallet import Wallet, wallet_id
from domain.errors import InsufficientBalance
from domain.log.log import replay
from projections.engine.database import Database
from tests.domain.build import cause, charge
from tests.installation import Installation, Process, on_sqlite
from tests.story import state_of

pytestmark = pytest.mark.each_database

SNAPSHOT_OF_OLD = Path(__file__).parents[2] / "golden" / "snapshots" / "wallet.snapshot.1.json"
# What releases that kept snapshots of wallets have left behind.
KEY = "PRIMARY KEY (originator_id, originator_version))"
OLD_TABLES = {
    "sqlite": f"stored_snapshots (originator_id TEXT, originator_version INTEGER, topic TEXT,"
    f" state BLOB, {KEY} WITHOUT ROWID",
    "postgresql": f"log_snapshots (originator_id uuid NOT NULL, originator_version bigint NOT NULL,"
    f" topic text, state bytea, {KEY}",
}


def plant_snapshot(database: Database, stream_id: UUID, version: int) -> None:
    """Leave a snapshot that promises a million millions."""
    with database.writing() as connection:
        engine = connection.dialect.name
        connection.execute(text(f"CREATE TABLE {OLD_TABLES[engine]}"))
        table, stream = OLD_TABLES[engine].split()[0], stream_id
        its = {"stream": stream.hex if engine == "sqlite" else stream, "version": version}
        connection.execute(
            text(f"INSERT INTO {table} VALUES (:stream, :version, :topic, :state)"),  # noqa: S608  # The name of the table is a constant of this test.
            {**its, "topic": "wallet.snapshot.1", "state": SNAPSHOT_OF_OLD.read_bytes()},
        )


def spend(process: Process, organization: UUID, amount: str) -> None:
    wanted = charge(amount, currency="USD")
    process.committer.commit(wallet_id(organization), lambda wallet: wallet.book([wanted], cause()))


@pytest.mark.parametrize("ahead", [on_sqlite(0), 1, on_sqlite(500)])
def test_a_snapshot_of_an_old_release_is_not_believed(
    installation: Installation, process: Process, ahead: int
) -> None:
    organization = process.organization("1.00")
    spend(process, organization, "0.25")
    held = process.log.get(Wallet, wallet_id(organization))
    plant_snapshot(process.databases.keys, held.id, held.version + ahead)
    fresh = installation.process()
    with pytest.raises(InsufficientBalance):
        spend(fresh, organization, "0.76")
    spend(fresh, organization, "0.75")
    assert fresh.log.get(Wallet, held.id).balance_micros == 0


def test_a_wallet_loads_as_its_replay_whatever_its_newest_event(process: Process) -> None:
    organization = process.organization("0")
    for amount in ("", "0.01", "0.02"):
        if amount:
            process.accounts.move("deposit", organization, 10_000, amount, process.cause())
        replayed = replay(process.log.history(wallet_id(organization)))
        assert isinstance(replayed, Wallet)
        loaded = process.log.get(Wallet, replayed.id)
        # When it was opened only its first event says, and no decision asks.
        opened = {"_created_on": None}
        assert state_of(loaded) | opened == state_of(replayed) | opened


def test_wallets_load_together_and_only_those_that_are_there(process: Process) -> None:
    organizations = [process.organization(amount) for amount in ("0", "1.00", "2.00")]
    streams = [wallet_id(each) for each in organizations]
    found = process.log.find_all(Wallet, [*streams, uuid4(), organizations[0]])
    assert [found.pop(each).balance_micros for each in streams] == [0, 1_000_000, 2_000_000]
    assert found == {}  # Of no stream, and of one of another kind.


def test_an_event_is_overtaken_when_its_place_is_taken(process: Process) -> None:
    stored = [
        process.log.mapper.to_stored_event(event)
        for event in process.log.history(wallet_id(process.organization("1.00")))
    ]
    following = replace(stored[-1], originator_version=stored[-1].originator_version + 1)
    new = replace(following, originator_id=uuid4(), originator_version=1)
    assert process.log.overtaken([new, following]) == set()
    assert process.log.overtaken([new, following, stored[-1]]) == {following.originator_id}
    assert process.log.overtaken([]) == set()
