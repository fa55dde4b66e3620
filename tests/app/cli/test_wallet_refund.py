"""`wallet refund`: a charge goes back by hand, and everybody can see who decided it and why."""

from uuid import UUID

import pytest

from domain.cause import Cause, utc_now
from domain.lookups.number_lookup import NumberLookup
from domain.lookups.single import LookupRequest
from tests.app.cli.shell import Shell
from tests.app.cli.test_actor import ME


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


def line(charge: UUID, *more: str, reference: str = "t-1") -> list[object]:
    return ["wallet", "refund", charge, "--reference", reference, "--reason", "a complaint", *more]


def test_the_log_and_the_transactions_say_why(shell: Shell, charge: UUID) -> None:
    made = shell.json(*line(charge))["transaction_id"]
    container = shell.container()
    container.projector.catch_up()
    with container.views.reading() as connection:
        refund = container.transactions.of_any(connection, UUID(made))
    assert refund is not None
    assert (refund.reason, refund.refund_of) == ("by_hand", charge)
    assert (refund.kind, refund.description) == ("refund", "a complaint")
    by_hand = container.log.history(UUID(refund.reference.id))[-1]
    assert isinstance(by_hand, NumberLookup.RefundedByHand)
    assert (by_hand.actor, by_hand.reason, by_hand.reference) == (ME, "a complaint", "t-1")
    container.close()
    told = shell.refusal(*line(UUID(made), reference="t-2"))
    assert told == "this transaction is no charge but a refund"
