"""Operators' commands on organizations, their clients and their wallets."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta
from functools import partial
from itertools import takewhile
from typing import Any, Literal, NoReturn
from uuid import UUID

from domain.accounts.approvals import ApprovalLimit, Approvals, Kind, Proposal, WaitsForApproval
from domain.accounts.committer import Change, Committer
from domain.accounts.currency import Currency
from domain.accounts.organization import (
    OF_KEYS,
    OF_MACHINES,
    ROTATIONS_MAX,
    SCOPES,
    ApiClient,
    Organization,
    SecretRotation,
)
from domain.accounts.prices import Prices
from domain.accounts.refund_by_hand import HandRefund, Refundable, RefundByHand
from domain.accounts.spending import Spending
from domain.accounts.wallet import (
    BOOKINGS,
    DEPOSIT,
    Adjustment,
    Booking,
    Deposit,
    Reversal,
    Wallet,
    wallet_id,
)
from domain.cause import Cause
from domain.errors import Conflict, NotFound, NotPossible, refuse_other
from domain.ids import derive_id
from domain.log.aggregate import Event, Root
from domain.log.log import Log, retried
from domain.money import format_amount
from domain.months import first_instant, month_of

Moving = Literal["deposit", "adjustment", "reversal", "payout"]
ROTATED = f"The secret of this client was renewed {ROTATIONS_MAX} times today."
COMMIT_LAG_MAX = timedelta(days=1)  # An entry is committed at most this long after its date.


@dataclass(frozen=True)
class Accounts:
    """Operators' commands. Each one commits before it returns; unknown ids raise NotFound."""

    log: Log
    committer: Committer
    currency: Currency
    prices: Prices
    new_id: Callable[[], UUID]
    # What an operator has paid in and corrected on a day (UTC) that nobody else has approved.
    moved_micros: Callable[[str | None, date], int]

    @property
    def approvals(self) -> Approvals:
        return Approvals(self.log)

    def register_organization(
        self, cause: Cause, *, with_wallet: bool, **facts: Any
    ) -> Organization:
        """Register one with `facts` of `Organization.register`, perhaps with an empty wallet."""
        new, code = self.new_id(), self.currency.code

        def register() -> list[Root]:
            wallets = [Wallet.open(new, code, cause)] if with_wallet else []
            return [Organization.register(new, cause, **facts), *wallets]

        if with_wallet:
            self.currency.append(register, cause)
        else:
            self.log.append(*register())
        return self.log.get(Organization, new)

    def propose_prices(
        self, organization_id: UUID, wanted: Mapping[Kind, int | None], cause: Cause
    ) -> list[Proposal]:
        """Propose what differs from its own `price` per lookup (None: that of all) and `fee`."""
        its = self._organization(organization_id)
        now = {"price": its.price_micros, "fee": its.monthly_link_fee_micros}
        facts = [(kind, micros) for kind, micros in wanted.items() if micros != now[kind]]
        new, owner = self.approvals.propose, organization_id
        return [new(e, cause, organization_id=owner, amount_micros=micros) for e, micros in facts]

    def set_lookup_price(self, amount_micros: int, cause: Cause) -> Proposal | None:
        """Set the price of a lookup for all without an own one; or return what waits instead."""
        known = self.prices.refresh()
        if known is not None and known.amount_micros == amount_micros:
            return None
        if self.approvals.above_micros() is not None:
            return self.approvals.propose("price", cause, amount_micros=amount_micros)
        self.prices.set(amount_micros, cause)
        return None

    def change_organization(
        self, organization_id: UUID, change: Callable[[Organization], None]
    ) -> Organization:
        return self.log.update(self._organization(organization_id), change)

    def set_spending_limit(
        self, organization_id: UUID, limit_micros: int | None, cause: Cause
    ) -> Organization:
        """Limit what an organization spends in a month; None removes the limit.

        The limit holds in every process from this commit on, because the stream of the wallet
        stores it together with what was spent in the month so far.
        """

        def limit(newest: Organization) -> None:
            newest.set_spending_limit(limit_micros, cause)
            wallet = self.log.find(Wallet, wallet_id(organization_id))
            held = wallet and wallet.spending and wallet.spending.limit_micros
            if wallet is not None and held != limit_micros:
                spent = None
                if limit_micros is not None:
                    spent = Spending(limit_micros, *self._spent(wallet, cause.at))
                change = partial(self._limit, spent, wallet.version, cause)
                self.committer.commit(wallet.id, change, newest)

        return self.log.update(self._organization(organization_id), limit)

    def _spent(self, wallet: Wallet, at: datetime) -> tuple[str, int]:
        """Return the newest month of a wallet and what was spent in it.

        A wallet without a limit keeps no total, so its entries are added up, the newest first. As
        in `Spending.at`, every entry after the first one of a month belongs to that month.
        """
        if wallet.spending is not None:
            return wallet.spending.month, wallet.spending.spent_micros
        month, spent_micros, total_micros = month_of(at), 0, 0
        since = first_instant(month) - COMMIT_LAG_MAX
        for event in self.log.newest_first(wallet.id, wallet.version):
            if event.timestamp < since:
                break
            total_micros += _spent_micros(event)
            if month_of(event.timestamp) >= month:
                month, spent_micros = month_of(event.timestamp), total_micros
        return month, spent_micros

    def _limit(self, spent: Spending | None, version: int, cause: Cause, held: Wallet) -> None:
        """Set the limit, with what was spent up to a version and by the entries since then."""
        if spent is not None:
            newest = self.log.newest_first(held.id, held.version)
            since = [*takewhile(lambda event: event.originator_version > version, newest)]
            if len(since) < held.version - version:  # The wallet is ahead of the log.
                raise Conflict(held.id)
            for event in reversed(since):
                spent = spent.after(-_spent_micros(event), event.timestamp)
            spent = spent.at(cause.at)
        held.limit_spending(spent, cause)

    @retried
    def register_client(
        self,
        cause: Cause,
        *,
        client_id: str,
        secret_hash: str,
        organization_id: UUID | None,
        scopes: Sequence[str],
    ) -> ApiClient:
        """Register a client; raises WaitsForApproval for one that may deposit, where it must."""
        if unknown := set(scopes) - set(SCOPES):
            raise NotPossible(f"unknown scope: {', '.join(sorted(unknown))}")
        others, who = (OF_MACHINES, "only a") if organization_id else ({OF_KEYS}, "no")
        if refused := others.intersection(scopes):
            raise NotPossible(f"{who} machine-to-machine client can have {', '.join(refused)}")
        besides = list[Root]()
        if organization_id is not None:
            besides = [owner := self._organization(organization_id)]
            if OF_KEYS in scopes:
                held = [*owner.key_holders, client_id]
                owner.record(Organization.KeyHoldersChanged, cause, client_ids=held)
        elif OF_MACHINES.intersection(scopes):
            besides = [*self.approvals.permit("client", cause, may=[*scopes])]
        facts = {"organization_id": organization_id, "secret_hash": secret_hash}
        client = ApiClient.register(client_id, cause, scopes=scopes, **facts)
        self.log.append(*besides, client)
        return client

    def rotate_secret(
        self, client_id: str, secret_hash: str, cause: Cause, old_ends: timedelta
    ) -> ApiClient:
        """Give a client another secret; raises as `register_client` does."""

        def rotate(newest: ApiClient) -> None:
            newest.rotate_secret(secret_hash, cause, old_ends)
            if OF_MACHINES.intersection(newest.scopes):
                used = self.approvals.permit("secret", cause, subject=client_id)
                self.log.append(*used, newest)

        return self.change_client(client_id, rotate)

    @retried
    def rotate_own_secret(
        self, of: ApiClient, secret_hash: str, old_ends_s: int, key: str | None, cause: Cause
    ) -> tuple[ApiClient, bool]:
        """Renew a secret for its organization; tell whether an earlier request with the key did.

        Raises RateLimited after too many rotations, and IdempotencyKeyReused.
        """
        request_id = derive_id("secret_rotation", of.organization_id, key)
        client = self.log.get(ApiClient, of.id)  # Before what may have renewed it meanwhile.
        earlier = self.log.find(SecretRotation, request_id) if key is not None else None
        facts = {"client_id": of.client_id, "old_ends_s": old_ends_s}
        if earlier is not None:
            is_other = earlier.client_id != of.client_id
            refuse_other(client=is_other, old_ends_in=earlier.old_ends_s != old_ends_s)
            return self.log.get(ApiClient, of.id), True
        if client.revoked:
            raise NotFound
        client.rotations.require_less(ROTATIONS_MAX, cause.at, ROTATED)
        client.rotate_secret(secret_hash, cause, timedelta(seconds=old_ends_s))
        stream_id = request_id if key is not None else self.new_id()
        rotation = SecretRotation.begin(SecretRotation.Asked, cause, stream_id, **facts)
        self.log.append(client, rotation)
        return client, False

    def revoke_client(
        self, client_id: str, cause: Cause, *, spares_last: bool = False
    ) -> ApiClient:
        """Refuse a client for ever; doing it again changes nothing.

        `spares_last`: not the last one with the scope `clients`, which raises LastClient.
        """

        def revoke(newest: ApiClient) -> None:
            owners = list[Organization]()
            if newest.organization_id is not None:
                owners = [self._organization(newest.organization_id)]
                owners[0].remove_key_holder(client_id, cause, spares_last=spares_last)
            newest.revoke(cause)
            self.log.append(newest, *owners)

        return self.change_client(client_id, revoke)

    def change_client(self, client_id: str, change: Callable[[ApiClient], None]) -> ApiClient:
        client = self.log.get(ApiClient, ApiClient.id_of(client_id), f"client {client_id}")
        return self.log.update(client, change)

    @retried
    def open_wallet(self, organization_id: UUID, cause: Cause) -> Wallet:
        """Open the wallet of an organization, unless it has one."""
        limit_micros = self._organization(organization_id).spending_limit_micros

        def opened() -> list[Wallet]:
            wallet = Wallet.open(organization_id, self.currency.code, cause)
            if limit_micros is not None:
                wallet.limit_spending(Spending(limit_micros, month_of(cause.at), 0), cause)
            return [wallet]

        if self.log.find(Wallet, wallet_id(organization_id)) is None:
            self.currency.append(opened, cause)
        return self.wallet(organization_id)

    def move(  # Each is a fact of the booking.
        self,
        kind: Moving,
        organization_id: UUID,
        amount_micros: int | None,
        reference: str,
        cause: Cause,
        **facts: Any,
    ) -> Booking:
        """Book by command, once per reference; `facts` are `Booking.FACTS` of its class.

        None: all of the deposit that is reversed. Raises InsufficientBalance if the balance would
        become negative, NotPossible if the reference had other facts, or a deposit is reversed
        twice or by more than it was, and WaitsForApproval for an amount above the approval limit.
        """
        micros = amount_micros or 0
        if kind == "reversal":
            deposit = f"deposit {facts['deposit']}"
            stream_id = Deposit.id_of(organization_id, facts["deposit"])
            paid_in = self.log.get(Deposit, stream_id, deposit).amount_micros
            micros = micros or paid_in
            if micros > paid_in:
                raise NotPossible(f"{deposit} was {format_amount(paid_in)}")
        made = BOOKINGS[kind].make(organization_id, reference, micros, cause, **facts)
        if self.log.find(type(made), made.id) is None:
            named = [made.id, *([reference] if kind == "reversal" else [])]
            owner = {"organization_id": organization_id, "reference": reference}
            facts["amount_micros"] = micros
            proposal = Proposal.of(cause, kind, *named, **owner, **facts)
            self._wait(
                proposal, partial(self._needs_approval, kind, organization_id, micros, cause)
            )
        self._book(made, cause)
        return self.log.get(type(made), made.id)

    def _needs_approval(
        self, kind: Moving, organization_id: UUID, amount_micros: int, cause: Cause
    ) -> bool:
        """Tell whether it waits; raises InsufficientBalance for what the wallet does not hold."""
        wallet = self.wallet(organization_id)
        least_micros = {"payout": amount_micros, "adjustment": -amount_micros}.get(kind, 0)
        wallet.refuse_unpayable(least_micros, wallet.currency)
        # With what its operator has moved today.
        before = partial(self.moved_micros, cause.actor, cause.at.date())
        return self.approvals.needed(amount_micros, cause, before)

    def book_deposit(
        self,
        organization_id: UUID,
        amount_micros: int,
        reference: str,
        cause: Cause,
        kind: str = DEPOSIT,
    ) -> tuple[Deposit, bool]:
        """Book what a payment service tells; return the deposit and whether this call booked it.

        This needs no approval. Play money is of another `kind`.
        """
        event = Deposit.Made if kind == DEPOSIT else Deposit.Played
        made = Deposit.make(organization_id, reference, amount_micros, cause, event=event)
        is_new = self._book(made, cause)
        return self.log.get(Deposit, made.id), is_new

    def approve(self, waiting_id: UUID, cause: Cause) -> Proposal:
        """Do what was proposed, or let who has asked do it; raises NotPossible as `require_two`.

        What can no longer be done raises its usual refusal, and goes on waiting.
        """

        def approve(newest: Proposal) -> None:
            newest.approve(cause, self.approvals.operators)
            self._carry_out(newest, cause)

        return self.log.update(self.waiting(waiting_id), approve)

    def reject(self, waiting_id: UUID, cause: Cause) -> Proposal:
        return self.log.update(self.waiting(waiting_id), lambda newest: newest.reject(cause))

    def waiting(self, waiting_id: UUID) -> Proposal:
        """Return what was proposed, also once it is decided."""
        return self.log.get(Proposal, waiting_id, f"proposal {waiting_id}")

    def _carry_out(self, approved: Proposal, cause: Cause) -> None:
        """Commit an approval together with what it approves."""
        made, micros = approved.made, approved.made.amount_micros
        match made.kind:
            case "deposit" | "adjustment" | "reversal" | "payout":
                self._book_approved(approved, cause)
            case "refund":
                self._refund_approved(approved, cause)
            case "limit":
                limit = self.log.get(ApprovalLimit, ApprovalLimit.id_of())
                limit.set(micros, cause)
                self.log.append(approved, limit)
            case "price" | "fee" if made.organization_id is not None:
                its = self._organization(made.organization_id)
                if made.kind == "price":
                    its.change_price(micros, cause)
                else:
                    its.change_monthly_link_fee(micros or 0, cause)
                self._append_both(approved, its)
            case "price":
                self._append_both(approved, self.prices.changed(micros or 0, cause))

    def _append_both(self, approved: Proposal, changed: Root) -> None:
        if not changed.pending_events:
            self._refuse_done(approved)
        self.log.append(approved, changed)

    def _refuse_done(self, approved: Proposal) -> NoReturn:
        if self.waiting(approved.id).version >= approved.version:  # Another approver was faster.
            raise Conflict(approved.id)
        named = f" with reference {approved.reference}" if approved.reference else ""
        raise NotPossible(f"the {approved.made.kind}{named} was made meanwhile: reject this")

    def _book_approved(self, approved: Proposal, cause: Cause) -> None:
        made, kind = approved.made, BOOKINGS[approved.made.kind]
        assert made.organization_id is not None
        given = (made.organization_id, made.reference or "", made.amount_micros or 0)
        facts = {name: getattr(made, name) for name in kind.FACTS}
        if not self._book(kind.make(*given, cause, proposal=approved.id, **facts), cause, approved):
            self._refuse_done(approved)

    def _refund_approved(self, approved: Proposal, cause: Cause) -> None:
        made, owner = approved.made, approved.made.organization_id
        assert owner is not None
        assert made.transaction_id is not None
        assert made.charged_for is not None
        facts = (made.reference or "", made.reason or "", made.amount_micros, made.metadata or {})
        newest = self._charged_for(made.charged_for)
        refund = newest.refund_by_hand(HandRefund(made.transaction_id, *facts), cause)
        if refund is None:
            self._refuse_done(approved)
        self.committer.commit_entries(owner, [refund], cause, approved, newest)

    def refund(self, stream_id: UUID, request: HandRefund, cause: Cause) -> RefundByHand:
        """Give back a charge, or a part of it, by hand; `stream_id` is what was charged for.

        The same reference again is the same refund. Raises NotPossible for more than is left, and
        WaitsForApproval for an amount above the approval limit.
        """

        def decide(newest: Refundable) -> RefundByHand:
            refund = newest.refund_by_hand(request, cause)
            done = newest.done_by_hand(request.transaction_id, request.reference)
            assert done is not None
            if refund is not None:
                facts = asdict(request) | {"amount_micros": refund.amount_micros}
                owner, names = done.organization_id, (request.transaction_id, request.reference)
                more = {"organization_id": owner, "charged_for": stream_id}
                waits = Proposal.of(cause, "refund", *names, **more, **facts)
                micros = newest.given_by_hand(request.transaction_id)
                self._wait(waits, lambda: self.approvals.needed(micros, cause, int))
                self.committer.commit_entries(done.organization_id, [refund], cause, newest)
            return done

        return self.log.change(self._charged_for(stream_id), decide)

    def _charged_for(self, stream_id: UUID) -> Refundable:
        return self.log.get(Refundable, stream_id)  # type: ignore[type-abstract]  # any kind of it

    def _wait(self, proposal: Proposal, is_needed: Callable[[], bool]) -> None:
        """Raise WaitsForApproval, once it is proposed, for what has to be approved."""
        known = self.log.find(Proposal, proposal.id)
        if known.state == "made" if known else not is_needed():
            return
        self._save_once(proposal, lambda: self.log.append(proposal))
        raise WaitsForApproval(self.log.get(Proposal, proposal.id))

    def _book(self, booking: Booking, cause: Cause, *reason: Root) -> bool:
        """Save a booking with its reason and its wallet entry; False when it was saved before."""
        wallet, code = wallet_id(booking.organization_id), self.currency.code

        def save() -> int:
            change: Change = partial(Wallet.enter, booking=booking, currency=code, cause=cause)
            return self.committer.commit(wallet, change, *reason, booking)

        return self._save_once(booking, save)

    def _save_once(self, booking: Booking | Proposal, save: Callable[[], int]) -> bool:
        """Save a booking; False when it was saved before."""
        assert booking.organization_id is not None
        self.wallet(booking.organization_id)
        if self._exists(booking):
            return False
        try:
            save()
        except Conflict:
            if not self._exists(booking):  # A failover has lost the first booking.
                raise
            return False
        return True

    def wallet(self, organization_id: UUID) -> Wallet:
        """Return the wallet as the log has it now."""
        wallet = self.log.find(Wallet, wallet_id(organization_id))
        if wallet is None:
            self._organization(organization_id)
            raise NotFound(f"organization {organization_id} has no wallet")
        return wallet

    def _organization(self, organization_id: UUID) -> Organization:
        return self.log.get(Organization, organization_id, f"organization {organization_id}")

    def _exists(self, booking: Booking | Proposal) -> bool:
        earlier = self.log.find(type(booking), booking.id)
        if earlier is None:
            return False
        noun = booking.made.kind if isinstance(booking, Proposal) else booking.TOPIC
        named = f"the {noun} with reference {booking.reference}"
        if isinstance(booking, Reversal) and earlier.reference != booking.reference:
            message = f"deposit {booking.deposit} was reversed with reference {earlier.reference}"
            raise NotPossible(message)
        state = getattr(earlier, "state", None)
        if state == "rejected" or (state == "proposed" and isinstance(earlier, Adjustment)):
            raise NotPossible(f"{named} was {state}: use another one")
        if isinstance(earlier, Proposal) and earlier.state == "proposed":
            self.approvals.operators.refuse_void(earlier.proposed_by)
        for what in ("amount_micros", "reason", "value_date"):
            if getattr(earlier, what, None) != getattr(booking, what, None):
                other = what.removesuffix("_micros").replace("_", " ")
                raise NotPossible(f"{named} has another {other}")
        return True


def _spent_micros(event: Event) -> int:
    """Return what an event of a wallet adds to what was spent in the month."""
    if isinstance(event, Wallet.Charged | Wallet.Refunded):
        return -event.change_micros
    return 0
