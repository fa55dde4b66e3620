"""`org`, `client`, `wallet` and `operator`: who may call, who pays, and who works here."""

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import wraps
from pathlib import Path
from typing import Any, get_args
from uuid import UUID

import click
from msgspec import UNSET

from app.bootstrap.known_keys import record_pepper
from app.cli.arguments import (
    ABOVE_ZERO,
    AMOUNTS_MAY_BE_NEGATIVE,
    AT_LEAST_ZERO,
    DATE,
    NOT_ZERO,
    WORDS,
    OrWord,
    Text,
    id_argument,
    matched,
    month_option,
    org_option,
    organization_argument,
)
from app.cli.operation import Given, Subject, misuse
from app.cli.output import Facts, Named, Said
from app.cli.session import Session, holder_of_key, user
from app.security.secrets import new_client_id, new_client_secret, new_operator_key
from app.settings import RATE_LIMIT_MAX
from domain.accounts.approvals import PEOPLE, Kind, Proposal, WaitsForApproval
from domain.accounts.commands import Moving
from domain.accounts.operator_acts import OperatorAct
from domain.accounts.operators import MANAGES, RIGHTS, Operator, Right
from domain.accounts.organization import (
    OLD_ENDS,
    OLD_ENDS_MAX,
    SCOPES,
    Organization,
    Status,
    not_over,
)
from domain.accounts.refund_by_hand import HandRefund
from domain.accounts.wallet import BOOKED, Adjustment, Metadata, Wallet, wallet_id
from domain.cause import Cause
from domain.errors import refuse
from domain.finance.statement import Month, Months
from projections.engine.reader import read_events
from projections.engine.shape import amount_of, pick
from projections.models.organizations import OrganizationRow
from projections.models.proposals import DECIDED
from projections.models.wallets import WalletRow

HOUR = timedelta(hours=1)
# Those of adjustments are of earlier releases.
DECISIONS = (Proposal.Granted, *DECIDED, Adjustment.Approved, Adjustment.Rejected)
SHOWN_ONCE = "The secret is not kept and cannot be shown again."
KEY_IS_KNOWN = (
    "The key is not kept and cannot be shown again. You have seen it, so its holder should now run "
    "`operator rotate-key` with it."
)
RUN_AGAIN = "It waits for another operator. When it is approved, run this command again."
# A logo is kept in the log for ever and sent with each page.
LOGO_BYTES_MAX, LOGO_SIDE_MAX = 16_384, 1_024
PNG_START, PNG_END = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", b"\x00\x00\x00\x00IEND\xaeB`\x82"
LOGO_RULE = f"PNG of at most {LOGO_BYTES_MAX:,} bytes and {LOGO_SIDE_MAX:,} pixels a side"
_NUMBER = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)
_COLOUR = re.compile(r"#[0-9a-f]{6}", re.ASCII | re.IGNORECASE)

subject = Subject()
org = subject.add("org")
client = subject.add("client")
wallet = subject.add("wallet")
adjustments = wallet.add(
    "adjustments", "What waits for another operator: adjustments, and all else that takes two."
)
operator = subject.add(
    "operator",
    """As soon as there is one, commands that move money or change prices, keys or the catalogue
    need the key of an operator who may do that, in OPERATOR_KEY or the file that OPERATOR_KEY_FILE
    names. Events keep who it was.""",
)


def may_wait(command: Callable[..., Said]) -> Callable[..., Said]:
    """Let a command that makes a secret tell what has to be approved first, in its place."""

    @wraps(command)
    def run(session: Session, **given: Any) -> Said:
        try:
            return command(session, **given)
        except WaitsForApproval as waits:
            facts = _proposal(session, waits.proposal)
            return Said(facts, [facts, RUN_AGAIN])

    return run


client_argument = click.argument("client_id", metavar="ID", type=WORDS)
price_option = click.option(
    "--price",
    type=OrWord(AT_LEAST_ZERO, "default"),
    help="Its own price per lookup; `default`: that of `prices lookup`.",
)


def _read_logo(value: str) -> str:
    """Return the PNG of a file in base64; raises ValueError for another file."""
    if value == "none":
        return ""
    try:
        with Path(value).open("rb") as file:
            image = file.read(LOGO_BYTES_MAX + 1)
    except OSError:
        raise ValueError from None
    is_whole = image.startswith(PNG_START) and image.endswith(PNG_END)
    sides = int.from_bytes(image[16:20]), int.from_bytes(image[20:24])
    if not is_whole or len(image) > LOGO_BYTES_MAX or max(sides) > LOGO_SIDE_MAX:
        raise ValueError
    return b64encode(image).decode()


NUMBER = Text(
    "number|none",
    lambda value: "" if value == "none" else matched(_NUMBER, value)[0],
    "{!r} is not a number of 1 to 9 digits, or none",
)
COLOUR = Text(
    "#rrggbb|none",
    lambda value: "" if value == "none" else matched(_COLOUR, value)[0].lower(),
    "{!r} is not a colour such as #1a4fa0, or none",
)
LOGO = Text("file|none", _read_logo, f"{{!r}} is not a {LOGO_RULE}, or none")


def _organization(
    its: Organization | OrganizationRow, wallet: Wallet | WalletRow | None, **more: Any
) -> Facts:
    return pick(
        "id name status price_per_lookup monthly_link_fee lookup_enabled rate_limit spending_limit "
        "wallet",
        its,
        price_per_lookup=amount_of(its.price_micros),  # Its own; None: the general one.
        rate_limit=its.rate_limit_per_minute,
        wallet=wallet and pick("balance currency", wallet),
        **more,
    )


def _organization_now(session: Session, its: Organization, proposed: Sequence[Proposal]) -> Facts:
    return _organization(
        its,
        session.container.log.find(Wallet, wallet_id(its.id)),
        proposals=[each.id for each in proposed] or UNSET,  # They wait for another operator.
        customer_number=its.customer_number or UNSET,
        brand_colour=its.brand_colour or UNSET,
        brand_logo_bytes=len(b64decode(its.brand_logo or "")) or UNSET,
    )


@org.command("create", right="money")
@click.option("--name", required=True, type=WORDS, help="How people call it.")
@price_option
@click.option(
    "--monthly-link-fee", "fee_micros", type=AT_LEAST_ZERO, default="0", help="Per active link."
)
@click.option("--no-wallet", is_flag=True, help="Open none; `org set --wallet` does so later.")
def create_organization(
    session: Session, *, name: str, price: int | str | None, fee_micros: int, no_wallet: bool
) -> Facts:
    """Register an organization, active and with an empty wallet.

    Once there is an approval limit, a price or fee of its own waits for another operator.
    """
    accounts, cause = session.container.accounts, session.cause
    wanted: dict[Kind, int | None] = {"price": _or_none(price), "fee": fee_micros}
    waits = accounts.approvals.above_micros() is not None
    made = accounts.register_organization(
        cause,
        name=name,
        price_micros=None if waits else wanted["price"],
        monthly_link_fee_micros=0 if waits else fee_micros,
        with_wallet=not no_wallet,
    )
    proposed = accounts.propose_prices(made.id, wanted, cause) if waits else []
    return _organization_now(session, made, proposed)


@org.command("list", right=None)
def list_organizations(session: Session) -> list[Facts]:
    """List all organizations, oldest first."""
    wallets = session.container.wallets
    rows, read = session.read(session.container.organizations.all), session.container.views.read
    return [_organization(row, read(wallets.get, row.id)) for row in rows]


@org.command("set", right="money")
@id_argument("organization_id")
@click.option(
    "--status", type=click.Choice(get_args(Status)), help="Whether its requests are accepted."
)
@price_option
@click.option("--lookup", type=click.Choice(["on", "off"]), help="Whether it may look up.")
@click.option("--monthly-link-fee", "fee_micros", type=AT_LEAST_ZERO, help="Per active link.")
@click.option(
    "--rate-limit",
    "per_minute",
    type=OrWord(click.IntRange(0, RATE_LIMIT_MAX), "default"),
    help="Requests a minute; 0: any number, `default`: RATE_LIMIT_PER_MINUTE.",
)
@click.option(
    "--spending-limit",
    "limit_micros",
    type=OrWord(AT_LEAST_ZERO, "none"),
    help="What it may spend in a calendar month (UTC).",
)
@click.option("--customer-number", type=NUMBER, help="Of its account in your bookkeeping.")
@click.option("--brand-colour", "colour", type=COLOUR, help="Of its travellers' pages.")
@click.option("--brand-logo", "logo", type=LOGO, help=f"On these pages: a {LOGO_RULE}.")
@click.option("--wallet", "with_wallet", is_flag=True, help="Open the wallet that it lacks.")
def change(session: Session, organization_id: UUID, *, with_wallet: bool, **given: Any) -> Facts:
    """Change an organization: its status, what it pays, what it may use, and its limits.

    `suspended` and `inactive` refuse its requests, the latter because it is not a customer at
    present; what was accepted is still finished. Once there is an approval limit, its price and its
    fee wait for another operator.
    """
    if set(given.values()) == {None} and not with_wallet:
        misuse("give at least one option: there is nothing to change")
    accounts, cause = session.container.accounts, session.cause
    if with_wallet:
        accounts.open_wallet(organization_id, cause)
    proposed = list[Proposal]()
    if accounts.approvals.above_micros() is not None:
        proposed = accounts.propose_prices(organization_id, _price_changes(given), cause)

    changed = accounts.change_organization(organization_id, lambda its: _apply(its, given, cause))
    if given["limit_micros"] is not None:
        limit_micros = _or_none(given["limit_micros"])
        changed = accounts.set_spending_limit(organization_id, limit_micros, cause)
    return _organization_now(session, changed, proposed)


def _apply(its: Organization, given: Given, cause: Cause) -> None:
    if given["status"] is not None:
        its.change_status(given["status"], cause)
    if given["price"] is not None:
        its.change_price(_or_none(given["price"]), cause)
    if given["per_minute"] is not None:
        its.set_rate_limit(_or_none(given["per_minute"]), cause)
    if given["lookup"] is not None:
        its.switch_lookup(cause, enabled=given["lookup"] == "on")
    if given["fee_micros"] is not None:
        its.change_monthly_link_fee(given["fee_micros"], cause)
    if given["customer_number"] is not None:
        its.set_customer_number(given["customer_number"] or None, cause)
    held = {"colour": its.brand_colour, "logo": its.brand_logo}
    held |= {name: given[name] or None for name in held if given[name] is not None}
    its.set_brand(held["colour"], held["logo"], cause)


def _price_changes(given: dict[str, Any]) -> Mapping[Kind, int | None]:
    """Take the price and the fee out of the options that are given."""
    names: Mapping[Kind, str] = {"price": "price", "fee": "fee_micros"}
    changes = {kind: given[name] for kind, name in names.items() if given[name] is not None}
    given.update(dict.fromkeys(names.values()))
    return {kind: _or_none(value) for kind, value in changes.items()}


def _or_none(value: int | str | None) -> int | None:
    """Return a number; None for the word in its place, which removes the setting."""
    return None if isinstance(value, str) else value


CLIENT = "client_id organization scopes revoked"
NEW_CLIENT = "client_id client_secret organization scopes"


@client.command("create", right="keys")
@org_option("Whose client it is.")
@click.option("--m2m", is_flag=True, help="An approved client that names an organization per call.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(SCOPES),
    help="One of many; none, or exactly the first four: all, also later ones.",
)
@may_wait
def create_client(
    session: Session, *, organization_id: UUID | None, m2m: bool, scopes: Sequence[str]
) -> Said:
    """Create a client; its secret is printed only this once.

    Once there is an approval limit, one with the scope `deposits` waits for another operator: when
    it is approved, run the same command again.
    """
    if (organization_id is not None) == m2m:
        misuse("give either --org or --m2m")
    secret, container = new_client_secret(), session.container
    record_pepper(container)
    made = container.accounts.register_client(
        session.cause,
        client_id=new_client_id(),
        secret_hash=container.secret_hasher.hash(secret),
        organization_id=organization_id,
        scopes=list(dict.fromkeys(scopes)),
    )
    facts = pick(NEW_CLIENT, made, client_secret=secret)
    return Said(facts, [facts, SHOWN_ONCE])


@client.command("list", right=None)
def list_clients(session: Session) -> list[Facts]:
    """List all clients, oldest first, including revoked ones."""
    now = session.container.clock()
    found = session.read(session.container.clients.all)
    return [
        pick(f"{CLIENT} created_at", row, old_secret_ends=not_over(row.old_until, now))
        for row in found
    ]


@client.command("revoke", right="keys")
@client_argument
def revoke_client(session: Session, client_id: str) -> Facts:
    """Refuse the secrets and tokens of a client for ever."""
    return pick(CLIENT, session.container.accounts.revoke_client(client_id, session.cause))


@client.command("rotate-secret", right="keys")
@client_argument
@click.option(
    "--old-ends",
    "hours",
    type=click.IntRange(0, OLD_ENDS_MAX // HOUR),
    default=OLD_ENDS // HOUR,
    show_default=True,
    metavar="HOURS",
    help="How long the secret before it stays good; 0: it ends at once.",
)
@may_wait
def rotate_secret(session: Session, client_id: str, hours: int) -> Said:
    """Give a client a new secret; the one before it stays good for a while.

    Any older one ends at once. Tokens that an ended secret has got end by themselves. That of a
    client with the scope `deposits` waits as such a client does.
    """
    secret, container = new_client_secret(), session.container
    record_pepper(container)
    cause, secret_hash = session.cause, container.secret_hasher.hash(secret)
    changed = container.accounts.rotate_secret(client_id, secret_hash, cause, hours * HOUR)
    ends = changed.old_until or cause.at
    facts = pick(NEW_CLIENT, changed, client_secret=secret, old_secret_ends=ends)
    return Said(facts, [facts, SHOWN_ONCE])


reason_option = click.option(
    "--reason", required=True, type=WORDS, help="Shown to the organization."
)
value_date_option = click.option(
    "--value-date", required=True, type=DATE, metavar="YYYY-MM-DD", help="That of the bank."
)


@wallet.command("deposit", right="money", context_settings=AMOUNTS_MAY_BE_NEGATIVE)
@organization_argument
@click.argument("amount", type=ABOVE_ZERO, metavar="AMOUNT")
@click.option("--reference", required=True, type=WORDS, help="Of the payment; once for each.")
def deposit(session: Session, **given: Any) -> Facts:
    """Take in a payment.

    Above the approval limit, alone or with what you have deposited and adjusted today, it is only
    proposed, and waits for another operator.

    The same reference twice is one deposit; with another amount it is refused.
    """
    return _booked(session, "deposit", **given)


@wallet.command("adjust", right="money", context_settings=AMOUNTS_MAY_BE_NEGATIVE)
@organization_argument
@click.argument("amount", type=NOT_ZERO, metavar="AMOUNT")
@click.option("--reference", required=True, type=WORDS, help="Of the correction; once for each.")
@reason_option
def adjust(session: Session, **given: Any) -> Facts:
    """Correct a balance; a negative AMOUNT takes money away, but never below zero.

    Above the approval limit, alone or with what you have deposited and adjusted today, it is only
    proposed, and waits for another operator.

    The same reference twice is one correction; with another amount or reason it is refused.
    """
    return _booked(session, "adjustment", **given)


@wallet.command("reverse", right="money")
@organization_argument
@click.argument("deposit", type=WORDS, metavar="DEPOSIT")
@click.option("--reference", required=True, type=WORDS, help="Of the reversal.")
@reason_option
@value_date_option
@click.option("--amount", type=ABOVE_ZERO, help="A part; else all of the deposit.")
def reverse(session: Session, **given: Any) -> Facts:
    """Take back the deposit with the reference DEPOSIT: its payer has got the money back.

    What the wallet lacks is owed: while such a claim is open nothing can be bought, and whatever
    comes in settles it first.

    Waits for another operator as a deposit does. A deposit is reversed once: the same command again
    is one reversal, with another reference or amount it is refused.
    """
    return _booked(session, "reversal", **given)


@wallet.command("payout", right="money", context_settings=AMOUNTS_MAY_BE_NEGATIVE)
@organization_argument
@click.argument("amount", type=ABOVE_ZERO, metavar="AMOUNT")
@click.option("--reference", required=True, type=WORDS, help="Of the payment; once for each.")
@reason_option
@value_date_option
def pay_out(session: Session, **given: Any) -> Facts:
    """Pay AMOUNT back to a partner, never more than the wallet holds; you tell the bank.

    Waits for another operator as a deposit does. The same reference twice is one payout.
    """
    return _booked(session, "payout", **given)


@wallet.command("refund", right="money")
@id_argument("transaction_id", "TRANSACTION")
@click.option("--reference", required=True, type=WORDS, help="Of the refund; once per charge.")
@reason_option
@click.option("--amount", type=ABOVE_ZERO, help="A part; else all that is left of the charge.")
def refund(
    session: Session, transaction_id: UUID, reference: str, reason: str, amount: int | None
) -> Facts:
    """Give back the charge TRANSACTION, or what is left of it; never more than that.

    Above the approval limit, with what was given back of the charge before, it is only proposed,
    and waits for another operator.

    The same reference twice is one refund; with another amount or reason it is refused. A job must
    have ended, and no change of a link's plans may be open.
    """
    cause, accounts = session.cause, session.container.accounts
    stream_id, metadata = _charged_for(session, transaction_id)
    request = HandRefund(transaction_id, reference, reason, amount, metadata)

    def give_back() -> Facts:
        done = accounts.refund(stream_id, request, cause)
        facts = pick("transaction_id amount", done.refund)
        return _wallet(accounts.wallet(done.organization_id), **facts)

    return _moved(session, give_back)


@wallet.command("show", right=None)
@organization_argument
def show_wallet(session: Session, organization_id: UUID) -> Facts:
    """Show a balance as the log has it now."""
    return _wallet(session.container.accounts.wallet(organization_id))


@adjustments.command("list", right=None)
@month_option("Instead: what was decided in this month, by the cut-off of the statements.")
def list_proposals(session: Session, month: str | None) -> list[Facts]:
    """List what waits, the oldest first.

    With --month it lists from the log who has approved or rejected what, and who had proposed it.
    What was `granted` is made, `used`, by who has proposed it.
    """
    if month is None:
        return [_proposal(session, each) for each in _waiting(session)]
    decided = [*_decisions(session, month)]
    session.refuse_future(month, is_empty=not decided)
    return decided


def _decisions(session: Session, month: str) -> Iterator[Facts]:
    """Yield what was decided in a month, in the order of the log; once it is closed, for ever."""
    months, proposed = Months(), dict[UUID, Proposal.Made | Adjustment.Proposed]()
    uses = (Month.Closed, Proposal.Made, Adjustment.Proposed, *DECISIONS)
    for position, event in read_events(session.container.log, uses, session.watch("Reading")):
        its = months.of(event)
        if isinstance(event, Proposal.Made | Adjustment.Proposed):
            proposed[event.originator_id] = event
        elif isinstance(event, DECISIONS) and its == month:
            if event.originator_id not in proposed:
                refuse(f"position {position} decides what nobody has proposed; see: audit verify")
            yield _proposed(
                session,
                proposed[event.originator_id],
                decision=event.TOPIC.rpartition(".")[2],
                decided_by=session.named(event.actor),
                decided_at=event.timestamp,
                position=position,
            )


@adjustments.command("approve", right="approve")
@id_argument("adjustment_id")
def approve(session: Session, adjustment_id: UUID) -> Facts:
    """Do what another operator has proposed; your key must be one that you have made.

    A new operator, key, client or secret is then made by who has proposed it, with the same
    command again.
    """
    cause, accounts = session.cause, session.container.accounts
    return _proposal(session, accounts.approve(adjustment_id, cause))


def _who_refuses(session: Session, given: Given) -> str | None:
    """Return the actor with the right `keys`, where people are proposed."""
    log, holder = session.container.log, holder_of_key(session.container)
    found = log.find(Proposal, given["adjustment_id"])
    people = found is not None and found.made.kind in PEOPLE
    return holder.actor if people and holder is not None and holder.manages else None


@adjustments.command("reject", right="approve", who=_who_refuses)
@id_argument("adjustment_id")
def reject(session: Session, adjustment_id: UUID) -> Facts:
    """Refuse what was proposed for ever; its reference cannot be used again.

    An operator or a key may also be refused with the right `keys`.
    """
    return _proposal(session, session.container.accounts.reject(adjustment_id, session.cause))


def _waiting(session: Session) -> list[Proposal]:
    container = session.container
    return [*map(container.accounts.waiting, session.read(container.proposals.all))]


def _proposal(session: Session, its: Proposal) -> Facts:
    is_open = its.state in {"proposed", "granted"}
    is_void = is_open and session.container.operators.is_revoked(its.proposed_by)
    return _proposed(session, its.made, state="void" if is_void else its.state)


def _proposed(session: Session, made: Proposal.Made | Adjustment.Proposed, **more: Any) -> Facts:
    beside = () if isinstance(made, Proposal.Made) else ("transaction", "subject", "may")
    day = getattr(made, "value_date", None)
    return pick(
        "id kind organization amount reference reason transaction subject may deposit value_date",
        made,
        id=made.originator_id,
        deposit=getattr(made, "deposit", None) or UNSET,
        value_date=UNSET if day is None else str(day),
        proposed_by=session.named(made.actor),
        proposed_at=made.timestamp,
        **dict.fromkeys(beside),
        **more,
    )


def _charged_for(session: Session, transaction_id: UUID) -> tuple[UUID, Metadata]:
    """Return the stream of what a charge was for, and what the charge says about it."""
    found = session.read(session.container.transactions.get, transaction_id)
    if found is None:
        refuse(f"there is no transaction {transaction_id}")
    if found.kind in {"refund", *BOOKED}:
        refuse(f"this transaction is no charge but a {found.kind}")
    return UUID(found.reference.id), found.metadata


def _wallet(its: Wallet, **done: Any) -> Facts:
    """Return a wallet, what it owes for reversed deposits, and what was done with it, or waits."""
    owed = amount_of(its.claim_micros) or UNSET
    return pick("organization balance currency", its, open_claim=owed, **done)


def _booked(session: Session, kind: Moving, *, amount: int | None, **given: Any) -> Facts:
    """Book in a wallet, as `Accounts.move`."""
    cause, accounts = session.cause, session.container.accounts

    def book() -> Facts:
        made = accounts.move(kind, amount_micros=amount, cause=cause, **given)
        done: dict[str, Any] = {}
        if kind == "adjustment":
            done = {"adjustment": made.id, "state": "made"}
        elif kind != "deposit":
            done = pick("transaction_id amount", made)
        return _wallet(accounts.wallet(made.organization_id), **done)

    return _moved(session, book)


def _moved(session: Session, move: Callable[[], Facts]) -> Facts:
    """Move money and return the wallet with what was done; or else what waits for approval."""
    try:
        return move()
    except WaitsForApproval as waits:
        proposal = waits.proposal
        assert proposal.organization_id is not None
        now = session.container.accounts.wallet(proposal.organization_id)
        named = "adjustment" if proposal.made.kind == "adjustment" else "proposal"
        return _wallet(now, **{named: proposal.id}, state=proposal.state)


def _read_rights(value: str) -> list[Right]:
    named = {each.strip() for each in value.split(",")}
    if not named <= set(RIGHTS):
        raise ValueError
    return [right for right in RIGHTS if right in named]


def _who_creates(session: Session, _: Given) -> str | None:
    """Return the user of the system, while there is no operator whose key would be needed."""
    parts = session.container
    return None if parts.settings.operator_key or parts.operators.managed() else user()


@operator.command("create", right="keys", who=_who_creates)
@click.argument("name", metavar="NAME", type=WORDS)
@click.option(
    "--may",
    required=True,
    multiple=True,
    type=Text("right,…", _read_rights, f"{{!r}} is not a list of: {', '.join(RIGHTS)}"),
    help=f"Of: {', '.join(RIGHTS)}.",
)
@may_wait
def create_operator(session: Session, name: str, may: Sequence[list[Right]]) -> Said:
    """Create an operator; the key is printed only this once.

    NAME is that of an account. It is kept for ever, so it should not be a person's.

    Once there is an approval limit, and somebody who could approve, an operator with `money`,
    `approve` or `keys` waits for another operator: when it is approved, run the same command again.
    """
    container, given = session.container, list[str]()
    record_pepper(container)

    def key_for(operator_id: UUID) -> str:
        given[:] = [new_operator_key(operator_id)]
        return container.secret_hasher.hash(given[0])

    permit, register = container.accounts.approvals.permit, container.operators.register
    rights = [right for right in RIGHTS if any(right in each for each in may)]
    made = register(session.cause, name=name, may=rights, key_for=key_for, permit=permit)
    return _with_key(made, given[0])


@operator.command("list", right=None)
@click.option("--acts", "wants_acts", is_flag=True, help="Instead: their acts, oldest first.")
def list_operators(session: Session, *, wants_acts: bool) -> list[Any]:
    """List all operators, oldest first, with who made each one's present key.

    With --acts it lists what they did that changed no aggregate: to keys, the tree and copies.
    Everything else that an operator did stands in the events of what was changed.
    """
    container, named = session.container, session.named
    if not wants_acts:
        return [_operator(each, named(_key_maker(each))) for each in container.operators.all()]
    found = read_events(container.log, (OperatorAct.Done,), session.watch("Reading"))
    names = "at who act subject position actor"
    return [
        pick(names, event, at=event.timestamp, who=named(event.actor).name, position=position)
        for position, event in found
        if isinstance(event, OperatorAct.Done)
    ]


def _who_rotates(session: Session, given: Given) -> str | None:
    """Return the actor if it replaces its own key or is locked out."""
    changed = session.container.operators.get(given["operator_id"])
    if given["locked_out"]:
        if not changed.manages:
            refuse(f"--locked-out is for operators with the right {MANAGES}")
        return user()
    holder = holder_of_key(session.container)
    is_own = holder is not None and holder.id == changed.id and not holder.revoked
    return changed.actor if is_own else None


@operator.command("rotate-key", right="keys", who=_who_rotates)
@id_argument("operator_id")
@click.option("--locked-out", is_flag=True, help="Without a key, when all are lost.")
@may_wait
def rotate_key(session: Session, operator_id: UUID, **_: bool) -> Said:
    """Give an operator a new key; the one before it is refused at once.

    Operators may replace their own key, others need the right `keys`. When every key is lost,
    --locked-out replaces that of an operator who has this right. The log keeps which user of the
    operating system did so, and `doctor` tells of it for ever.

    Once there is an approval limit, and somebody who could approve, a key for somebody else with
    `money`, `approve` or `keys` waits for another operator, and is made by the same command. Once
    nobody else could approve for 24 hours, that works too, unless it is rejected (`wallet
    adjustments`).
    """
    key, container = new_operator_key(operator_id), session.container
    record_pepper(container)
    cause, key_hash = session.cause, container.secret_hasher.hash(key)
    permit = container.accounts.approvals.permit
    return _with_key(container.operators.rotate_key(operator_id, key_hash, cause, permit), key)


@operator.command("revoke", right="keys")
@id_argument("operator_id")
def revoke_operator(session: Session, operator_id: UUID) -> Facts:
    """Refuse an operator for ever; the last one who can create others stays.

    What they have proposed, and nobody has approved, is void.
    """
    revoked = session.container.operators.revoke(operator_id, session.cause)
    void = [each.id for each in _waiting(session) if each.proposed_by == revoked.actor]
    return _operator(revoked, _key_maker(revoked), void=void or UNSET)


@operator.command("approvals", right="keys", when=lambda given: given["above"] is not None)
@click.argument(
    "above", metavar="[AMOUNT|none]", type=OrWord(AT_LEAST_ZERO, "none"), required=False
)
def approvals(session: Session, above: int | str | None) -> Facts:
    """Set above what AMOUNT a second operator has to approve what moves money by command.

    It holds for adjustments, deposits, reversals, payouts and refunds by hand; and once there is a
    limit, whatever it is, new operators, keys for others, clients that deposit, and prices and fees
    take two as well.
    The first limit and a lower one hold at once. A higher one, or `none`, which ends it, waits for
    another operator: see `wallet adjustments`. Without AMOUNT the present limit is shown.
    """
    limit, proposal = session.container.accounts.approvals, None
    if above is not None:
        proposal = limit.set_limit(_or_none(above), session.cause)
    return {
        "approvals_above": amount_of(limit.above_micros()),
        "proposal": None if proposal is None else proposal.id,
        "state": "set" if proposal is None else proposal.state,
    }


def _with_key(its: Operator, key: str) -> Said:
    facts = pick("id name may key", its, key=key)
    return Said(facts, [facts] if its.has_own_key else [facts, KEY_IS_KNOWN])


def _key_maker(its: Operator) -> str | None:
    """Return who has made the present key: "self" once its holder has replaced it."""
    return "self" if its.has_own_key else its.key.actor


def _operator(its: Operator, key_made_by: str | Named | None, **more: Any) -> Facts:
    facts = {"key_made_at": its.key.timestamp, "key_made_by": key_made_by, **more}
    return pick("id name may revoked key_made_at locked_out_at key_made_by", its, **facts)
