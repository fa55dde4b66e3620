"""Operators' commands on organizations, their clients and their wallets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from domain.accounts.committer import Change, Committer
from domain.accounts.currency import Currency
from domain.accounts.organization import SCOPES, ApiClient, Organization, api_client_id
from domain.accounts.wallet import Adjustment, Deposit, Wallet, wallet_id
from domain.cause import Cause
from domain.errors import Conflict, NotFound, NotPossible
from domain.log.log import Log

RETRIES_MAX = 20  # Operators race each other seldom; each lost race means another one won.

A = TypeVar("A", Organization, ApiClient)


@dataclass(frozen=True)
class Accounts:
    """Every method commits before it returns. Unknown ids raise NotFound."""

    log: Log
    committer: Committer
    currency: Currency
    new_id: Callable[[], UUID]

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
        """Apply a change to an organization, anew if another operator was first."""
        return self._change(
            Organization, organization_id, f"organization {organization_id}", change
        )

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
        if organization_id is not None and not self.log.find(Organization, organization_id):
            message = f"there is no organization {organization_id}"
            raise NotFound(message)
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
        """Apply a change to a client, anew if another operator was first."""
        return self._change(ApiClient, api_client_id(client_id), f"client {client_id}", change)

    def open_wallet(self, organization_id: UUID, cause: Cause) -> Wallet:
        """Open the wallet of an organization that has none; raises NotPossible if it has."""
        if self.log.find(Organization, organization_id) is None:
            message = f"there is no organization {organization_id}"
            raise NotFound(message)
        try:
            self.currency.append(
                lambda: [Wallet.open(organization_id, self.currency.code, cause)], cause
            )
        except Conflict:
            message = f"organization {organization_id} has a wallet already"
            raise NotPossible(message) from None
        return self.wallet(organization_id)

    def deposit(
        self, organization_id: UUID, amount_micros: int, reference: str, cause: Cause
    ) -> Wallet:
        """Take in a payment once per reference; NotPossible for the same one, another amount."""
        deposit = Deposit.make(organization_id, reference, amount_micros, cause)
        return self._book(deposit, lambda held: held.deposit(deposit, self.currency.code, cause))

    def adjust(
        self,
        organization_id: UUID,
        amount_micros: int,
        reason: str,
        cause: Cause,
        *,
        reference: str,
    ) -> Wallet:
        """Correct a balance by a signed amount once per reference; InsufficientBalance below zero.

        NotPossible for the same reference with another amount or reason.
        """
        made = Adjustment.make(organization_id, reference, amount_micros, reason, cause)
        return self._book(made, lambda held: held.adjust(made, self.currency.code, cause))

    def _book(self, booking: Deposit | Adjustment, change: Change) -> Wallet:
        """Save a booking with its entry, or find that it was saved before."""
        organization_id = booking.organization_id
        self.wallet(organization_id)
        if not self._is_made(booking):
            try:
                self.committer.commit(wallet_id(organization_id), change, booking)
            except Conflict:
                if not self._is_made(booking):  # A failover has lost what was first.
                    raise
        return self.wallet(organization_id)

    def wallet(self, organization_id: UUID) -> Wallet:
        """Return the wallet as the log has it now."""
        wallet = self.log.find(Wallet, wallet_id(organization_id))
        if wallet is None:
            known = self.log.find(Organization, organization_id) is not None
            message = f"organization {organization_id} has no wallet"
            if not known:
                message = f"there is no organization {organization_id}"
            raise NotFound(message)
        return wallet

    def _change(
        self, kind: type[A], stream_id: UUID, called: str, change: Callable[[A], None]
    ) -> A:
        for _ in range(RETRIES_MAX):
            aggregate = self.log.find(kind, stream_id)
            if aggregate is None:
                message = f"there is no {called}"
                raise NotFound(message)
            change(aggregate)
            if self._saved(aggregate):
                return aggregate
        message = f"others keep changing {called}; try again"
        raise NotPossible(message)

    def _is_made(self, booking: Deposit | Adjustment) -> bool:
        earlier = self.log.find(type(booking), booking.id)
        if earlier is None:
            return False
        for what in ("amount_micros", "reason"):
            if getattr(earlier, what, None) != getattr(booking, what, None):
                noun, other = type(booking).TOPIC, what.removesuffix("_micros")
                message = f"the {noun} with reference {booking.reference} has another {other}"
                raise NotPossible(message)
        return True

    def _saved(self, aggregate: A) -> bool:
        if not aggregate.pending_events:
            return True
        try:
            self.log.append(aggregate)
        except Conflict:
            return False
        return True
