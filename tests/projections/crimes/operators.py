"""What breaks the rights of operators and the rule of two."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from domain.accounts.approvals import ALONE_AFTER, ApprovalLimit, Kind, Proposal
from domain.accounts.operator_acts import OperatorAct
from domain.accounts.operators import Operator, Right
from domain.accounts.organization import ApiClient, Organization
from domain.accounts.prices import LookupPrice
from domain.accounts.refund_by_hand import HandRefund
from domain.accounts.wallet import Adjustment, Deposit
from domain.cause import Cause
from domain.links.link import Link
from domain.log.aggregate import Event, Root
from tests.projections.crimes.refunds_by_hand import of_job
from tests.projections.forgery import forged
from tests.projections.link_forgery import Crimes, LinkForger

LIMIT = 10
ABOVE, TWO = "is above the approval limit", "it takes another operator"


def by(forger: LinkForger, number: int | str | None) -> Cause:
    actor = f"operator:{Operator.id_of(number)}" if isinstance(number, int) else number
    return Cause(forger.cause.at, f"cli-{uuid4()}", actor)


def registered(number: int, may: Sequence[Right], cause: Cause) -> Operator:
    facts = {"name": f"o{number}", "may": [*may], "key_hash": f"hash-{number}"}
    return Operator.begin(Operator.Registered, cause, Operator.id_of(number), **facts)


def write(forger: LinkForger, *aggregates: Root) -> int:
    return forger.write(*(e for each in aggregates for e in each.collect_events()))


def staffed(forger: LinkForger, limit: int | None = LIMIT) -> LinkForger:
    """Operator 1 has the right keys, 2 and 3 money and approve; there is a limit of before."""
    write(forger, registered(1, ["keys"], by(forger, "os:root")))
    for number in (2, 3):
        write(forger, registered(number, ["money", "approve"], by(forger, 1)))
    if limit is not None:
        first, limit_id = ApprovalLimit.Opened, ApprovalLimit.id_of()
        opened = ApprovalLimit.begin(first, by(forger, 1), limit_id)
        opened.record(ApprovalLimit.Set, by(forger, 1), above_micros=limit)
        write(forger, opened)
    return forger


def covered(forger: LinkForger) -> LinkForger:
    """All but operator 4, who may approve, have their own key, and the limit covers people."""
    write(forger, registered(4, ["approve"], by(staffed(forger), 1)))
    for number in (1, 2, 3):
        rotate(forger, number, by(forger, number))
    limits(forger, LIMIT, by(forger, 2))  # It repeats what holds, so it needs no right.
    return forger


def limits(forger: LinkForger, micros: int | None, cause: Cause) -> int:
    limit = forger.log.get(ApprovalLimit, ApprovalLimit.id_of())
    limit.set(micros, cause)
    return write(forger, limit)


def rotate(forger: LinkForger, number: int, cause: Cause) -> int:
    operator = forger.log.get(Operator, Operator.id_of(number))
    operator.rotate_key(f"hash-{uuid4()}", cause)
    return write(forger, operator)


def asked(forger: LinkForger, kind: Kind, cause: Cause, **facts: Any) -> Proposal:
    """Propose something that is made by who has asked for it, or a price."""
    proposal = Proposal.of(cause, kind, uuid4(), **facts)
    write(forger, proposal)
    return proposal


def granted(
    forger: LinkForger, proposal: Proposal, cause: Cause, kind: Any = Proposal.Granted
) -> int:
    proposal.collect_events()
    proposal.record(kind, cause)
    return write(forger, proposal)


def booked(forger: LinkForger, micros: int, cause: Cause, reference: str = "bank-9") -> int:
    """Write a deposit with its entry; return the position of the deposit."""
    made = Deposit.make(forger.organization_id, reference, micros, cause)
    forger.wallet.enter(made, "USD", cause)
    position = write(forger, made)
    write(forger, forger.wallet)
    return position


def approved(proposal: Proposal, cause: Cause) -> Event:
    proposal.collect_events()
    proposal.record(Proposal.Approved, cause)
    (event,) = proposal.collect_events()
    return event


def proposed(forger: LinkForger, micros: int, number: int) -> Proposal:
    owner, cause = forger.organization_id, by(forger, number)
    named = Deposit.id_of(owner, "bank-9")
    facts = {"organization_id": owner, "amount_micros": micros, "reference": "bank-9"}
    proposal = Proposal.of(cause, "deposit", named, **facts)
    forger.write(proposal.pending_events[0])
    return proposal


def a_deposit_by_one_who_is_revoked(forger: LinkForger) -> int:
    revoke(staffed(forger), by(forger, 1), 2)
    return booked(forger, 5, by(forger, 2))


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


def prices_set(forger: LinkForger, *causes: Cause, currency: str = "USD") -> int:
    """Set a price for each cause; return the position of the last one."""
    price = LookupPrice.begin(LookupPrice.Opened, causes[0], LookupPrice.id_of())
    for number, cause in enumerate(causes, 5_000):
        price.record(LookupPrice.Set, cause, amount_micros=number, currency=currency)
    return write(forger, price)


# Since a limit covers people and prices.


def an_approval_of_what_a_revoked_operator_wanted(forger: LinkForger) -> int:
    proposal = proposed(covered(forger), LIMIT + 1, 2)
    revoke(forger, by(forger, 1), 2)
    return forger.write(approved(proposal, by(forger, 3)))


def deposits_that_exceed_the_limit_together(forger: LinkForger) -> int:
    covered(forger)
    booked(forger, LIMIT, by(forger, 2), reference="bank-7")
    booked(forger, LIMIT, by(forger, 3), reference="bank-8")
    return booked(forger, 1, by(forger, 2))


def a_deposit_and_an_adjustment_that_exceed_it_together(forger: LinkForger) -> int:
    covered(forger)
    booked(forger, LIMIT, by(forger, 2), reference="bank-7")
    return corrected(forger, -1, by(forger, 2))


def corrected(forger: LinkForger, micros: int, cause: Cause) -> int:
    made = Adjustment.make(forger.organization_id, "c-9", micros, cause, reason="why")
    forger.wallet.enter(made, "USD", cause)
    position = write(forger, made)
    write(forger, forger.wallet)
    return position


def refunds_that_exceed_it_together(forger: LinkForger) -> int:
    job, _ = of_job(forger)
    covered(forger)
    positions = [
        given_back(forger, job, LIMIT - at, f"t-{at}", by(forger, 2 + at)) for at in (0, 1)
    ]
    return positions[1]


def given_back(forger: LinkForger, job: Any, micros: int, reference: str, cause: Cause) -> int:
    charge = job.created.price.transaction_id
    refund = job.refund_by_hand(HandRefund(charge, reference, "why", micros, {}), cause)
    position = write(forger, job)
    forger.wallet.book([refund], cause)
    write(forger, forger.wallet)
    return position


def an_operator_with_more_than_was_approved(forger: LinkForger) -> int:
    who = {"subject": "o5", "may": ["money"]}
    proposal = asked(covered(forger), "operator", by(forger, 1), **who)
    granted(forger, proposal, by(forger, 2))
    proposal.record(Proposal.Used, by(forger, 1))
    write(forger, proposal)
    return write(forger, registered(5, ["money", "keys"], by(forger, 1)))


def an_operator_made_by_another_than_has_asked(forger: LinkForger) -> int:
    write(forger, registered(4, ["keys"], by(staffed(forger), 1)))
    limits(forger, LIMIT, by(forger, 1))
    rotate(forger, 2, by(forger, 2))
    proposal = asked(forger, "operator", by(forger, 1), subject="o5", may=["money"])
    granted(forger, proposal, by(forger, 2))
    proposal.record(Proposal.Used, by(forger, 4))
    position = write(forger, proposal)
    write(forger, registered(5, ["money"], by(forger, 4)))
    return position


def an_operator_made_by_who_has_approved(forger: LinkForger) -> int:
    proposal = asked(covered(forger), "operator", by(forger, 1), subject="o5", may=["money"])
    proposal.record(Proposal.Approved, by(forger, 2))
    position = write(forger, proposal)
    write(forger, registered(5, ["money"], by(forger, 2)))
    return position


def an_operator_made_twice_of_one_approval(forger: LinkForger) -> int:
    proposal = asked(covered(forger), "operator", by(forger, 1), subject="o5", may=["money"])
    granted(forger, proposal, by(forger, 2))
    proposal.record(Proposal.Used, by(forger, 1))
    write(forger, proposal)
    write(forger, registered(5, ["money"], by(forger, 1)))
    proposal.record(Proposal.Used, by(forger, 1))
    return write(forger, proposal)


def without_approvers(forger: LinkForger) -> LinkForger:
    revoke(covered(forger), by(forger, 1), 2, 3)
    return forger


def revoke(forger: LinkForger, cause: Cause, *numbers: int) -> int:
    its = [forger.log.get(Operator, Operator.id_of(each)) for each in numbers]
    for operator in its:
        operator.revoke(cause)
    return write(forger, *its) if its else 0


def lost_key(forger: LinkForger, waited: timedelta, *leaving: int) -> int:
    """Ask for the key of operator 1 without one; return the position where it is taken.

    Those who are `leaving` are revoked just before.
    """
    proposal = asked(forger, "key", by(forger, "os:root"), subject=str(Operator.id_of(1)))
    later = replace(by(forger, "os:root"), at=forger.cause.at + waited)
    revoke(forger, replace(by(forger, 1), at=later.at), *leaving)
    proposal.record(Proposal.Used, later)
    position = write(forger, proposal)
    rotate(forger, 1, later)
    return position


def machine(forger: LinkForger) -> ApiClient:
    facts: dict[str, Any] = {"scopes": ["deposits"], "secret_hash": "h", "organization_id": None}
    return ApiClient.register("cl_1", by(forger, 1), **facts)


def a_secret_of_such_a_client_made_by_one(forger: LinkForger) -> int:
    client = machine(staffed(forger))
    write(forger, client)
    limits(forger, LIMIT, by(forger, 1))
    client.rotate_secret("h2", by(forger, 1))
    return write(forger, client)


def clients_of(forger: LinkForger, *scopes: str, owner: UUID | None = None) -> ApiClient:
    """Write cl_1, which acts, with these scopes, and return cl_2 of the organization."""
    facts: dict[str, Any] = {"secret_hash": "h", "organization_id": owner or forger.organization_id}
    write(forger, ApiClient.register("cl_1", by(forger, 1), scopes=scopes, **facts))
    facts["organization_id"] = forger.organization_id
    client = ApiClient.register("cl_2", by(forger, 1), scopes=["lookup"], **facts)
    write(forger, client)
    return client


def renewed(forger: LinkForger, client: ApiClient, actor: str | None = "client:cl_1") -> int:
    client.rotate_secret("h2", by(forger, actor))
    return write(forger, client)


def ended(forger: LinkForger, after: timedelta) -> int:
    """Let cl_1 end cl_2 so long after it was revoked itself."""
    client = clients_of(staffed(forger), "clients")
    actor = forger.log.get(ApiClient, ApiClient.id_of("cl_1"))
    actor.revoke(by(forger, 1))
    write(forger, actor)
    client.revoke(replace(by(forger, "client:cl_1"), at=forger.cause.at + after))
    return write(forger, client)


def a_price_changed_by_one(forger: LinkForger) -> int:
    its = forger.log.get(Organization, covered(forger).organization_id)
    its.change_price(1, by(forger, 2))
    return write(forger, its)


def a_fee_changed_to_another_than_was_approved(forger: LinkForger) -> int:
    owner = covered(forger).organization_id
    proposal = asked(forger, "fee", by(forger, 2), organization_id=owner, amount_micros=2)
    its = forger.log.get(Organization, owner)
    its.change_monthly_link_fee(1, by(forger, 3))
    proposal.record(Proposal.Approved, by(forger, 3))
    write(forger, proposal)
    return write(forger, its)


def an_organization_made_with_a_price_of_its_own(forger: LinkForger) -> int:
    its = Organization.register(uuid4(), by(covered(forger), 2), name="Acme", price_micros=0)
    return write(forger, its)


def a_price_of_all_set_by_one(forger: LinkForger) -> int:
    write(forger, registered(5, ["catalogue"], by(covered(forger), 1)))
    return prices_set(forger, by(forger, None), by(forger, 5))


def an_approval_that_nothing_follows(forger: LinkForger) -> int:
    proposal = proposed(staffed(forger), 11, 2)
    return forger.write(approved(proposal, by(forger, 3)))


def a_key_used_by_another(forger: LinkForger) -> int:
    operator = staffed(forger).log.get(Operator, Operator.id_of(2))
    operator.record(Operator.KeyRehashed, by(forger, 3), key_hash="h")
    return write(forger, operator)


def nobody_with_keys(forger: LinkForger) -> LinkForger:
    revoke(staffed(forger), by(forger, 1), 1)
    return forger


def suspended(forger: LinkForger, number: int | None) -> int:
    event = forger.fact(forger.active("0"), Link.Suspended)
    return forger.write(forged(event, actor=by(forger, number).actor))


def terms(forger: LinkForger, kind: Kind, of: Any = None) -> int:
    """Change the price of an organization, where that of another, or a fee, was approved."""
    owner = covered(forger).organization_id
    proposal = asked(forger, kind, by(forger, 2), organization_id=of or owner, amount_micros=7)
    forger.write(approved(proposal, by(forger, 3)))
    its = forger.log.get(Organization, owner)
    its.change_price(7, by(forger, 3))
    return write(forger, its)


NOT_TWO, DECIDED = "is not approved by another operator", "it decides what nobody has proposed"
MONEY, APPROVE = "does this without the right money", "does this without the right approve"
KEYS, CATALOGUE = "does this without the right keys", "does this without the right catalogue"
CRIMES: Crimes = [
    (an_approval_that_nothing_follows, "this was approved and not done"),
    (a_key_used_by_another, "is the key of another operator"),
    (a_deposit_by_one_who_is_revoked, MONEY),
    (a_deposit_by_a_client_without_the_scope, MONEY),
    (a_deposit_of_more_than_was_approved, "is above the approval limit"),
    (an_approval_with_a_key_that_the_proposer_made, NOT_TWO),
    (lambda f: limits(staffed(f), None, by(f, 1)), ABOVE),
    (lambda f: write(f, registered(4, ["money"], by(staffed(f), 2))), KEYS),
    (lambda f: rotate(staffed(f), 3, by(f, 2)), KEYS),
    (lambda f: write(staffed(f), Organization.register(uuid4(), by(f, None), name="Acme")), MONEY),
    (lambda f: prices_set(staffed(f), *(by(f, None) for _ in range(2))), CATALOGUE),
    (lambda f: prices_set(staffed(f), by(f, None), by(f, 2)), CATALOGUE),
    (lambda f: f.write(approved(proposed(covered(f), LIMIT + 1, 2), by(f, 4))), NOT_TWO),
    (an_approval_of_what_a_revoked_operator_wanted, NOT_TWO),
    (deposits_that_exceed_the_limit_together, ABOVE),
    (a_deposit_and_an_adjustment_that_exceed_it_together, ABOVE),
    (refunds_that_exceed_it_together, ABOVE),
    (lambda f: write(covered(f), registered(5, ["money"], by(f, 1))), TWO),
    (an_operator_with_more_than_was_approved, TWO),
    (an_operator_made_by_another_than_has_asked, NOT_TWO),
    (an_operator_made_by_who_has_approved, "shows a secret to another"),
    (an_operator_made_twice_of_one_approval, DECIDED),
    (lambda f: rotate(covered(f), 2, by(f, 1)), TWO),
    (lambda f: lost_key(covered(f), ALONE_AFTER), NOT_TWO),
    (lambda f: lost_key(without_approvers(f), ALONE_AFTER - timedelta(seconds=1)), NOT_TWO),
    (lambda f: lost_key(covered(f), ALONE_AFTER, 2, 3), NOT_TWO),
    (lambda f: write(covered(f), machine(f)), TWO),
    (a_secret_of_such_a_client_made_by_one, TWO),
    (lambda f: renewed(f, clients_of(staffed(f), "wallet", "links")), KEYS),
    (lambda f: renewed(f, clients_of(staffed(f), "clients", owner=uuid4())), KEYS),
    (lambda f: renewed(f, clients_of(staffed(f), "clients"), "client:cl_3"), KEYS),
    (lambda f: renewed(f, clients_of(staffed(f), "clients"), None), KEYS),
    (lambda f: renewed(f, clients_of(covered(f), "clients"), "operator:none"), KEYS),
    (lambda f: ended(f, timedelta(seconds=61)), KEYS),
    (a_price_changed_by_one, TWO),
    (a_fee_changed_to_another_than_was_approved, TWO),
    (an_organization_made_with_a_price_of_its_own, TWO),
    (a_price_of_all_set_by_one, TWO),
    (
        lambda f: prices_set(f, by(f, None), currency="EUR"),
        "its currency is not USD, that of the log",
    ),
    (lambda f: limits(staffed(f), LIMIT + 1, by(f, 1)), ABOVE),
    (lambda f: limits(staffed(f), LIMIT - 1, by(f, 2)), KEYS),
    (lambda f: booked(nobody_with_keys(f), 5, by(f, "os:root")), MONEY),
    (lambda f: revoke(staffed(f), by(f, 2), 2), KEYS),
    (lambda f: rotate(staffed(f), 2, by(f, "os:root")), KEYS),
    (lambda f: booked(staffed(f), 5, replace(by(f, None), request_id="serve-demo")), MONEY),
    (lambda f: suspended(staffed(f), 1), MONEY),
    (lambda f: write(staffed(f), OperatorAct.of("key.renewed", "k", by(f, 2))), KEYS),
    (lambda f: write(staffed(f), Proposal.of(by(f, 2), "operator", may=[])), KEYS),
    (lambda f: write(staffed(f), Proposal.of(by(f, "os:root"), "limit")), KEYS),
    (lambda f: prices_set(staffed(f), by(f, 2)), CATALOGUE),
    (lambda f: granted(staffed(f), proposed(f, 11, 2), by(f, 1), Proposal.Rejected), APPROVE),
    (lambda f: terms(f, "fee"), TWO),
    (lambda f: terms(f, "price", uuid4()), TWO),
    (
        lambda f: write(
            covered(f),
            Organization.register(uuid4(), by(f, 2), name="Acme", monthly_link_fee_micros=5),
        ),
        TWO,
    ),
]
