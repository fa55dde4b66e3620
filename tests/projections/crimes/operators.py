"""What breaks the rights of operators and the rule of two."""

from collections.abc import Sequence
from uuid import uuid4

from domain.accounts.approvals import LIMIT_ID, ApprovalLimit, Proposal
from domain.accounts.operators import Operator, Right, operator_id
from domain.accounts.organization import ApiClient, Organization
from domain.accounts.prices import LookupPrice
from domain.accounts.wallet import Deposit
from domain.cause import Cause
from domain.log.aggregate import Event, Root
from tests.projections.link_forgery import Crime, LinkForger

LIMIT = 10


def by(forger: LinkForger, number: int | str | None) -> Cause:
    actor = f"operator:{operator_id(number)}" if isinstance(number, int) else number
    return Cause(forger.cause.at, f"cli-{uuid4()}", actor)


def registered(number: int, may: Sequence[Right], cause: Cause) -> Operator:
    return Operator.register(
        operator_id(number), cause, name=f"o{number}", may=may, key_hash=f"hash-{number}"
    )


def write(forger: LinkForger, *aggregates: Root) -> int:
    return forger.write(*(e for each in aggregates for e in each.collect_events()))


def staffed(forger: LinkForger, limit: int | None = LIMIT) -> LinkForger:
    """Operator 1 has the right keys, 2 and 3 money and approve; there is a limit."""
    write(forger, registered(1, ["keys"], by(forger, "os:root")))
    for number in (2, 3):
        write(forger, registered(number, ["money", "approve"], by(forger, 1)))
    if limit is not None:
        opened = ApprovalLimit.open(by(forger, 1))
        opened.set(limit, by(forger, 1))
        write(forger, opened)
    return forger


def booked(forger: LinkForger, micros: int, cause: Cause, *before: Root) -> int:
    """Write a deposit with its entry; return the position of the deposit."""
    made = Deposit.make(forger.organization_id, "bank-9", micros, cause)
    forger.wallet.deposit(made, "USD", cause)
    if before:
        write(forger, *before)
    position = write(forger, made)
    write(forger, forger.wallet)
    return position


def approved(proposal: Proposal, cause: Cause) -> Event:
    proposal.collect_events()
    proposal.record(Proposal.Approved, cause)
    (event,) = proposal.collect_events()
    return event


def proposed(forger: LinkForger, micros: int, number: int) -> Proposal:
    proposal = Proposal.of_deposit(forger.organization_id, micros, "bank-9", by(forger, number))
    made = proposal.pending_events[0]
    forger.write(made)
    return proposal


def a_deposit_by_one_who_is_revoked(forger: LinkForger) -> int:
    operator = registered(4, ["money"], by(staffed(forger), 1))
    operator.revoke(by(forger, 1))
    write(forger, operator)
    return booked(forger, 5, by(forger, 4))


def a_deposit_by_a_client_without_the_scope(forger: LinkForger) -> int:
    client = ApiClient.register(
        "cl_1", by(staffed(forger), 1), organization_id=None, scopes=["wallet"], secret_hash="h"
    )
    write(forger, client)
    return booked(forger, 5, by(forger, "client:cl_1"))


def a_deposit_of_more_than_was_approved(forger: LinkForger) -> int:
    proposal = proposed(staffed(forger), LIMIT + 1, 2)
    forger.write(approved(proposal, by(forger, 3)))
    return booked(forger, LIMIT + 2, by(forger, 3))


def an_approval_with_a_key_that_the_proposer_made(forger: LinkForger) -> int:
    write(forger, registered(4, ["money", "keys"], by(staffed(forger), 1)))
    write(forger, registered(5, ["keys"], by(forger, 4)))
    write(forger, registered(6, ["approve"], by(forger, 5)))  # Four acts as five.
    proposal = proposed(forger, LIMIT + 1, 4)
    position = forger.write(approved(proposal, by(forger, 6)))
    booked(forger, LIMIT + 1, by(forger, 6))
    return position


def a_limit_ended_by_one(forger: LinkForger) -> int:
    limit = staffed(forger).process.log.get(ApprovalLimit, LIMIT_ID)
    limit.set(None, by(forger, 1))
    return write(forger, limit)


def an_operator_made_without_the_right(forger: LinkForger) -> int:
    return write(forger, registered(4, ["money"], by(staffed(forger), 2)))


def a_key_made_for_another_without_the_right(forger: LinkForger) -> int:
    operator = staffed(forger).process.log.get(Operator, operator_id(3))
    operator.rotate_key("hash-x", by(forger, 2))
    return write(forger, operator)


def an_organization_made_by_nobody(forger: LinkForger) -> int:
    return write(staffed(forger), Organization.register(uuid4(), by(forger, None), name="Acme"))


def prices_set(forger: LinkForger, *causes: Cause, currency: str = "USD") -> int:
    """Set a price for each cause; return the position of the last one."""
    price = LookupPrice.open(causes[0])
    for number, cause in enumerate(causes):
        price.set(5_000 + number, currency, cause)
    return write(forger, price)


def a_second_price_set_by_nobody(forger: LinkForger) -> int:
    return prices_set(staffed(forger), *(by(forger, None) for _ in range(2)))


def a_price_set_without_the_right(forger: LinkForger) -> int:
    return prices_set(staffed(forger), by(forger, None), by(forger, 2))


def a_price_in_another_currency(forger: LinkForger) -> int:
    return prices_set(forger, by(forger, None), currency="EUR")


CRIMES: dict[Crime, str] = {
    a_deposit_by_one_who_is_revoked: "without the right money",
    a_deposit_by_a_client_without_the_scope: "without the right money",
    a_deposit_of_more_than_was_approved: "is above the approval limit",
    an_approval_with_a_key_that_the_proposer_made: "is not approved by another operator",
    a_limit_ended_by_one: "is raised without another operator",
    an_operator_made_without_the_right: "without the right keys",
    a_key_made_for_another_without_the_right: "without the right keys",
    an_organization_made_by_nobody: "without the right money",
    a_second_price_set_by_nobody: "without the right catalogue",
    a_price_set_without_the_right: "without the right catalogue",
    a_price_in_another_currency: "is not the currency of this log",
}
