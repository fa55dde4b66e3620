"""`wallet refund`: a charge goes back by hand, and what is no charge does not."""

from uuid import UUID

import pytest

from domain.cause import Cause, utc_now
from domain.lookups.single import LookupRequest
from tests.app.cli.shell import Shell


@pytest.fixture
def organization(shell: Shell) -> UUID:
    organization = shell.new_organization()
    shell.run("wallet", "deposit", organization, "1", "--reference", "bank-1")
    return organization


@pytest.fixture
def charge(shell: Shell, organization: UUID) -> UUID:
    """A lookup that has cost 0.01."""
    return lookup_of(shell, organization, 10_000)


def lookup_of(shell: Shell, organization: UUID, price_micros: int) -> UUID:
    """Look a number up and return the charge."""
    container = shell.container()
    request = LookupRequest(organization, "+41446681800", price_micros, "USD", None)
    result = container.single_lookup.run(request, Cause(utc_now(), "request-1"))
    container.close()
    assert result.lookup.answer.price is not None
    return result.lookup.answer.price.transaction_id


def line(charge: UUID, reference: str = "t-1") -> list[object]:
    return ["wallet", "refund", charge, "--reference", reference, "--reason", "a complaint"]


def test_a_refund_cannot_be_given_back(shell: Shell, charge: UUID) -> None:
    made = shell.json(*line(charge))["transaction_id"]
    told = shell.refusal(*line(UUID(made), reference="t-2"))
    assert told == "this transaction is no charge but a refund"
