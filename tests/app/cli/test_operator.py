"""`operator`: once there are operators, whoever writes has a key, the right, and a name."""

from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
import time_machine

from app.cli import session
from app.cli.operation import Operation
from app.cli.root import cli
from domain.accounts.operators import RIGHTS
from domain.cause import Cause, utc_now
from tests.app.cli.shell import Shell
from tests.app.cli.test_root import leaves


def created(shell: Shell, name: str, may: str) -> tuple[UUID, Shell]:
    """Create an operator; return the id, and a shell with the key."""
    made = shell.json("operator", "create", name, "--may", may)
    assert (made["name"], made["may"]) == (name, may.split(","))
    return UUID(made["id"]), shell.having(OPERATOR_KEY=made["key"])


@pytest.fixture
def boss(shell: Shell) -> Shell:
    """The shell of the first operator, who manages the others and may do nothing else."""
    return created(shell, "boss", "keys")[1]


def head(shell: Shell) -> int:
    with closing(shell.container()) as container:
        return container.log.head()


def test_every_command_is_refused_to_those_who_may_not_before_it_runs(
    boss: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    rest = {right: ",".join(each for each in RIGHTS if each != right) for right in RIGHTS}
    without = {right: created(boss, f"no-{right}", may)[1] for right, may in rest.items()}
    nobody, before, asked = boss.having(OPERATOR_KEY=""), head(boss), set[str]()
    for path, command in leaves(cli):
        assert isinstance(command, Operation)
        if command.right is not None:
            # Whatever it is given, and whoever else may.
            without_more = {"callback": pytest.fail, "params": [], "when": None, "who": None}
            for name, value in without_more.items():
                monkeypatch.setattr(command, name, value)
            assert "set OPERATOR_KEY" in nobody.refusal(*path), path
            told = without[command.right].refusal(*path)
            assert f"it needs the right {command.right}" in told, path
            asked.add(command.right)
    assert asked == set(RIGHTS)
    assert head(boss) == before
    assert {each["kind"] for each in boss.json("keys", "list")["data"]} == {"pepper"}


@pytest.mark.parametrize(
    ("line", "harmless"),
    [
        (("projections", "rebuild", "audit_tree"), ("projections", "rebuild", "usage")),
        (("operator", "approvals", "0"), ("operator", "approvals")),
        (("prices", "lookup", "0"), ("prices", "lookup")),
    ],
)
def test_a_right_may_be_needed_with_some_arguments_alone(
    boss: Shell, line: tuple[str, ...], harmless: tuple[str, ...]
) -> None:
    _, anna = created(boss, "anna", "catalogue,keys,audit")
    assert "set OPERATOR_KEY" in boss.having(OPERATOR_KEY="").refusal(*line)
    _, bert = created(boss, "bert", "money")
    assert "it needs the right" in bert.refusal(*line)
    boss.having(OPERATOR_KEY="").run(*harmless)
    anna.run(*line)


def test_only_the_newest_key_of_an_operator_who_is_not_revoked_is_good(boss: Shell) -> None:
    anna, first = created(boss, "anna", "catalogue,keys")
    newer = first.json("operator", "rotate-key", anna)["key"]
    second = first.having(OPERATOR_KEY=newer)
    rotate = ("operator", "rotate-key", anna)
    assert "it may have been replaced" in first.refusal(*rotate)
    assert second.json("operator", "list")["data"][1]["key_made_by"] == "self"
    for wrong in ("secret", newer[:-1], newer[:-1] + "\n", f"opk_{uuid4().hex}_{'A' * 43}"):
        assert "the key of no operator" in boss.having(OPERATOR_KEY=wrong).refusal(*rotate)
    assert boss.json("operator", "revoke", anna)["revoked"] is True
    assert boss.json("operator", "revoke", anna)["revoked"] is True
    for line in (rotate, ("client", "create", "--m2m")):
        assert second.refusal(*line) == "operator anna is revoked"
    assert "anna is revoked" in boss.refusal(*rotate)


def test_everybody_may_replace_their_own_key_and_no_other(boss: Shell) -> None:
    anna, hers = created(boss, "anna", "money")
    bert, _ = created(boss, "bert", "money")
    for command in ("rotate-key", "revoke"):
        assert "it needs the right keys" in hers.refusal("operator", command, bert)
    hers.run("operator", "rotate-key", anna)


def test_somebody_can_always_create_operators(shell: Shell) -> None:
    line = ("operator", "create", "anna", "--may")
    assert "needs the right keys" in shell.refusal(*line, "money")
    anna, hers = created(shell, "anna", "keys")
    assert "the last operator" in hers.refusal("operator", "revoke", anna)
    bert, _ = created(hers, "bert", "keys")
    hers.run("operator", "revoke", bert)
    assert "the last operator" in hers.refusal("operator", "revoke", anna)
    assert "an operator anna already" in hers.refusal(*line, "money")


def test_who_is_locked_out_gets_in_and_is_seen(boss: Shell) -> None:
    listed = boss.json("operator", "list")["data"]
    anna, hers = created(boss, "anna", "money")
    boss.run("operator", "rotate-key", listed[0]["id"])  # And the new key is lost.
    lost = boss.having(OPERATOR_KEY="")
    refused = lost.refusal("operator", "rotate-key", anna, "--locked-out")
    assert refused == "--locked-out is for operators with the right keys"
    hers.run("operator", "rotate-key", anna)
    key = lost.json("operator", "rotate-key", listed[0]["id"], "--locked-out")["key"]
    told = [each["message"] for each in findings(lost)]
    assert len(told) == 2
    assert told[0].startswith("operator boss has a key that os:")
    found = lost.having(OPERATOR_KEY=key)
    found.run("operator", "rotate-key", listed[0]["id"])
    (for_ever,) = findings(lost)
    assert for_ever["severity"] == "advice"
    assert for_ever["message"].startswith("operator boss got a key with --locked-out on ")
    seen = [each["locked_out_at"] is not None for each in lost.json("operator", "list")["data"]]
    assert seen == [True, False]


def test_a_lost_key_waits_for_an_approver_and_else_for_a_day(boss: Shell) -> None:
    boss.run("operator", "approvals", "10")
    anna_id, anna = created(boss, "anna", "approve")
    key = anna.json("operator", "rotate-key", anna_id)["key"]
    anna = anna.having(OPERATOR_KEY=key)
    (its, *_) = boss.json("operator", "list")["data"]
    lost, line = boss.having(OPERATOR_KEY=""), ("operator", "rotate-key", its["id"], "--locked-out")
    waits = lost.json(*line)
    assert (waits["kind"], waits["state"]) == ("key", "proposed")
    assert lost.json(*line)["id"] == waits["id"]
    lost.run("wallet", "adjustments", "list")  # Which projects what is new.
    told = [each["message"] for each in findings(lost)]
    assert any(f"`wallet adjustments reject {waits['id']}` ends it" in each for each in told)
    reject = ("wallet", "adjustments", "reject")
    assert boss.json(*reject, waits["id"])["state"] == "rejected", "it has the right `keys`"
    anna.run("wallet", "adjustments", "approve", lost.json(*line)["id"])
    boss = boss.having(OPERATOR_KEY=lost.json(*line)["key"])
    waits = lost.json(*line)
    with time_machine.travel(datetime.now(UTC) + timedelta(hours=25)):
        boss.run("operator", "revoke", anna_id)
        assert lost.json(*line)["id"] == waits["id"], "the day begins when nobody can approve"
    with time_machine.travel(datetime.now(UTC) + timedelta(hours=48, minutes=59)):
        assert lost.json(*line)["id"] == waits["id"]
    with time_machine.travel(datetime.now(UTC) + timedelta(hours=49, minutes=1)):
        key = lost.json(*line)["key"]
        assert boss.having(OPERATOR_KEY=key).json("audit", "verify")["ok"]


def test_the_only_approver_who_is_locked_out_waits_for_a_day(boss: Shell) -> None:
    (its,) = boss.json("operator", "list")["data"]
    anna_id, anna = created(boss, "anna", "approve,keys")
    anna.run("operator", "rotate-key", anna_id)  # And the new key is lost.
    boss.run("operator", "approvals", "10")
    boss.run("operator", "rotate-key", its["id"])  # This one, too.
    lost, line = boss.having(OPERATOR_KEY=""), ("operator", "rotate-key", anna_id, "--locked-out")
    assert lost.json(*line)["state"] == "proposed"
    with time_machine.travel(datetime.now(UTC) + timedelta(hours=24, minutes=1)):
        found = lost.having(OPERATOR_KEY=lost.json(*line)["key"])
        assert found.json("audit", "verify")["ok"]


def test_who_is_revoked_before_a_command_has_its_turn_does_nothing(
    boss: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    boss.run("operator", "approvals", "10")
    anna_id, anna = created(boss, "anna", "approve")
    anna = anna.having(OPERATOR_KEY=anna.json("operator", "rotate-key", anna_id)["key"])
    create = ("operator", "create", "dora", "--may", "keys")
    anna.run("wallet", "adjustments", "approve", boss.json(*create)["id"])
    made = boss.json(*create)
    waits = boss.json("operator", "create", "carl", "--may", "keys")
    dora = boss.having(OPERATOR_KEY=made["key"])
    take_turn = session.acquire_write_lock

    def comes_late(container: Any) -> None:
        monkeypatch.setattr(session, "acquire_write_lock", take_turn)
        boss.run("operator", "revoke", made["id"])
        take_turn(container)

    monkeypatch.setattr(session, "acquire_write_lock", comes_late)
    assert "revoked" in dora.refusal("wallet", "adjustments", "reject", waits["id"])
    assert boss.json("audit", "verify")["ok"]


def test_two_who_revoke_each_other_at_once_lock_nobody_out(boss: Shell) -> None:
    anna, hers = created(boss, "anna", "keys")
    with closing(boss.container()) as container:
        first, change = next(container.operators.all()), container.log.change

        def meanwhile(*arguments: Any) -> Any:
            hers.run("operator", "revoke", first.id)
            return change(*arguments)

        container.log.change = meanwhile  # type: ignore[method-assign]  # So that both have looked.
        container.operators.revoke(anna, Cause(utc_now(), "request-1", first.actor))
    nobody = boss.having(OPERATOR_KEY="")
    assert [row["revoked"] for row in nobody.json("operator", "list")["data"]] == [True, True]
    assert "set OPERATOR_KEY" in nobody.refusal("org", "create", "--name", "Acme")
    line = ("operator", "create", "carl", "--may")
    assert "anna is revoked" in hers.refusal(*line, "keys")
    assert "needs the right keys" in nobody.refusal(*line, "money")
    nobody.run(*line, "keys")
    assert [each["message"][:13] for each in findings(nobody)] == ["operator carl"]
    assert "set OPERATOR_KEY" in nobody.refusal("operator", "create", "dora", "--may", "keys")


def findings(shell: Shell) -> list[Any]:
    told: list[Any] = shell.json("doctor", status=1)["data"]
    return [each for each in told if each["check"] == "operators"]


def test_a_key_without_operators_is_of_another_installation(shell: Shell) -> None:
    stray = shell.having(OPERATOR_KEY=f"opk_{uuid4().hex}_{'A' * 43}")
    assert "the key of no operator" in stray.refusal("org", "create", "--name", "Acme")


def test_a_name_is_that_of_an_account(shell: Shell) -> None:
    for name in ("Anna", "", "-a", "a b", "ä", "a" * 65):
        line = ("operator", "create", "--may", "keys", "--", name)
        assert shell.refusal(*line, status=1 if name else 2)
