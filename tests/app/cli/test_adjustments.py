"""Above the approval limit one operator proposes what moves money, and another one approves it."""

from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from domain.accounts.approvals import ApprovalLimit, Proposal
from domain.accounts.wallet import Adjustment
from domain.cause import Cause, utc_now
from domain.months import month_of
from tests.app.cli.shell import Shell, shell_of
from tests.app.cli.test_operator import created, head
from tests.app.cli.test_wallet import lookup_of
from tests.installation import Installation, SetClock
from tests.projections.crimes.adjustments import waiting
from tests.projections.histories import run_on_log

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
    both = [created(boss, name, "money,approve") for name in ("anna", "bert")]
    carl = created(boss, "carl", "money")[1]
    anna, bert = (renewed(*each) for each in both)
    return anna, bert, carl


def renewed(operator: UUID, shell: Shell) -> Shell:
    """Let an operator make a key that only he has seen."""
    return shell.having(OPERATOR_KEY=shell.json("operator", "rotate-key", operator)["key"])


def adjust(amount: str, organization: UUID, reference: str = "c-1") -> list[object]:
    given = ["--reference", reference, "--reason", "paid twice"]
    return ["wallet", "adjust", organization, amount, *given]


def balance(shell: Shell, organization: UUID) -> Any:
    return shell.json("wallet", "show", organization)["balance"]


def the_one_waiting(shell: Shell) -> Any:
    (waiting,) = shell.json(*WAITING, "list")["data"]
    return waiting


def asked(
    people: tuple[Shell, Shell, Shell], organization: UUID, kind: str
) -> tuple[list[object], list[object], str]:
    """Return a command above the limit, one with another amount, and the balance afterwards."""
    anna, bert, _ = people
    for who, reference in ((anna, "bank-1"), (bert, "bank-2")):  # Each may pay in so much.
        who.run("wallet", "deposit", organization, "9", "--reference", reference)
    facts = ("--reference", "r-1", "--reason", "why")
    if kind == "refund":
        line: list[object] = ["wallet", "refund", lookup_of(anna, organization, 18_000_000), *facts]
        return line, [*line, "--amount", "11"], "18.00"
    facts = (*facts, "--value-date", "2026-02-27")
    if kind == "payout":
        line = ["wallet", "payout", organization, *facts]
        return [*line, "8.50"], [*line, "8.60"], "9.50"
    line = ["wallet", "reverse", organization, "bank-1", *facts]
    return line, [*line, "--amount", "8.60"], "9.00"


@pytest.mark.parametrize("kind", ["refund", "reversal", "payout"])
def test_what_is_above_the_limit_waits_for_somebody_else(
    people: tuple[Shell, Shell, Shell], kind: str
) -> None:
    anna, bert, carl = people
    organization = anna.new_organization()
    line, other, after = asked(people, organization, kind)
    before = balance(anna, organization)
    proposed = anna.json(*line)
    assert (proposed["state"], proposed["balance"]) == ("proposed", before)
    assert anna.json(*line) == proposed
    assert "has another amount" in anna.refusal(*other)
    waiting = the_one_waiting(carl)
    assert waiting["id"] == proposed.get("proposal", proposed.get("adjustment"))
    assert (waiting["kind"], waiting["proposed_by_name"]) == (kind, "anna")
    approve, place = (*WAITING, "approve", waiting["id"]), head(anna)
    assert "by another operator" in anna.refusal(*approve)
    assert "needs the right approve" in carl.refusal(*approve)
    assert head(anna) == place
    assert bert.json(*approve)["state"] == "made"
    assert balance(anna, organization) == after
    assert "was made already" in bert.refusal(*approve)
    assert anna.json(*line).get("state", "made") == "made"
    assert balance(anna, organization) == after
    assert anna.json(*WAITING, "list")["data"] == []
    assert anna.json("audit", "verify")["ok"]


def test_a_limit_is_set_and_lowered_by_one_and_raised_or_ended_by_two(boss: Shell) -> None:
    dora_id, dora = created(boss, "dora", "approve,keys")
    erin_id, erin = created(boss, "erin", "approve")
    assert dora.json(*LIMIT, "5")["state"] == "set"
    raised = boss.json(*LIMIT, "20")
    assert (raised["approvals_above"], raised["state"]) == ("5.00", "proposed")
    assert boss.json(*LIMIT, "20") == raised
    waiting = the_one_waiting(boss)
    assert (waiting["kind"], waiting["amount"], waiting["organization"]) == ("limit", "20.00", None)
    assert "needs the right approve" in boss.refusal(*WAITING, "approve", waiting["id"])
    assert "somebody else has made your key" in dora.refusal(*WAITING, "approve", waiting["id"])
    dora = renewed(dora_id, dora)
    dora.run(*WAITING, "approve", waiting["id"])
    assert boss.json(*LIMIT)["approvals_above"] == "20.00"
    ended = dora.json(*LIMIT, "none")
    assert (ended["approvals_above"], ended["state"]) == ("20.00", "proposed")
    assert "by another operator" in dora.refusal(*WAITING, "approve", ended["proposal"])
    renewed(erin_id, erin).run(*WAITING, "approve", ended["proposal"])
    assert boss.json(*LIMIT) == {"approvals_above": None, "proposal": None, "state": "set"}
    assert boss.json("audit", "verify")["ok"]


def test_amounts_below_the_limit_count_together(people: tuple[Shell, Shell, Shell]) -> None:
    anna, bert, _ = people
    organization = anna.new_organization()
    for number in (1, 2):
        deposit = ("wallet", "deposit", organization, "5", "--reference", f"bank-{number}")
        assert "proposal" not in anna.json(*deposit)
    one = anna.json("wallet", "deposit", organization, "0.01", "--reference", "bank-3")
    assert one["state"] == "proposed"
    assert anna.json(*adjust("-0.01", organization))["state"] == "proposed"
    assert "proposal" not in anna.json(*deposit), "it was made before"
    bert.run(*WAITING, "approve", one["proposal"])
    lookups = [lookup_of(bert, organization, 5_000_000) for _ in range(2)]
    for charge in lookups:
        line = ("wallet", "refund", charge, "--reason", "why", "--amount", "5")
        assert "proposal" not in bert.json(*line, "--reference", "t-1")
    assert bert.json(*adjust("10", organization, "c-2"))["state"] == "made", "nobody else's count"
    assert bert.json("audit", "verify")["ok"]


def test_parts_of_one_charge_count_together(people: tuple[Shell, Shell, Shell]) -> None:
    anna, bert, carl = people
    organization = anna.new_organization()
    for who in (anna, bert):
        who.run("wallet", "deposit", organization, "10", "--reference", who.changes["OPERATOR_KEY"])
    charge = lookup_of(anna, organization, 20_000_000)
    line = ("wallet", "refund", charge, "--reason", "why", "--amount")
    assert "proposal" not in anna.json(*line, "6", "--reference", "t-1")
    for who in (anna, carl):
        assert who.json(*line, "4.01", "--reference", "t-2")["state"] == "proposed"
    assert "proposal" not in carl.json(*line, "4", "--reference", "t-3")
    assert carl.json("audit", "verify")["ok"]


def test_a_new_operator_waits_and_only_who_has_asked_sees_the_key(boss: Shell) -> None:
    dora = created(boss, "dora", "keys")[1]
    anna = renewed(*created(boss, "anna", "approve"))
    line = ("operator", "create", "carl", "--may", "money,approve")
    waits = boss.json(*line)
    assert (waits["kind"], waits["state"], waits["subject"]) == ("operator", "proposed", "carl")
    assert (waits["may"], boss.json(*line)["id"]) == (["money", "approve"], waits["id"])
    assert boss.json("operator", "create", "cat", "--may", "catalogue")["key"]
    approve = (*WAITING, "approve", waits["id"])
    assert "needs the right approve" in boss.refusal(*approve)
    assert anna.json(*approve)["state"] == "granted"
    assert the_one_waiting(anna)["state"] == "granted"
    anna.run(*WAITING, "reject", dora.json(*line)["id"])  # It was not granted to her.
    wider = boss.json("operator", "create", "carl", "--may", "money,approve,keys")
    assert wider["state"] == "proposed"
    anna.run(*WAITING, "reject", wider["id"])
    made = boss.json(*line)
    assert (made["name"], made["key"][:4]) == ("carl", "opk_")
    assert "an operator carl already" in boss.refusal(*line)
    carl = renewed(made["id"], boss.having(OPERATOR_KEY=made["key"]))
    assert carl.json(*WAITING, "list")["data"] == []
    assert carl.json("audit", "verify")["ok"]


def test_a_key_for_another_and_a_client_that_deposits_wait(boss: Shell) -> None:
    anna_id, anna = created(boss, "anna", "money,approve")
    cat_id, _ = created(boss, "cat", "catalogue")
    bert = renewed(*created(boss, "bert", "approve"))
    renewed(anna_id, anna)
    assert boss.json("operator", "rotate-key", cat_id)["key"]

    def made(kind: str, *line: object) -> Any:
        waits = boss.json(*line)
        assert (waits["kind"], waits["state"]) == (kind, "proposed")
        bert.run(*WAITING, "approve", waits["id"])
        done = boss.json(*line)
        assert boss.json(*line)["state"] == "proposed", "an approval is for once"
        return done

    assert made("key", "operator", "rotate-key", anna_id)["key"]
    client = made("client", "client", "create", "--m2m", "--scope", "deposits")
    assert made("secret", "client", "rotate-secret", client["client_id"])["client_secret"]
    assert boss.json("client", "create", "--m2m")["client_secret"]
    assert boss.json("audit", "verify")["ok"]


def test_prices_and_fees_wait(boss: Shell, people: tuple[Shell, Shell, Shell]) -> None:
    anna, bert, _ = people
    cat = anna.having(OPERATOR_KEY="")
    made = anna.json(
        "org", "create", "--name", "Acme", "--price", "0.01", "--monthly-link-fee", "2"
    )
    assert (made["price_per_lookup"], made["monthly_link_fee"]) == (None, "0.00")
    assert len(made["proposals"]) == 2
    for each in made["proposals"]:
        assert bert.json(*WAITING, "approve", each)["state"] == "made"
    (now,) = [each for each in cat.json("org", "list")["data"] if each["id"] == made["id"]]
    assert (now["price_per_lookup"], now["monthly_link_fee"]) == ("0.01", "2.00")
    changed = anna.json("org", "set", made["id"], "--price", "default", "--rate-limit", "60")
    assert (changed["price_per_lookup"], changed["rate_limit"]) == ("0.01", 60)
    (waits,) = changed["proposals"]
    assert anna.json("org", "set", made["id"], "--price", "default")["proposals"] == [waits]
    bert.run(*WAITING, "approve", waits)
    assert "proposals" not in anna.json("org", "set", made["id"], "--price", "default")
    seller = created(boss, "cat", "catalogue")[1]
    waits = seller.json("prices", "lookup", "0.02")
    assert waits["price"] == "0.00"
    assert seller.json("prices", "lookup", "0.02")["proposal"] == waits["proposal"]
    bert.run(*WAITING, "approve", waits["proposal"])
    assert seller.json("prices", "lookup")["price"] == "0.02"
    assert "proposal" not in seller.json("prices", "lookup", "0.02")
    assert anna.json("audit", "verify")["ok"]


def test_what_a_revoked_operator_has_proposed_is_void(
    boss: Shell, people: tuple[Shell, Shell, Shell]
) -> None:
    anna, bert, _ = people
    waits = anna.json(*(line := adjust("11", anna.new_organization())))["adjustment"]
    revoked = boss.json("operator", "revoke", boss.json("operator", "list")["data"][1]["id"])
    assert revoked["void"] == [waits]
    assert the_one_waiting(bert)["state"] == "void"
    for again in ((*WAITING, "approve", waits), line):
        assert "with another reference" in bert.refusal(*again)
    assert bert.json(*WAITING, "reject", waits)["state"] == "rejected"
    assert bert.json("audit", "verify")["ok"]


def test_a_limit_of_an_earlier_release_covers_people_from_the_next_command_on(shell: Shell) -> None:
    boss = created(shell, "boss", "keys")[1]
    with closing(boss.container()) as container:
        cause = Cause(utc_now(), "cli-1", "operator:1")
        limit = ApprovalLimit.begin(ApprovalLimit.Opened, cause, ApprovalLimit.id_of())
        limit.record(ApprovalLimit.Set, replace(cause, actor=None), above_micros=10_000_000)
        container.log.append(limit)
    before = head(boss)
    anna = created(boss, "anna", "money")[1]
    assert head(boss) == before + 2
    anna.new_organization()
    assert boss.json(*LIMIT)["approvals_above"] == "10.00"
    with closing(boss.container()) as container:
        assert container.log.get(ApprovalLimit, ApprovalLimit.id_of()).covers == "people"


def test_the_decisions_of_a_month_are_those_of_the_log(installation: Installation) -> None:
    clock = SetClock(datetime(2026, 2, 27, tzinfo=UTC))
    process, shell = installation.process(clock), shell_of(installation)
    organization = process.organization("1.00")
    anna, bert = (Cause(clock.now, "cli-1", f"operator:{each}") for each in (1, 2))

    def reject(reference: str) -> None:  # What an earlier release let wait, and what waits now.
        adjustment = waiting(organization, reference, anna)
        adjustment.record(Adjustment.Rejected, bert)
        facts = {"organization_id": organization, "reference": reference, "amount_micros": 70_000}
        facts |= {"deposit": "bank-1", "value_date": clock.now.date()}
        reversal = Proposal.of(anna, "reversal", reference, reason="why", **facts)
        reversal.reject(bert)
        process.log.append(adjustment, reversal)

    reject("r-1")
    clock.forward(days=3)
    process.month_end.run()
    reject("r-2")  # It is dated in the month that is closed.
    log = [each for each in process.log.stored(0, 1_000) if each.topic.endswith(".rejected")]
    names = ("kind", "reference", "amount", "decision", "proposed_by", "decided_by")
    who = ("rejected", anna.actor, bert.actor)
    for month, reference, rows in (("2026-02", "r-1", log[:2]), ("2026-03", "r-2", log[2:])):
        line = (*WAITING, "list", "--month", month)
        found = shell.json(*line)["data"]
        assert [tuple(each[name] for name in names) for each in found] == [
            ("adjustment", reference, "0.000005", *who),
            ("reversal", reference, "0.07", *who),
        ]
        assert [(it["position"], UUID(it["id"])) for it in found] == [each[:2] for each in rows]
        head, *shown = shell.run(*line).stdout.splitlines()
        assert [row[head.index("DEPOSIT") :].split()[0] for row in shown] == ["-", "bank-1"]
    assert shell.json(*WAITING, "list", "--month", month_of(utc_now()))["data"] == []
    before = (log[-1].position - 1,)
    run_on_log(process, "DELETE FROM {table} WHERE {position} = ? RETURNING 1", before)
    assert "decides what nobody has proposed" in shell.refusal(*line)


@pytest.mark.parametrize("kind", ["payout", "adjustment"])
def test_what_a_wallet_does_not_hold_is_refused_and_not_proposed(
    people: tuple[Shell, Shell, Shell], kind: str
) -> None:
    anna, bert, _ = people
    organization = anna.new_organization()
    (*payout, _), _, _ = asked(people, organization, "payout")

    def line(amount: str) -> list[object]:
        return [*payout, amount] if kind == "payout" else adjust(f"-{amount}", organization)

    assert "does not cover" in anna.refusal(*line("18.01"))
    assert anna.json(*WAITING, "list")["data"] == []
    proposed = anna.json(*line("17.99"))
    lookup_of(anna, organization, 18_000_000)
    assert anna.json(*line("17.99"))["state"] == proposed["state"] == "proposed"
    waiting = the_one_waiting(bert)["id"]
    assert "does not cover" in bert.refusal(*WAITING, "approve", waiting)


def test_without_operators_nothing_above_the_limit_is_proposed(shell: Shell) -> None:
    organization = shell.new_organization()
    shell.run(*LIMIT, "10")
    deposit = ("wallet", "deposit", organization, "10.01", "--reference", "bank-1")
    for line in (adjust("10.01", organization), deposit, (*LIMIT, "11")):
        assert "needs operators" in shell.refusal(*line)
    assert shell.json(*adjust("10", organization))["balance"] == "10.00"
    assert shell.json("audit", "verify")["ok"]


def test_nobody_decides_what_an_earlier_release_let_wait(shell: Shell) -> None:
    organization = shell.new_organization()
    with closing(shell.container()) as container:
        container.log.append(waiting(organization, "c-1", Cause(utc_now(), "cli-1", "os:anna")))
    assert shell.json(*WAITING, "list")["data"] == []
    assert "was proposed: use another one" in shell.refusal(*adjust("0.000005", organization))
    assert shell.json(*adjust("1", organization, "c-2"))["state"] == "made"
    assert shell.json("audit", "verify")["ok"]


def test_no_money_moves_while_rights_or_limit_change(
    boss: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So what a command has read of them still holds where its events are in the log."""
    monkeypatch.setattr("app.cli.session.LOCK_WAIT_S", 0.1)
    anna_id, anna = created(boss, "anna", "money")
    organization = anna.new_organization()
    with closing(boss.container()) as container:
        assert container.operators_lock.acquire()
        before = head(boss)
        assert "has not ended" in anna.refusal(*adjust("1", organization))
        for line in (("revoke", anna_id), ("rotate-key", anna_id), ("approvals", "5")):
            assert "has not ended" in boss.refusal("operator", *line)
        assert head(boss) == before
        container.operators_lock.release()
    anna.run(*adjust("1", organization))
