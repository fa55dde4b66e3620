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

A = TypeVar("A", Organization, ApiClient)


@dataclass(frozen=True)
class Accounts:
    """Operators' commands. Each one commits before it returns; unknown ids raise NotFound."""

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
        """Apply a change to an organization, again if another operator was first."""
        return self._change(self._organization(organization_id), change)

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
        """Apply a change to a client, again if another operator was first."""
        client = self.log.get(ApiClient, api_client_id(client_id), f"client {client_id}")
        return self._change(client, change)

    def open_wallet(self, organization_id: UUID, cause: Cause) -> Wallet:
        """Open the wallet of an organization; raises NotPossible if it has one."""
        self._organization(organization_id)
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
        """Book a payment once per reference; NotPossible if the reference had another amount."""
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
        """Correct a balance by a signed amount, once per reference.

        Raises InsufficientBalance if it would become negative, NotPossible if the reference had
        another amount or reason.
        """
        made = Adjustment.make(organization_id, reference, amount_micros, reason, cause)
        return self._book(made, lambda held: held.adjust(made, self.currency.code, cause))

    def _book(self, booking: Deposit | Adjustment, change: Change) -> Wallet:
        """Save a booking with its wallet entry, or find that it was saved before."""
        organization_id = booking.organization_id
        self.wallet(organization_id)
        if not self._is_made(booking):
            try:
                self.committer.commit(wallet_id(organization_id), change, booking)
            except Conflict:
                if not self._is_made(booking):  # A failover has lost the first booking.
                    raise
        return self.wallet(organization_id)

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

    def _change(self, aggregate: A, change: Callable[[A], None]) -> A:
        def decide(newest: A) -> A:
            change(newest)
            return newest

        return self.log.change(aggregate, decide)

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
