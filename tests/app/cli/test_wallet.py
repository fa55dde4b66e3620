"""`wallet`: money in, corrections, and what is refused."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.app.cli.shell import Shell


@pytest.fixture
def organization(shell: Shell) -> UUID:
    return shell.new_organization()


def balance(shell: Shell, organization: UUID) -> str:
    shown = shell.json("wallet", "show", organization)
    assert shown["organization"] == str(organization)
    assert shown["currency"] == "USD"
    return str(shown["balance"])


def test_the_same_reference_twice_is_one_deposit(shell: Shell, organization: UUID) -> None:
    for _ in range(2):
        made = shell.json("wallet", "deposit", organization, "12.5", "--reference", "wire 1")
        assert made == {
            "organization": str(organization),
            "balance": "12.50",
            "currency": "USD",
        }
    assert balance(shell, organization) == "12.50"


def test_the_same_reference_with_another_amount_is_refused(
    shell: Shell, organization: UUID
) -> None:
    shell.run("wallet", "deposit", organization, "5", "--reference", "wire 1")
    refusal = shell.refusal("wallet", "deposit", organization, "6", "--reference", "wire 1")
    assert "wire 1" in refusal
    assert balance(shell, organization) == "5.00"


def test_references_belong_to_one_organization(shell: Shell, organization: UUID) -> None:
    other = shell.new_organization()
    shell.run("wallet", "deposit", organization, "5", "--reference", "wire 1")
    shell.run("wallet", "deposit", other, "6", "--reference", "wire 1")
    assert (balance(shell, organization), balance(shell, other)) == ("5.00", "6.00")


@pytest.mark.parametrize(
    "line",
    [
        "{} -1.000001 --reason typo --reference c-1",
        "{} --reference c-1 --reason typo -1.000001",
        "--reason=typo --reference=c-1 {} -1.000001",
    ],
)
def test_a_correction_may_be_negative_wherever_it_stands(
    shell: Shell, organization: UUID, line: str
) -> None:
    shell.run("wallet", "deposit", organization, "5", "--reference", "wire 1")
    adjusted = shell.json("wallet", "adjust", *line.format(organization).split())
    assert adjusted["balance"] == "3.999999"
    assert balance(shell, organization) == "3.999999"


def test_a_correction_never_goes_below_zero(shell: Shell, organization: UUID) -> None:
    adjust(shell, organization, "0.01", "c-1", "a gift")
    refusal = shell.refusal(*adjusting(organization, "-5", "c-2", "a mistake"))
    assert "required 5.00, available 0.01, currency USD" in refusal
    assert balance(shell, organization) == "0.01"
    shell.run("wallet", "deposit", organization, "5", "--reference", "wire 1")
    assert adjust(shell, organization, "-5", "c-2", "a mistake")["balance"] == "0.01"


def test_the_same_correction_again_is_one_entry(shell: Shell, organization: UUID) -> None:
    first = adjust(shell, organization, "1.50", "c-1", "a gift")
    assert adjust(shell, organization, "1.50", "c-1", "a gift") == first
    other = shell.refusal(*adjusting(organization, "1.51", "c-1", "a gift"))
    assert other == "the adjustment with reference c-1 has another amount"
    other = shell.refusal(*adjusting(organization, "1.50", "c-1", "a loan"))
    assert other == "the adjustment with reference c-1 has another reason"
    assert balance(shell, organization) == "1.50"
    assert shell.json("audit", "verify")["ok"]


def test_a_correction_without_a_reference_is_refused(shell: Shell, organization: UUID) -> None:
    refusal = shell.refusal("wallet", "adjust", organization, "1", "--reason", "r", status=2)
    assert "--reference" in refusal


def test_a_wallet_is_opened_once(shell: Shell) -> None:
    organization = shell.new_organization("--no-wallet")
    assert "has no wallet" in shell.refusal("wallet", "show", organization)
    deposit = ["wallet", "deposit", organization, "1", "--reference", "r"]
    assert "has no wallet" in shell.refusal(*deposit)
    assert shell.json("wallet", "open", organization)["balance"] == "0.00"
    assert "has a wallet already" in shell.refusal("wallet", "open", organization)
    assert shell.json(*deposit)["balance"] == "1.00"


def test_every_wallet_has_the_same_currency(shell: Shell) -> None:
    bare = shell.new_organization("--no-wallet")
    shell.new_organization()
    euros = shell.having(CURRENCY="EUR")
    stays = "CURRENCY must stay USD: the log of this installation holds it"
    assert euros.refusal("wallet", "open", bare) == stays
    assert euros.refusal("org", "create", "--name", "Acme") == stays
    assert shell.json("wallet", "open", bare)["currency"] == "USD"


def test_an_unknown_organization_is_refused(shell: Shell) -> None:
    stranger = uuid4()
    assert "there is no organization" in shell.refusal("wallet", "open", stranger)
    assert "there is no organization" in shell.refusal("wallet", "show", stranger)


def test_a_wallet_is_never_larger_than_it_can_hold(shell: Shell, organization: UUID) -> None:
    shell.run("wallet", "deposit", organization, "999999999999.999999", "--reference", "a")
    refusal = shell.refusal("wallet", "deposit", organization, "1", "--reference", "b")
    assert "larger than a wallet can hold" in refusal


@pytest.mark.parametrize(
    "amount", ["0", "0.00", "-5.00", "1.1234567", "1e3", "\u0661", "1,5", "", "+1", "NaN", "10" * 7]
)
def test_a_wrong_deposit_is_named(shell: Shell, organization: UUID, amount: str) -> None:
    refusal = shell.refusal("wallet", "deposit", organization, amount, "--reference", "r", status=2)
    assert refusal.startswith("Invalid value for 'AMOUNT'")


@pytest.mark.parametrize("amount", ["0", "-0", "--1", "-1.1234567", "--reason"])
def test_a_wrong_correction_is_named(shell: Shell, organization: UUID, amount: str) -> None:
    refusal = shell.refusal(*adjusting(organization, amount, "c-1", "r"), status=2)
    assert "AMOUNT" in refusal or "--reason" in refusal


@pytest.mark.parametrize("words", ["", " ", "a\tb", "\udcff", "r" * 256])
def test_a_reference_is_one_printable_line(shell: Shell, organization: UUID, words: str) -> None:
    refusal = shell.refusal("wallet", "deposit", organization, "1", "--reference", words, status=2)
    assert "--reference" in refusal


def test_a_malformed_organization_is_named(shell: Shell) -> None:
    assert "'ORG'" in shell.refusal("wallet", "show", "acme", status=2)


def adjusting(organization: UUID, amount: str, reference: str, reason: str) -> list[object]:
    given = ["--reference", reference, "--reason", reason]
    return ["wallet", "adjust", organization, amount, *given]


def adjust(shell: Shell, organization: UUID, amount: str, reference: str, reason: str) -> Any:
    return shell.json(*adjusting(organization, amount, reference, reason))
