"""Operators' commands on organizations, their clients and their wallets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from domain.accounts.approvals import (
    LIMIT_ID,
    ApprovalLimit,
    Approvals,
    Proposal,
    WaitsForApproval,
)
from domain.accounts.committer import Change, Committer
from domain.accounts.currency import Currency
from domain.accounts.operators import Operators
from domain.accounts.organization import (
    NAMED_ONLY,
    SCOPES,
    ApiClient,
    Organization,
    api_client_id,
)
from domain.accounts.refund_by_hand import HandRefund, Refundable, RefundByHand
from domain.accounts.spending import Spending
from domain.accounts.wallet import DEPOSIT, Adjustment, Deposit, Wallet, deposit_id, wallet_id
from domain.cause import Cause
from domain.errors import Conflict, NotFound, NotPossible
from domain.log.log import Log
from domain.months import first_instant, month_of

Booking = Deposit | Adjustment | Proposal
COMMIT_LAG_MAX = timedelta(days=1)  # An entry is committed at most this long after its date.


@dataclass(frozen=True)
class Accounts:
    """Operators' commands. Each one commits before it returns; unknown ids raise NotFound."""

    log: Log
    committer: Committer
    currency: Currency
    new_id: Callable[[], UUID]

    @property
    def approvals(self) -> Approvals:
        """The approval limit."""
        return Approvals(self.log, self.new_id)

    def register_organization(
        self,
        cause: Cause,
        *,
        name: str,
        price_micros: int | None,
        monthly_link_fee_micros: int,
        with_wallet: bool,
    ) -> Organization:
        """Register an organization, by default with an empty wallet in the same commit."""
        organization_id = self.new_id()

        def register() -> Organization:
            return Organization.register(
                organization_id,
                cause,
                name=name,
                price_micros=price_micros,
                monthly_link_fee_micros=monthly_link_fee_micros,
            )

        if not with_wallet:
            self.log.append(organization := register())
            return organization
        code = self.currency.code
        self.currency.append(lambda: [register(), Wallet.open(organization_id, code, cause)], cause)
        return self.log.get(Organization, organization_id)

    def change_organization(
        self, organization_id: UUID, change: Callable[[Organization], None]
    ) -> Organization:
        """Apply a change to an organization; repeat it if another operator was faster."""
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
                spent = _Spent(self.log, wallet, cause)
                self.committer.commit(
                    wallet.id,
                    lambda held: held.limit_spending(spent.limited(held, limit_micros), cause),
                    newest,
                )

        return self.log.update(self._organization(organization_id), limit)

    def register_client(
        self,
        cause: Cause,
        *,
        client_id: str,
        secret_hash: str,
        organization_id: UUID | None,
        scopes: Sequence[str],
    ) -> ApiClient:
        """Register a client of an organization, or an approved machine-to-machine client."""
        unknown = set(scopes) - set(SCOPES)
        if unknown:
            message = f"unknown scope: {', '.join(sorted(unknown))}"
            raise NotPossible(message)
        if organization_id is not None:
            self._organization(organization_id)
            if machines := NAMED_ONLY.intersection(scopes):
                message = f"only a machine-to-machine client can have {', '.join(machines)}"
                raise NotPossible(message)
        client = ApiClient.register(
            client_id,
            cause,
            organization_id=organization_id,
            scopes=scopes,
            secret_hash=secret_hash,
        )
        self.log.append(client)
        return client

    def change_client(self, client_id: str, change: Callable[[ApiClient], None]) -> ApiClient:
        """Apply a change to a client; repeat it if another operator was faster."""
        client = self.log.get(ApiClient, api_client_id(client_id), f"client {client_id}")
        return self.log.update(client, change)

    def open_wallet(self, organization_id: UUID, cause: Cause) -> Wallet:
        """Open the wallet of an organization; raises NotPossible if it has one."""
        limit_micros = self._organization(organization_id).spending_limit_micros

        def opened() -> list[Wallet]:
            wallet = Wallet.open(organization_id, self.currency.code, cause)
            if limit_micros is not None:
                wallet.limit_spending(Spending(limit_micros, month_of(cause.at), 0), cause)
            return [wallet]

        try:
            self.currency.append(opened, cause)
        except Conflict:
            message = f"organization {organization_id} has a wallet already"
            raise NotPossible(message) from None
        return self.wallet(organization_id)

    def deposit(
        self, organization_id: UUID, amount_micros: int, reference: str, cause: Cause
    ) -> Wallet:
        """Book a payment once per reference; NotPossible if the reference had another amount.

        Raises WaitsForApproval for one above the approval limit.
        """
        if self.log.find(Deposit, deposit_id(organization_id, reference)) is None:
            asked = Proposal.of_deposit(organization_id, amount_micros, reference, cause)
            self._wait(asked, amount_micros, cause)
        self.book_deposit(organization_id, amount_micros, reference, cause)
        return self.wallet(organization_id)

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
        made = Deposit.make(organization_id, reference, amount_micros, cause, kind)
        code = self.currency.code
        is_new = self._book(made, lambda held: held.deposit(made, code, cause))
        return self.log.get(Deposit, made.id), is_new

    def adjust(
        self,
        organization_id: UUID,
        amount_micros: int,
        reason: str,
        cause: Cause,
        *,
        reference: str,
    ) -> Adjustment:
        """Correct a balance by a signed amount, once per reference; propose it if it is large.

        Raises InsufficientBalance if it would become negative, NotPossible if the reference had
        another amount or reason.
        """
        needs_approval = self.approvals.needed(amount_micros, cause)
        given = (organization_id, reference, amount_micros, reason, cause)
        asked = Adjustment.make(*given, needs_approval=needs_approval)
        if needs_approval:
            self._save_once(asked, lambda: self.log.append(asked))
        else:
            self._book(asked, lambda held: held.adjust(asked, self.currency.code, cause))
        return self.log.get(Adjustment, asked.id)

    def approve(self, waiting_id: UUID, cause: Cause) -> Adjustment | Proposal:
        """Do what was proposed; raises NotPossible for who proposed it, or made the caller's key.

        What can no longer be done raises its usual refusal, and goes on waiting.
        """
        makers = Operators(self.log).makers(cause.actor)

        def approve(newest: Adjustment | Proposal) -> None:
            newest.approve(cause, makers)
            self._carry_out(newest, cause)

        return self.log.update(self.waiting(waiting_id), approve)

    def reject(self, waiting_id: UUID, cause: Cause) -> Adjustment | Proposal:
        """Decide that what was proposed never happens."""
        return self.log.update(self.waiting(waiting_id), lambda newest: newest.reject(cause))

    def waiting(self, waiting_id: UUID) -> Adjustment | Proposal:
        """Return what was proposed, also once it is decided."""
        proposal = self.log.find(Proposal, waiting_id)
        return proposal or self.log.get(Adjustment, waiting_id, f"adjustment {waiting_id}")

    def _carry_out(self, approved: Adjustment | Proposal, cause: Cause) -> None:
        """Commit an approval together with what it approves."""
        code = self.currency.code
        if isinstance(approved, Adjustment):
            owner = wallet_id(approved.organization_id)
            self.committer.commit(owner, lambda held: held.adjust(approved, code, cause), approved)
            return
        made, owner_id, reference = approved.made, approved.organization_id, approved.reference
        if owner_id is None or reference is None or made.amount_micros is None:
            limit = self.log.get(ApprovalLimit, LIMIT_ID)
            limit.set(made.amount_micros, cause)
            self.log.append(approved, limit)
        elif made.transaction_id is None or made.charged_for is None:
            if self.log.find(Deposit, deposit_id(owner_id, reference)) is not None:
                message = f"the deposit with reference {reference} was made meanwhile: reject this"
                raise NotPossible(message)
            deposit = Deposit.make(owner_id, reference, made.amount_micros, cause)
            self.committer.commit(
                wallet_id(owner_id),
                lambda held: held.deposit(deposit, code, cause),
                approved,
                deposit,
            )
        else:
            charged_for = self._charged_for(made.charged_for)
            facts = (made.transaction_id, reference, made.reason or "", made.amount_micros)
            refund = charged_for.refund_by_hand(HandRefund(*facts, made.metadata or {}), cause)
            if refund is None:
                message = f"the refund with reference {reference} was made meanwhile: reject this"
                raise NotPossible(message)
            self.committer.commit_entries(owner_id, [refund], cause, approved, charged_for)

    def refund(self, stream_id: UUID, asked: HandRefund, cause: Cause) -> RefundByHand:
        """Give back a charge, or a part of it, by hand; `stream_id` is what was charged for.

        The same reference again is the same refund. Raises NotPossible for more than is left, and
        WaitsForApproval for an amount above the approval limit.
        """

        def decide(newest: Refundable) -> RefundByHand:
            refund = newest.refund_by_hand(asked, cause)
            done = newest.done_by_hand(asked.transaction_id, asked.reference)
            assert done is not None
            if refund is not None:
                owner, amount_micros = done.organization_id, refund.amount_micros
                waits = Proposal.of_refund(owner, stream_id, asked, amount_micros, cause)
                self._wait(waits, amount_micros, cause)
                self.committer.commit_entries(owner, [refund], cause, newest)
            return done

        return self.log.change(self._charged_for(stream_id), decide)

    def _charged_for(self, stream_id: UUID) -> Refundable:
        return self.log.get(Refundable, stream_id)  # type: ignore[type-abstract]  # any kind of it

    def _wait(self, asked: Proposal, amount_micros: int, cause: Cause) -> None:
        """Raise WaitsForApproval, once it is proposed, for what has to be approved."""
        known = self.log.find(Proposal, asked.id)
        if known.state == "made" if known else not self.approvals.needed(amount_micros, cause):
            return
        self._save_once(asked, lambda: self.log.append(asked))
        raise WaitsForApproval(self.log.get(Proposal, asked.id))

    def _book(self, booking: Deposit | Adjustment, change: Change) -> bool:
        """Save a booking with its wallet entry; False when it was saved before."""
        wallet = wallet_id(booking.organization_id)
        return self._save_once(booking, lambda: self.committer.commit(wallet, change, booking))

    def _save_once(self, booking: Booking, save: Callable[[], int]) -> bool:
        """Save a booking; False when it was saved before."""
        assert booking.organization_id is not None
        self.wallet(booking.organization_id)
        if self._is_made(booking):
            return False
        try:
            save()
        except Conflict:
            if not self._is_made(booking):  # A failover has lost the first booking.
                raise
            return False
        return True

    def wallet(self, organization_id: UUID) -> Wallet:
        """Return the wallet as the log has it now."""
        wallet = self.log.find(Wallet, wallet_id(organization_id))
        if wallet is None:
            self._organization(organization_id)
            message = f"organization {organization_id} has no wallet"
            raise NotFound(message)
        return wallet

    def _organization(self, organization_id: UUID) -> Organization:
        return self.log.get(Organization, organization_id, f"organization {organization_id}")

    def _is_made(self, booking: Booking) -> bool:
        earlier = self.log.find(type(booking), booking.id)
        if earlier is None:
            return False
        noun = booking.made.kind if isinstance(booking, Proposal) else type(booking).TOPIC
        if getattr(earlier, "state", None) == "rejected":
            message = f"the {noun} with reference {booking.reference} was rejected"
            raise NotPossible(message)
        for what in ("amount_micros", "reason"):
            if getattr(earlier, what, None) != getattr(booking, what, None):
                other = what.removesuffix("_micros")
                message = f"the {noun} with reference {booking.reference} has another {other}"
                raise NotPossible(message)
        return True


class _Spent:
    """What a wallet has spent in the month: its own total, or else the sum of its entries.

    A wallet without a limit keeps no total, so its entries are read, the newest first. As in
    `Spending.at`, every entry after the first one of a month belongs to that month, even if it is
    dated earlier. A long month is counted before the committer has its turn at the wallet; in that
    turn only newer entries are added.
    """

    def __init__(self, log: Log, wallet: Wallet, cause: Cause) -> None:
        self._log, self._wallet_id, self._at = log, wallet.id, cause.at
        self._month, self._has_begun = month_of(cause.at), False
        self._version = self._micros = 0
        if wallet.spending is None:
            self._count(wallet.version)

    def limited(self, wallet: Wallet, limit_micros: int | None) -> Spending | None:
        """Return the limit with what counts against it as of this version of the wallet."""
        if limit_micros is None:
            return None
        if wallet.spending is not None:
            now = wallet.spending.at(self._at)
            return Spending(limit_micros, now.month, now.spent_micros)
        self._count(wallet.version)
        return Spending(limit_micros, self._month, self._micros)

    def _count(self, version: int) -> None:
        """Add the entries since the last count; the first time, all entries of the month."""
        month, counted, at = self._month, self._version, version
        since = first_instant(month) - COMMIT_LAG_MAX
        passed = own = 0  # `own` is the part of `passed` that certainly belongs to `month`.
        begins = False
        for event in self._log.newest_first(self._wallet_id, version):
            if event.originator_version != at:  # The wallet is ahead of the log.
                raise Conflict(self._wallet_id)
            if at <= counted or (not counted and event.timestamp < since):
                break
            at -= 1
            if isinstance(event, Wallet.Charged | Wallet.Refunded):
                sign = 1 if isinstance(event, Wallet.Charged) else -1
                passed += sign * event.amount_micros
            dated = isinstance(event, Wallet.Moved | Wallet.SpendingLimited)
            if dated and month_of(event.timestamp) >= month:
                month, own, begins = month_of(event.timestamp), passed, True
        if month > self._month:
            self._micros = own
        else:
            self._micros += passed if self._has_begun else own
        self._month, self._has_begun = month, self._has_begun or begins
        self._version = max(version, counted)
