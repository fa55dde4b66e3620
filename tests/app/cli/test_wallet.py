"""`wallet`: money in, corrections, refunds, play money, and what is refused."""

from contextlib import closing, redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from app.http.links.qr import as_png
from domain.accounts.currency import Currency
from domain.accounts.wallet import SANDBOX_DEPOSIT, wallet_id
from domain.cause import Cause, utc_now
from tests.app.cli.shell import Shell
from tests.docs.verifier import verify
from tests.installation import Process


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


def test_a_wallet_is_opened_once_by_a_command_that_is_repeated(shell: Shell) -> None:
    line = ("org", "set", shell.new_organization("--no-wallet"), "--wallet", "--price", "1")
    assert shell.json(*line) == shell.json(*line)


@pytest.mark.each_database
def test_a_wallet_that_another_opens_meanwhile_is_shown(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    accounts, cause, append = process.accounts, process.cause(), Currency.append
    facts = {"name": "A", "price_micros": None, "monthly_link_fee_micros": 0}
    its = accounts.register_organization(cause, with_wallet=False, **facts).id

    def late(self: Currency, make: Any, by: Cause) -> None:
        monkeypatch.undo()
        accounts.open_wallet(its, replace(cause, request_id="another"))
        append(self, make, by)

    monkeypatch.setattr(Currency, "append", late)
    assert accounts.open_wallet(its, cause).id == wallet_id(its)


def refuse_each(shell: Shell, organization: UUID, option: str, *wrong: object) -> None:
    for value in wrong:
        refusal = shell.refusal("org", "set", organization, option, value, status=2)
        assert refusal.startswith(f"Invalid value for '{option}'"), value


def test_the_brand_of_an_organization_is_a_colour_and_a_small_png(
    shell: Shell, organization: UUID, tmp_path: Path
) -> None:
    def logo(image: bytes) -> Path:
        file = tmp_path / "logo.png"
        file.write_bytes(image)
        return file

    image = as_png("https://acme.example", 64)
    assert shell.json("org", "set", organization, "--brand-colour", "#1A4FA0")["brand_colour"] == (
        "#1a4fa0"
    )
    its = shell.json("org", "set", organization, "--brand-logo", logo(image))
    assert (its["brand_colour"], its["brand_logo_bytes"]) == ("#1a4fa0", len(image))
    its = shell.json("org", "set", organization, "--brand-colour", "none")
    assert ("brand_colour" in its, its["brand_logo_bytes"]) == (False, len(image))
    assert "brand_logo_bytes" not in shell.json("org", "set", organization, "--brand-logo", "none")

    refuse_each(shell, organization, "--brand-colour", "blue", "#12345", "#1a4fa0;}", "", "1a4fa0")
    wide = image[:16] + (1_025).to_bytes(4) + image[20:]
    large = image[:-12] + bytes(16_384) + image[-12:]
    for wrong in (b"", image[:20], image[:-1], b"<svg/>" + image, large, wide):
        refuse_each(shell, organization, "--brand-logo", logo(wrong), tmp_path / "none.png")


def test_the_number_of_a_customer_is_shown_and_has_nine_digits_at_most(
    shell: Shell, organization: UUID
) -> None:
    line = ("org", "set", organization, "--customer-number")
    assert shell.json(*line, "100010001")["customer_number"] == "100010001"
    assert "customer_number" not in shell.json(*line, "none")
    refuse_each(shell, *line[2:], "", "0", "01", "1000100011", "K-1", "1.5", "-1", "\u0661")


def test_a_wallet_is_never_larger_than_it_can_hold(shell: Shell, organization: UUID) -> None:
    shell.run("wallet", "deposit", organization, "999999999999.999999", "--reference", "a")
    refusal = shell.refusal("wallet", "deposit", organization, "1", "--reference", "b")
    assert "larger than a wallet can hold" in refusal


def test_a_wrong_amount_or_reference_is_named(shell: Shell, organization: UUID) -> None:
    reason = ("--reason", "r")
    wrong = ("0", "0.00", "-5.00", "1.1234567", "1e3", "\u0661", "1,5", "", "+1", "NaN", "10" * 7)
    lines = [("AMOUNT", "deposit", each, "r") for each in wrong]
    lines += [("AMOUNT", "adjust", each, "r", *reason) for each in ("0", "-0", "--1", "-1.1234567")]
    lines += [("AMOUNT", "adjust", "--reason", "r", *reason)]
    lines += [("--reference", "deposit", "1", it) for it in ("", " ", "a\tb", "\udcff", "r" * 256)]
    for named, command, amount, reference, *more in lines:
        line = ("wallet", command, organization, amount, "--reference", reference, *more)
        assert shell.refusal(*line, status=2).startswith(f"Invalid value for '{named}'"), line


def lookup_of(shell: Shell, organization: UUID, price_micros: int) -> UUID:
    """Look a number up and return the charge."""
    with closing(shell.container()) as container:
        result = container.look_up(organization, price_micros=price_micros)
    assert result.lookup.answer.price is not None
    return result.lookup.answer.price.transaction_id


def test_a_refund_cannot_be_given_back(shell: Shell, organization: UUID) -> None:
    shell.run("wallet", "deposit", organization, "1", "--reference", "bank-1")
    line = ("wallet", "refund", "--reason", "a complaint", "--reference")
    made = shell.json(*line, "t-1", lookup_of(shell, organization, 10_000))["transaction_id"]
    told = shell.refusal(*line, "t-2", made)
    assert told == "this transaction is no charge but a refund"


def test_play_money_needs_no_right_and_both_audits_accept_it(shell: Shell, tmp_path: Path) -> None:
    sandbox, out = shell.having(SANDBOX="true"), tmp_path / "log.jsonl"
    organization = sandbox.new_organization()
    sandbox.json("operator", "create", "anna", "--may", "money,approve,keys,audit")
    facts = (organization, 7_000_000, "tests-1", Cause(utc_now(), "request-1"), SANDBOX_DEPOSIT)
    with closing(sandbox.container()) as parts:
        parts.accounts.book_deposit(*facts)
    assert sandbox.json("audit", "verify")["ok"]
    sandbox.run("audit", "export", "--format", "jsonl", "--out", out)
    with redirect_stdout(StringIO()):
        assert verify.main([str(out)]) == 0
