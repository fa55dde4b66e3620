"""Above a limit one operator proposes an adjustment, and another one approves it or does not."""

from typing import Any
from uuid import UUID

import pytest

from tests.app.cli.shell import Shell
from tests.app.cli.test_operator import created, head


@pytest.fixture
def limited(shell: Shell) -> Shell:
    return shell.having(ADJUSTMENT_APPROVAL_ABOVE="10")


@pytest.fixture
def people(limited: Shell) -> tuple[Shell, Shell, Shell]:
    """Anna and Bert may do both, Carl may only move money."""
    boss = created(limited, "boss", "keys")[1]
    both = [created(boss, name, "money,approve")[1] for name in ("anna", "bert")]
    return both[0], both[1], created(boss, "carl", "money")[1]


def adjust(amount: str, organization: UUID, reference: str = "c-1") -> list[object]:
    given = ["--reference", reference, "--reason", "paid twice"]
    return ["wallet", "adjust", organization, amount, *given]


def balance(shell: Shell, organization: UUID) -> Any:
    return shell.json("wallet", "show", organization)["balance"]


def test_what_is_above_the_limit_waits_for_somebody_else(
    people: tuple[Shell, Shell, Shell],
) -> None:
    anna, bert, carl = people
    organization = anna.new_organization()
    assert anna.json(*adjust("10", organization, "small"))["state"] == "made"
    proposed = anna.json(*adjust("10.01", organization))
    assert (proposed["state"], proposed["balance"]) == ("proposed", "10.00")
    assert anna.json(*adjust("10.01", organization)) == proposed
    assert "has another amount" in anna.refusal(*adjust("10.02", organization))
    (waiting,) = carl.json("wallet", "adjustments", "list")["data"]
    assert (waiting["amount"], waiting["reason"]) == ("10.01", "paid twice")
    assert waiting["proposed_by"].startswith("operator:")
    approve = ("wallet", "adjustments", "approve", waiting["id"])
    before = head(anna)
    assert "by another operator" in anna.refusal(*approve)
    assert "needs the right approve" in carl.refusal(*approve)
    assert head(anna) == before
    assert bert.json(*approve)["state"] == "made"
    assert balance(bert, organization) == "20.01"
    assert "was made already" in bert.refusal(*approve)
    assert anna.json(*adjust("10.01", organization))["state"] == "made"
    assert balance(bert, organization) == "20.01"
    assert bert.json("wallet", "adjustments", "list")["data"] == []
    assert bert.json("audit", "verify")["ok"]


def test_what_is_rejected_never_moves(people: tuple[Shell, Shell, Shell]) -> None:
    anna, bert, _ = people
    organization = anna.new_organization()
    proposed = anna.json(*adjust("-50", organization))
    decide = ("wallet", "adjustments")
    short = bert.refusal(*decide, "approve", proposed["adjustment"])
    assert "required 50.00, available 0.00" in short
    assert bert.json(*decide, "reject", proposed["adjustment"])["state"] == "rejected"
    for again in ("approve", "reject"):
        refused = bert.refusal(*decide, again, proposed["adjustment"])
        assert refused == "the adjustment with reference c-1 was rejected already"
    assert anna.refusal(*adjust("-50", organization)).endswith("c-1 was rejected")
    assert bert.json("audit", "verify")["ok"]


def test_without_operators_nothing_above_the_limit_is_proposed(limited: Shell) -> None:
    organization = limited.new_organization()
    assert "needs operators" in limited.refusal(*adjust("10.01", organization))
    assert limited.json(*adjust("10", organization))["balance"] == "10.00"
