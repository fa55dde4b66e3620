"""Whatever the database answers, or a command does: nobody pays twice, or for nothing."""

from functools import partial

import pytest
from eventsourcing.persistence import IntegrityError, OperationalError

import domain.accounts.committer
from domain.accounts.committer import Change
from domain.accounts.wallet import Deposit, Wallet, wallet_id
from domain.errors import Conflict, ServiceUnavailable
from domain.lookups.single import NumberLookup
from tests.domain.build import (
    ORGANIZATION,
    adjustment,
    cause,
    charge,
    lookup,
    open_wallet,
    pay_in,
    take,
)
from tests.domain.crowd import PATIENCE_S, Crowd
from tests.domain.faults import Moment
from tests.domain.writers import Writer, balance, before_insert, everything, ledger

GONE = OperationalError  # The connection was closed, and what happened is not known.
TAKEN = IntegrityError
Script = list[tuple[Moment, type[Exception]]]

SETTLED = [
    pytest.param([("before insert", GONE)], id="nothing was committed"),
    pytest.param([("after insert", GONE)], id="committed, reply lost"),
    pytest.param([("after insert", TAKEN)], id="committed, an echo came back"),
    pytest.param([("before insert", GONE), ("after insert", GONE)], id="lost, then committed"),
    pytest.param([("after insert", GONE), ("before insert", GONE)], id="committed, then lost"),
    pytest.param([("after insert", GONE), ("on select", GONE)], id="reading fails first"),
    pytest.param([("after insert", GONE), ("on head", GONE)], id="the position cannot be read"),
]


@pytest.fixture
def funded(writer: Writer) -> Writer:
    open_wallet(writer.log, writer.committer, "1.00", ORGANIZATION)
    return writer


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domain.accounts.committer, "SETTLE_S", 0.02)
    monkeypatch.setattr(domain.accounts.committer, "PAUSE_S", 0.001)


def prepare(writer: Writer, script: Script) -> None:
    for moment, error in script:
        writer.recorder.fail(moment, error)


@pytest.mark.parametrize("script", SETTLED)
def test_an_outcome_is_settled_before_the_reply_for_all_of_a_batch(
    crowd: Crowd, script: Script
) -> None:
    log, committer = crowd.fund()
    with crowd.waiting():
        calls = crowd.queue_up(*[partial(take, committer, "0.10")] * 3)
        before_insert(crowd.writer, 1, partial(prepare, crowd.writer, script))
    assert [call.exception(PATIENCE_S) for call in calls] == [None] * 3
    assert calls[-1].result() == log.head()
    assert crowd.writer.recorder.faults_left == 0
    take(committer, "0.10")
    assert balance(log) == "0.60"


@pytest.mark.usefixtures("impatient")
def test_a_log_out_of_reach_is_unavailable_within_bounds_and_comes_back(funded: Writer) -> None:
    down = [True]

    def refuse() -> None:
        if down[0]:
            raise GONE

    funded.recorder.meanwhile = refuse
    for _ in range(3):
        with pytest.raises(ServiceUnavailable):
            take(funded.committer, "0.10")
    down[0] = False
    take(funded.committer, "0.10")
    assert balance(funded.log) == "0.90"


@pytest.mark.usefixtures("impatient")
def test_a_commit_that_nobody_could_confirm_is_not_built_upon_blindly(funded: Writer) -> None:
    inserts: list[int] = []

    def refuse_from_the_second_on() -> None:
        inserts.append(1)
        if len(inserts) > 1:
            raise GONE

    funded.recorder.fail("after insert", GONE)
    funded.recorder.meanwhile = refuse_from_the_second_on
    with pytest.raises(ServiceUnavailable):
        take(funded.committer, "0.10")
    funded.recorder.meanwhile = lambda: None
    assert balance(funded.log) == "0.90"  # It was committed after all.
    take(funded.committer, "0.10")
    assert balance(funded.log) == "0.80"


def test_a_twin_with_the_same_bytes_is_not_taken_for_the_own_echo(funded: Writer) -> None:
    def pay_once_more() -> int:
        twin = Deposit.make(ORGANIZATION, "bank-1", 500_000, cause())
        return funded.committer.commit(
            wallet_id(ORGANIZATION), lambda wallet: wallet.enter(twin, "EUR", cause()), twin
        )

    pay_once_more()
    with pytest.raises(Conflict):
        pay_once_more()
    assert balance(funded.log) == "1.50"
    pay_in(funded.committer, "0.10")
    assert balance(funded.log) == "1.60"
    assert len(ledger(funded.log)) == 3


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
