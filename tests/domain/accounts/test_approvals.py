"""What two operators decide happens once, whoever else does something at the same moment."""

from contextlib import suppress
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from domain.accounts.approvals import WaitsForApproval
from domain.accounts.operators import Operator
from domain.cause import Cause
from domain.errors import NotPossible
from projections.audit.auditor import check_log
from tests.domain.asking import together
from tests.installation import Process
from tests.operators import as_operator

LIMIT, LARGE = 1_000_000, 1_000_001


def by(process: Process) -> Cause:
    """What is caused by a new operator, who may do everything with a key of their own."""
    return as_operator(process, f"o{uuid4().hex[:8]}")


@pytest.fixture
def organization(process: Process) -> UUID:
    process.accounts.approvals.set_limit(LIMIT, process.cause())
    return process.organization("0.10")


@pytest.fixture
def waiting(process: Process, organization: UUID) -> UUID:
    with pytest.raises(WaitsForApproval) as waits:
        process.accounts.move("deposit", organization, LARGE, "bank-9", by(process))
    return waits.value.proposal.id


def balance(process: Process, organization: UUID) -> int:
    return process.accounts.wallet(organization).balance_micros


@pytest.mark.each_database
def test_of_many_who_decide_at_once_one_does(
    process: Process, organization: UUID, waiting: UUID
) -> None:
    won, bert = list[str](), by(process)

    def decide(how: str) -> None:
        with suppress(NotPossible):
            getattr(process.accounts, how)(waiting, replace(bert, request_id=str(uuid4())))
            won.append(how)

    together(*(lambda how=how: decide(how) for how in ["approve", "reject"] * 4))
    assert len(won) == 1
    assert balance(process, organization) == 100_000 + LARGE * (won == ["approve"])


def test_the_slower_of_two_who_approve_is_told_that_it_was_done(
    process: Process, waiting: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = process.committer.commit

    def slower(*what: Any) -> int:
        monkeypatch.undo()
        process.accounts.approve(waiting, replace(by(process), request_id="faster"))
        return commit(*what)

    monkeypatch.setattr(process.committer, "commit", slower)
    with pytest.raises(NotPossible, match="was made already"):
        process.accounts.approve(waiting, by(process))


def test_what_a_payment_service_has_booked_is_not_booked_again(
    process: Process, organization: UUID, waiting: UUID
) -> None:
    _, is_new = process.accounts.book_deposit(organization, LARGE, "bank-9", process.cause())
    assert is_new, "it needs no approval"
    with pytest.raises(NotPossible, match="was made meanwhile"):
        process.accounts.approve(waiting, by(process))
    process.accounts.reject(waiting, by(process))
    assert balance(process, organization) == 100_000 + LARGE


def test_a_reference_that_was_booked_before_the_limit_stays_booked(
    process: Process, organization: UUID
) -> None:
    process.accounts.move("deposit", organization, LIMIT, "bank-2", process.cause())
    assert check_log(process.log).ok, "what has no actor counts together with nothing"
    process.accounts.approvals.set_limit(1, process.cause())
    process.accounts.move("deposit", organization, LIMIT, "bank-2", by(process))
    assert balance(process, organization) == 100_000 + LIMIT


@pytest.mark.each_database
def test_first_limits_at_once_end_in_one_limit(process: Process) -> None:
    approvals, cause = process.accounts.approvals, by(process)
    together(*(lambda n=n: approvals.set_limit(n, cause) for n in range(1, 9)))
    assert approvals.above_micros() in range(1, 9)
    assert check_log(process.log).ok
    with pytest.raises(NotPossible, match="needs operators"):
        approvals.set_limit(None, process.cause())


FREE = {"permit": lambda *_, **__: []}  # There is no limit.


def test_two_that_register_at_once_are_two_operators(process: Process) -> None:
    operators, cause = process.operators, process.cause()
    twins = iter(["twin"])

    def meanwhile(operator: UUID) -> str:
        for name in twins:
            facts = {"may": ["money"], "key_for": lambda _: "b" * 64}
            operators.register(cause, name=name, **facts, **FREE)
        return operator.hex * 2

    operators.register(cause, name="boss", may=["keys"], key_for=lambda _: "a" * 64, **FREE)
    late = operators.register(cause, name="late", may=["money"], key_for=meanwhile, **FREE)
    assert [each.name for each in operators.all()] == ["boss", "twin", "late"]
    assert late.id == Operator.id_of(3)
    assert late.key.key_hash == late.id.hex * 2
