"""Above the approval limit one operator proposes what moves money, and another one approves it."""

from typing import Any
from uuid import UUID

import pytest

from domain.accounts.approvals import ApprovalLimit
from domain.accounts.wallet import Adjustment
from domain.cause import Cause, utc_now
from tests.app.cli.shell import Shell
from tests.app.cli.test_operator import created, head
from tests.app.cli.test_wallet_refund import lookup_of

LIMIT = ("operator", "approvals")
WAITING = ("wallet", "adjustments")


@pytest.fixture
def boss(shell: Shell) -> Shell:
    """The first operator, who has set the limit to 10.00."""
    boss = created(shell, "boss", "keys")[1]
    assert boss.json(*LIMIT, "10")["approvals_above"] == "10.00"
    return boss


@pytest.fixture
def people(boss: Shell) -> tuple[Shell, Shell, Shell]:
    """Anna and Bert may do both, Carl may only move money."""
    both = [created(boss, name, "money,approve")[1] for name in ("anna", "bert")]
    return both[0], both[1], created(boss, "carl", "money")[1]


def adjust(amount: str, organization: UUID, reference: str = "c-1") -> list[object]:
    given = ["--reference", reference, "--reason", "paid twice"]
    return ["wallet", "adjust", organization, amount, *given]


def balance(shell: Shell, organization: UUID) -> Any:
    return shell.json("wallet", "show", organization)["balance"]


def the_one_waiting(shell: Shell) -> Any:
    (waiting,) = shell.json(*WAITING, "list")["data"]
    return waiting


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
    waiting = the_one_waiting(carl)
    assert (waiting["amount"], waiting["reason"]) == ("10.01", "paid twice")
    assert waiting["proposed_by"].startswith("operator:")
    assert (waiting["kind"], waiting["proposed_by_name"]) == ("adjustment", "anna")
    assert "anna" in carl.run(*WAITING, "list").stdout
    approve = (*WAITING, "approve", waiting["id"])
    before = head(anna)
    assert "by another operator" in anna.refusal(*approve)
    assert "needs the right approve" in carl.refusal(*approve)
    assert head(anna) == before
    assert bert.json(*approve)["state"] == "made"
    assert balance(bert, organization) == "20.01"
    assert "was made already" in bert.refusal(*approve)
    assert anna.json(*adjust("10.01", organization))["state"] == "made"
    assert balance(bert, organization) == "20.01"
    assert bert.json(*WAITING, "list")["data"] == []
    assert bert.json("audit", "verify")["ok"]


@pytest.mark.parametrize("kind", ["deposit", "refund"])
def test_a_deposit_and_a_refund_wait_as_well(people: tuple[Shell, Shell, Shell], kind: str) -> None:
    anna, bert, _ = people
    organization, line, after = anna.new_organization(), list[object](), "80.00"
    if kind == "deposit":
        line = ["wallet", "deposit", organization, "80", "--reference", "bank-2"]
        other = ["wallet", "deposit", organization, "81", "--reference", "bank-2"]
        anna.run("wallet", "deposit", organization, "9", "--reference", "bank-1")
        after = "89.00"
    else:
        for number in "12":
            anna.run("wallet", "deposit", organization, "10", "--reference", f"bank-{number}")
        charge = lookup_of(anna, organization, 20_000_000)
        line = ["wallet", "refund", charge, "--reference", "t-1", "--reason", "why"]
        other = [*line, "--amount", "11"]
        after = "20.00"
    before = balance(anna, organization)
    proposed = anna.json(*line)
    assert (proposed["state"], proposed["balance"]) == ("proposed", before)
    assert anna.json(*line) == proposed
    assert "has another amount" in anna.refusal(*other)
    waiting = the_one_waiting(anna)
    assert (waiting["id"], waiting["kind"]) == (proposed["proposal"], kind)
    approve = (*WAITING, "approve", waiting["id"])
    assert "by another operator" in anna.refusal(*approve)
    assert bert.json(*approve)["state"] == "made"
    assert balance(anna, organization) == after
    assert "state" not in anna.json(*line)
    assert balance(anna, organization) == after
    assert anna.json(*WAITING, "list")["data"] == []
    assert anna.json("audit", "verify")["ok"]


def test_a_limit_is_set_and_lowered_by_one_and_raised_or_ended_by_two(boss: Shell) -> None:
    dora = created(boss, "dora", "approve,keys")[1]
    assert dora.json(*LIMIT, "5")["state"] == "set"
    raised = boss.json(*LIMIT, "20")
    assert (raised["approvals_above"], raised["state"]) == ("5.00", "proposed")
    assert boss.json(*LIMIT, "20") == raised
    waiting = the_one_waiting(boss)
    assert (waiting["kind"], waiting["amount"], waiting["organization"]) == ("limit", "20.00", None)
    assert "needs the right approve" in boss.refusal(*WAITING, "approve", waiting["id"])
    key = dora.json("operator", "rotate-key", dora.json("operator", "list")["data"][1]["id"])["key"]
    dora = dora.having(OPERATOR_KEY=key)
    dora.run(*WAITING, "approve", waiting["id"])
    assert boss.json(*LIMIT)["approvals_above"] == "20.00"
    ended = dora.json(*LIMIT, "none")
    assert (ended["approvals_above"], ended["state"]) == ("20.00", "proposed")
    assert "by another operator" in dora.refusal(*WAITING, "approve", ended["proposal"])
    erin = created(boss, "erin", "approve")[1]
    erin.run(*WAITING, "approve", ended["proposal"])
    assert boss.json(*LIMIT) == {"approvals_above": None, "proposal": None, "state": "set"}
    assert boss.json("audit", "verify")["ok"]


def test_an_approver_whose_key_the_requester_has_made_does_not_count(boss: Shell) -> None:
    anna = created(boss, "anna", "money,keys")[1]
    _, bert = created(anna, "bert", "approve,keys")
    _, carl = created(bert, "carl", "approve")
    organization = anna.new_organization()
    approve = (*WAITING, "approve", anna.json(*adjust("11", organization))["adjustment"])
    before = head(anna)
    for known_to_her in (bert, carl):  # She could have made Carl as Bert.
        assert "made your key" in known_to_her.refusal(*approve)
    assert head(anna) == before
    own = bert.json("operator", "rotate-key", bert.json("operator", "list")["data"][2]["id"])
    assert bert.having(OPERATOR_KEY=own["key"]).json(*approve)["state"] == "made"
    assert anna.json("audit", "verify")["ok"]


def test_without_operators_nothing_above_the_limit_is_proposed(shell: Shell) -> None:
    organization = shell.new_organization()
    shell.run(*LIMIT, "10")
    deposit = ("wallet", "deposit", organization, "10.01", "--reference", "bank-1")
    for line in (adjust("10.01", organization), deposit, (*LIMIT, "11")):
        assert "needs operators" in shell.refusal(*line)
    assert shell.json(*adjust("10", organization))["balance"] == "10.00"
    assert shell.json("audit", "verify")["ok"]


def test_the_limit_of_the_environment_moves_into_the_log(shell: Shell) -> None:
    boss = created(shell, "boss", "money,keys")[1]
    old = boss.having(ADJUSTMENT_APPROVAL_ABOVE="10")
    organization = old.new_organization()
    deposit = ("wallet", "deposit", organization, "1", "--reference", "bank-1")
    for line in (adjust("1", organization), deposit):
        assert "run `operator approvals 10.00` first" in old.refusal(*line)
    assert [each["severity"] for each in findings(old)] == ["fault"]
    old.run(*LIMIT, "20")
    assert old.json(*adjust("20", organization))["state"] == "made"
    assert old.json(*adjust("20.01", organization, "c-2"))["state"] == "proposed"
    assert [each["severity"] for each in findings(old)] == ["advice"]
    assert findings(boss) == []


def findings(shell: Shell) -> list[Any]:
    told = shell.json("doctor", status=1)["data"]
    return [each for each in told if each["check"] == "approvals"]


def test_what_was_proposed_under_the_old_limit_is_approved_as_ever(shell: Shell) -> None:
    """An earlier release wrote these proposals, without a limit in the log."""
    boss = created(shell, "boss", "keys")[1]
    (anna_id, anna), (_, bert) = (created(boss, name, "money,approve") for name in ("anna", "bert"))
    organization = anna.new_organization()
    container = anna.container()
    facts = (
        organization,
        "c-1",
        11_000_000,
        "why",
        Cause(utc_now(), "cli-1", f"operator:{anna_id}"),
    )
    container.log.append(old := Adjustment.make(*facts, needs_approval=True))
    assert container.log.find(ApprovalLimit, old.id) is None
    container.close()
    assert the_one_waiting(anna)["id"] == str(old.id)
    bert.run(*WAITING, "approve", old.id)
    assert balance(anna, organization) == "11.00"
    assert anna.json("audit", "verify")["ok"]


def test_no_money_moves_while_rights_or_limit_change(
    boss: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So what a command has read of them still holds where its events are in the log."""
    monkeypatch.setattr("app.cli.session.TURN_WAIT_S", 0.1)
    anna_id, anna = created(boss, "anna", "money")
    organization = anna.new_organization()
    container = boss.container()
    assert container.operators_turn.hold()
    before = head(boss)
    assert "has not ended" in anna.refusal(*adjust("1", organization))
    for line in (("revoke", anna_id), ("rotate-key", anna_id), ("approvals", "5")):
        assert "has not ended" in boss.refusal("operator", *line)
    assert head(boss) == before
    container.operators_turn.release()
    container.close()
    anna.run(*adjust("1", organization))
