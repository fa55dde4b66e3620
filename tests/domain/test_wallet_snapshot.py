"""A snapshot makes a wallet load faster and changes nothing else."""

import logging
from functools import partial
from threading import Event
from uuid import UUID, uuid4

import pytest
from eventsourcing.persistence import OperationalError, StoredEvent

import domain.wallet_cache
from domain.application import Log, replay
from domain.committer import Committer
from domain.wallet import Wallet, wallet_id
from domain.wallet_snapshot import TOPIC, take
from tests.domain.build import ORGANIZATION, open_wallet, pay_in
from tests.domain.crowd import PATIENCE_S, Crowd
from tests.domain.writers import Writer, balance, everything
from tests.story import state_of

INTERVAL = 5


@pytest.fixture(autouse=True)
def interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domain.wallet_cache, "INTERVAL_EVENTS", INTERVAL)


def snapshots(log: Log, organization: UUID = ORGANIZATION) -> list[int]:
    """The versions of the snapshots that are kept of a wallet."""
    found = log.snapshots_recorder.select_events(wallet_id(organization))
    return [each.originator_version for each in found]


def fill(writer: Writer, payments: int) -> None:
    """Open a wallet and pay 0.01 in so many times, one by one; then let the committer end."""
    open_wallet(writer.log, writer.committer, "0", ORGANIZATION)
    for _ in range(payments):
        pay_in(writer.committer, "0.01")
    writer.committer.close()


def replayed(log: Log) -> Wallet:
    stream = wallet_id(ORGANIZATION)
    events = [each.event for each in everything(log) if each.event.originator_id == stream]
    wallet: Wallet | None = replay(events)
    assert wallet is not None
    return wallet


def keep(log: Log, topic: str, state: bytes, version: int = 4) -> None:
    """Put a snapshot into the log as other code, or a broken disk, would have left it."""
    row = StoredEvent(wallet_id(ORGANIZATION), version, topic, state)
    log.snapshots_recorder.insert_events([row])


def delete_events(log: Log, up_to_version: int) -> None:
    with log.recorder.datastore.transaction(commit=True) as cursor:  # type: ignore[attr-defined]  # this recorder is one on SQLite
        cursor.execute(
            "DELETE FROM stored_events WHERE originator_id = ? AND originator_version <= ?",
            (wallet_id(ORGANIZATION).hex, up_to_version),
        )


def test_one_is_kept_whenever_a_wallet_has_come_far_enough(writer: Writer) -> None:
    fill(writer, 3 * INTERVAL)
    assert snapshots(writer.log) == [INTERVAL, 2 * INTERVAL, 3 * INTERVAL]


def test_a_wallet_loads_from_it_equal_to_the_replay(writer: Writer) -> None:
    fill(writer, INTERVAL + 2)
    expected = replayed(writer.log)
    assert state_of(writer.log.get(Wallet, expected.id)) == state_of(expected)
    delete_events(writer.log, up_to_version=INTERVAL)  # Only the snapshot knows them now.
    assert state_of(writer.log.get(Wallet, expected.id)) == state_of(expected)


def test_a_wallet_at_the_version_of_its_snapshot_is_complete(writer: Writer) -> None:
    fill(writer, INTERVAL - 1)
    assert snapshots(writer.log) == [INTERVAL]
    loaded = writer.log.get(Wallet, wallet_id(ORGANIZATION))
    assert state_of(loaded) == state_of(replayed(writer.log))
    assert not loaded.pending_events


def test_a_new_process_goes_on_from_it(writer: Writer, other: Writer) -> None:
    fill(writer, INTERVAL + 1)
    pay_in(other.committer, "1.00")
    assert balance(other.log) == "1.06"


def test_one_of_other_code_is_ignored(writer: Writer) -> None:
    fill(writer, 3)
    other = writer.log.get(Wallet, wallet_id(ORGANIZATION))
    other.balance_micros = 1
    keep(writer.log, "wallet.snapshot.0", take(other).state)
    loaded = writer.log.get(Wallet, wallet_id(ORGANIZATION))
    assert state_of(loaded) == state_of(replayed(writer.log))


@pytest.mark.parametrize("state", [b"", b"{", b"null", b"{}", b'{"balance_micros":"much"}'])
def test_a_damaged_one_is_ignored(writer: Writer, state: bytes) -> None:
    fill(writer, 3)
    keep(writer.log, TOPIC, state)
    loaded = writer.log.get(Wallet, wallet_id(ORGANIZATION))
    assert state_of(loaded) == state_of(replayed(writer.log))


def test_it_is_kept_after_everybody_has_an_answer(
    monkeypatch: pytest.MonkeyPatch, writer: Writer
) -> None:
    answered, kept = Event(), []

    def keep_later(wallet: Wallet) -> None:
        kept.append(answered.wait(PATIENCE_S) and wallet.version)

    monkeypatch.setattr(writer.log, "keep_snapshot", keep_later)
    fill_once = partial(pay_in, writer.committer, "0.01")
    open_wallet(writer.log, writer.committer, "0", ORGANIZATION)
    for _ in range(INTERVAL - 1):
        fill_once()
    answered.set()
    writer.committer.close()
    assert kept == [INTERVAL]


def test_a_failure_to_keep_one_is_only_logged(
    monkeypatch: pytest.MonkeyPatch, writer: Writer, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: Wallet) -> None:
        raise OperationalError

    monkeypatch.setattr(writer.log, "keep_snapshot", fail)
    fill(writer, INTERVAL + 1)
    assert balance(writer.log) == "0.06"
    [record] = caplog.records
    assert (record.levelno, record.getMessage()) == (
        logging.WARNING,
        "a wallet snapshot was not kept",
    )


def test_one_that_another_process_has_kept_is_no_failure(
    writer: Writer, caplog: pytest.LogCaptureFixture
) -> None:
    open_wallet(writer.log, writer.committer, "0", ORGANIZATION)
    for _ in range(INTERVAL - 2):
        pay_in(writer.committer, "0.01")
    before = writer.log.get(Wallet, wallet_id(ORGANIZATION))
    keep(writer.log, TOPIC, take(before).state, version=INTERVAL)
    pay_in(writer.committer, "0.01")
    writer.committer.close()
    assert snapshots(writer.log) == [INTERVAL]
    assert not caplog.records


def test_a_batch_keeps_at_most_one(crowd: Crowd) -> None:
    log, committer = crowd.writer.log, crowd.writer.committer
    organizations = [uuid4() for _ in range(3)]
    for organization in organizations:
        open_wallet(log, committer, "0", organization)
        for _ in range(INTERVAL - 2):
            pay_in(committer, "0.01", organization)
    with crowd.waiting():
        calls = crowd.queue_up(
            *(partial(pay_in, committer, "0.01", organization) for organization in organizations)
        )
    for call in calls:
        call.result(PATIENCE_S)
    committer.close()
    assert sum(len(snapshots(log, organization)) for organization in organizations) == 1


def test_a_long_wallet_gets_one_from_a_process_that_has_just_begun(writer: Writer) -> None:
    fill(writer, INTERVAL - 2)
    newcomer = Committer(writer.log)
    pay_in(newcomer, "0.01")
    newcomer.close()
    assert snapshots(writer.log) == [INTERVAL]
