"""`audit margin` and `audit trial-balance`: what they print, and when they fail."""

import sqlite3

import pytest

from domain.accounts.wallet import Wallet
from domain.cause import Cause
from domain.lookups.single import LookupRequest
from domain.months import next_month
from tests.app.cli.shell import Shell
from tests.installation import this_month

NOTHING = {"other_costs": [], "unknown": 0}


@pytest.fixture
def month() -> str:
    return this_month()


@pytest.fixture
def used(shell: Shell, month: str) -> Shell:  # noqa: ARG001  # It must not end meanwhile.
    """A deposit of 5 and a lookup for 0.25 that has cost 0.10."""
    shell = shell.having(COST_PER_LOOKUP="offline=0.10")
    organization = shell.new_organization()
    shell.run("wallet", "deposit", organization, "5", "--reference", "r")
    container = shell.container()
    request = LookupRequest(organization, "+14155550100", 250_000, "USD", None)
    container.single_lookup.run(request, Cause(container.clock(), "request"))
    container.close()
    return shell


def test_the_margin_is_what_the_provider_leaves(used: Shell) -> None:
    told = used.json("audit", "margin", "--by", "provider")
    costs = {"cost": "0.10", "estimated": "0.10", **NOTHING}
    earned = {"revenue": "0.25", "refunds": "0.00", **costs, "margin": "0.15"}
    assert told == {
        "by": "provider",
        "currency": "USD",
        "data": [{"provider": "offline", **earned}],
        "total": earned,
    }
    head, row, total = used.run("audit", "margin", "--by", "org").stdout.splitlines()
    assert head.split()[:4] == ["ORG", "NAME", "REVENUE", "REFUNDS"]
    assert row.split()[1:3] == ["Acme", "0.25"]
    assert (total.split()[0], total.split()[-1]) == ("total", "0.15")


def test_a_refund_by_hand_is_with_the_provider_of_its_charge(used: Shell) -> None:
    container = used.container()
    charges = (event for _, event in container.log.read(0, 100))
    (charge,) = (each for each in charges if isinstance(each, Wallet.Charged))
    container.close()
    refund = ("wallet", "refund", charge.transaction_id, "--reference", "r", "--reason", "goodwill")
    used.run(*refund)
    (row,) = used.json("audit", "margin", "--by", "provider")["data"]
    assert (row["provider"], row["refunds"], row["margin"]) == ("offline", "0.25", "-0.10")


def test_months_are_the_rows_unless_others_are_asked_for(used: Shell) -> None:
    assert used.json("audit", "margin")["by"] == "month"
    assert "--by" in used.refusal("audit", "margin", "--by", "mood", status=2)


def test_an_empty_log_has_earned_nothing(shell: Shell) -> None:
    assert shell.json("audit", "margin")["data"] == []
    assert "There are none." in shell.run("audit", "margin").stdout
    assert shell.json("audit", "trial-balance")["ok"] is True


def test_the_accounts_sum_to_zero(used: Shell) -> None:
    told = used.json("audit", "trial-balance")
    assert (told["ok"], told["unknown_costs"], told["differences"]) == (True, 0, [])
    assert [(each["account"], each["debit"], each["credit"]) for each in told["data"]] == [
        ("Assets:Deposits", "5.00", "0.00"),
        ("Expenses:Providers:Offline", "0.10", "0.00"),
        ("Income:Lookup", "0.00", "0.25"),
        ("Liabilities:Providers:Offline", "0.00", "0.10"),
        ("Liabilities:Wallets", "0.00", "4.75"),
    ]
    printed = used.run("audit", "trial-balance").stdout.splitlines()
    assert printed[0].split() == ["ACCOUNT", "CURRENCY", "DEBIT", "CREDIT"]
    assert printed[-4].split() == ["ok", "yes"]
    before = used.json("audit", "trial-balance", "--at", told["position"] - 1)
    assert "Income:Lookup" not in {each["account"] for each in before["data"]}
    assert used.json("audit", "trial-balance", "--at", "2020-01-01")["data"] == []


def test_a_month_has_opening_movement_and_closing(used: Shell, month: str) -> None:
    told = used.json("audit", "trial-balance", "--month", month)
    assert (told["month"], told["final"], told["ok"]) == (month, False, True)
    assert told["unknown_costs"] == 0
    assert {each["account"]: each["closing"] for each in told["data"]} == {
        "Assets:Deposits": "5.00",
        "Expenses:Providers:Offline": "0.10",
        "Income:Lookup": "-0.25",
        "Liabilities:Providers:Offline": "-0.10",
        "Liabilities:Wallets": "-4.75",
    }
    after = used.json("audit", "trial-balance", "--month", next_month(month))
    assert [(each["opening"], each["movement"]) for each in after["data"]] == [
        (each["closing"], "0.00") for each in told["data"]
    ]
    printed = used.run("audit", "trial-balance", "--month", month).stdout.splitlines()
    assert printed[0].split() == ["ACCOUNT", "CURRENCY", "OPENING", "MOVEMENT", "CLOSING"]
    both = used.refusal("audit", "trial-balance", "--month", month, "--at", 1, status=2)
    assert "--at or --month" in both


def test_an_amount_that_was_rewritten_leaves_a_difference(used: Shell) -> None:
    with sqlite3.connect(used.database) as connection:
        changed = connection.execute(
            "UPDATE stored_events SET state = replace(state, '\"amount_micros\":5000000',"
            " '\"amount_micros\":5000001') WHERE topic = 'wallet.deposited'"
        )
        assert changed.rowcount == 1
    connection.close()
    told = used.json("audit", "trial-balance", status=1)
    assert used.json("audit", "trial-balance", "--month", "2099-01", status=1)["ok"] is False
    difference = [{"amount": "0.000001", "currency": "USD"}]
    assert (told["ok"], told["differences"]) == (False, difference)
