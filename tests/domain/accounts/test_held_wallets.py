"""The wallets that a committer holds: few, and none that differs from the log for long."""

from collections.abc import Collection, Sequence
from uuid import UUID, uuid4

import pytest
from eventsourcing.persistence import StoredEvent

import domain.accounts.held_wallets
from domain.accounts.held_wallets import WalletCache
from domain.accounts.wallet import Wallet, wallet_id
from tests.domain.build import ORGANIZATION, cause, charge, open_wallet, pay_in
from tests.domain.writers import Writer


def change(wallet: Wallet | None) -> None:
    """Take a micro-unit without storing it."""
    wallet.book([charge("0.000001")], cause())
    wallet.collect_events()


def balance_of(cache: WalletCache, stream: UUID) -> int:
    wallet = cache.get(stream)
    return wallet.balance_micros


def test_what_is_undone_is_as_it_was_stored(writer: Writer) -> None:
    stream = open_wallet(writer.log, writer.committer, "1.00", ORGANIZATION)
    cache = WalletCache(writer.log)
    change(cache.get(stream))
    cache.undo(stream)
    assert balance_of(cache, stream) == 1_000_000
    change(cache.get(stream))
    cache.mark_committed()
    cache.undo(stream)  # Nothing was lent since, so nothing is known for certain.
    assert balance_of(cache, stream) == 1_000_000
    change(cache.get(stream))
    cache.clear()
    assert balance_of(cache, stream) == 1_000_000


def test_catching_up_tells_whether_another_process_was_first(writer: Writer) -> None:
    stream = open_wallet(writer.log, writer.committer, "1.00", ORGANIZATION)
    cache = WalletCache(writer.log)
    change(cache.get(stream))
    assert cache.catch_up([stream]) == set()
    change(cache.get(stream))
    pay_in(writer.committer, "1.00")
    assert cache.catch_up([stream]) == {stream}
    assert balance_of(cache, stream) == 2_000_000


def test_a_wallet_that_does_not_exist_is_not_remembered_as_missing(writer: Writer) -> None:
    cache = WalletCache(writer.log)
    assert cache.get(wallet_id(ORGANIZATION)) is None
    open_wallet(writer.log, writer.committer, "1.00", ORGANIZATION)
    assert cache.get(wallet_id(ORGANIZATION)) is not None


def test_the_coldest_wallet_makes_room(monkeypatch: pytest.MonkeyPatch, writer: Writer) -> None:
    monkeypatch.setattr(domain.accounts.held_wallets, "WALLETS_MAX", 2)
    cache = WalletCache(writer.log)
    first, second, third = (
        open_wallet(writer.log, writer.committer, "0", uuid4()) for _ in range(3)
    )
    kept, dropped = cache.get(first), cache.get(second)
    cache.get(first)
    cache.get(third)
    assert cache.get(first) is kept
    assert cache.get(second) is not dropped


def test_others_see_only_balances_that_are_committed(writer: Writer) -> None:
    stream = open_wallet(writer.log, writer.committer, "1.00", ORGANIZATION)
    cache = WalletCache(writer.log)
    assert cache.peek(stream, "EUR", cause().at) is None
    for _ in range(2):  # Loaded, and then lent out of what is held.
        change(cache.get(stream))
        assert cache.peek(stream, "EUR", cause().at) == 1_000_000
        assert cache.peek(stream, "USD", cause().at) is None
        cache.undo(stream)
        assert cache.peek(stream, "EUR", cause().at) == 1_000_000
    change(cache.get(stream))
    cache.mark_committed()
    assert cache.peek(stream, "EUR", cause().at) == 999_999
    cache.undo(stream)  # Nothing was lent since, so nothing is known for certain.
    assert cache.peek(stream, "EUR", cause().at) is None


def test_many_wallets_are_read_at_once_and_only_those_that_may_have_moved(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    organizations = [uuid4() for _ in range(3)]
    streams = [open_wallet(writer.log, writer.committer, "1.00", each) for each in organizations]
    read: list[set[UUID]] = []
    select = writer.recorder.select_newest

    def watched(asked: Collection[UUID]) -> Sequence[StoredEvent]:
        read.append({*asked})
        return select(asked)

    monkeypatch.setattr(writer.recorder, "select_newest", watched)
    cache, moved = WalletCache(writer.log), streams[0]
    cache.reload(streams)
    cache.reload(streams)
    assert read == [{*streams}]
    pay_in(writer.committer, "1.00", organizations[0])
    read.clear()
    assert cache.catch_up(streams) == {moved}
    cache.reload(streams)
    assert read == [{*streams}, {moved}]
    assert [balance_of(cache, each) for each in streams] == [2_000_000, 1_000_000, 1_000_000]
