"""A command with a bug in it fails alone, and leaves no trace in the wallet that is held."""

from functools import partial

import pytest

from domain.accounts.committer import Change
from domain.accounts.wallet import Wallet, wallet_id
from domain.lookups.number_lookup import NumberLookup
from tests.domain.build import ORGANIZATION, adjustment, cause, charge, lookup, take
from tests.domain.crowd import PATIENCE_S, Crowd
from tests.domain.writers import Writer, balance, everything, ledger


def raises_at_once(wallet: Wallet) -> None:
    raise LookupError(wallet.id)


def raises_after_its_charge(wallet: Wallet) -> None:
    wallet.book([charge("0.50")], cause())
    raise LookupError(wallet.id)


def is_refused_after_its_charge(wallet: Wallet) -> None:
    wallet.book([charge("0.50")], cause())
    wallet.book([charge("100.00")], cause())


def changes_nothing(wallet: Wallet) -> None:
    del wallet


def cannot_be_stored(wallet: Wallet) -> None:
    half_a_pair = "\ud83d"  # As a command line gives it for a byte that is no UTF-8.
    wallet.enter(adjustment(-500_000, half_a_pair), "EUR", cause())


BUGS = [
    pytest.param(raises_at_once, id="raises at once"),
    pytest.param(raises_after_its_charge, id="raises after its charge"),
    pytest.param(is_refused_after_its_charge, id="is refused after its charge"),
    pytest.param(changes_nothing, id="changes nothing"),
    pytest.param(cannot_be_stored, id="cannot be stored"),
]


def commit_bug(writer: Writer, bug: Change) -> int:
    return writer.committer.commit(wallet_id(ORGANIZATION), bug, lookup())


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_leaves_no_trace_and_its_neighbours_are_committed(crowd: Crowd, bug: Change) -> None:
    log, committer = crowd.fund()
    with crowd.waiting():
        first, wrong, last = crowd.queue_up(
            partial(take, committer, "0.10"),
            partial(commit_bug, crowd.writer, bug),
            partial(take, committer, "0.20"),
        )
    assert wrong.exception(PATIENCE_S)
    assert [first.exception(PATIENCE_S), last.exception(PATIENCE_S)] == [None, None]
    assert len(ledger(log)) == 3
    assert sum(isinstance(each.event, NumberLookup.Event) for each in everything(log)) == 2
    take(committer, "0.70")
    assert balance(log) == "0.00"
