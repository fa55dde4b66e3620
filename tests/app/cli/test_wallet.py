"""`wallet`: money in, corrections, and what is refused."""

from uuid import UUID

import pytest

from tests.app.cli.shell import Shell


@pytest.fixture
def organization(shell: Shell) -> UUID:
    return shell.new_organization()


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


def test_an_organization_may_have_all_for_nothing_and_spend_nothing(
    shell: Shell, organization: UUID
) -> None:
    for amount, told in (("1.5", "1.50"), ("0", "0.00")):
        prices = ("--price", amount, "--monthly-link-fee", amount, "--spending-limit", amount)
        its = shell.json("org", "set", organization, *prices)
        assert {its["price_per_lookup"], its["monthly_link_fee"], its["spending_limit"]} == {told}


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


def adjusting(organization: UUID, amount: str, reference: str, reason: str) -> list[object]:
    given = ["--reference", reference, "--reason", reason]
    return ["wallet", "adjust", organization, amount, *given]
