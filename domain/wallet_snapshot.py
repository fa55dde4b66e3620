"""A wallet as it was at one version, so that a long stream loads as fast as a short one."""

from datetime import datetime
from uuid import UUID

import msgspec
from eventsourcing.persistence import StoredEvent

from domain.wallet import Wallet

TOPIC = "wallet.snapshot.1"  # Raise the number with any change of shape: older ones are ignored.
INTERVAL_EVENTS = 500  # One snapshot costs one row; replaying this many events costs about 2 ms.


class WalletState(msgspec.Struct, frozen=True):
    """Everything that a wallet knows besides its id and version."""

    organization_id: UUID
    currency: str
    balance_micros: int
    sequence: int
    created_on: datetime
    modified_on: datetime


def take(wallet: Wallet) -> StoredEvent:
    """Write the present state of a wallet without pending events."""
    state = WalletState(
        organization_id=wallet.organization_id,
        currency=wallet.currency,
        balance_micros=wallet.balance_micros,
        sequence=wallet.sequence,
        created_on=wallet.created_on,
        modified_on=wallet.modified_on,
    )
    return StoredEvent(wallet.id, wallet.version, TOPIC, msgspec.json.encode(state))


def restore(stored: StoredEvent) -> Wallet | None:
    """Read a snapshot; None when another version of this code wrote it, or it is damaged."""
    if stored.topic != TOPIC:
        return None
    try:
        state = msgspec.json.decode(stored.state, type=WalletState)
    except msgspec.MsgspecError:
        return None
    wallet = object.__new__(Wallet)
    wallet.__base_init__(stored.originator_id, stored.originator_version, state.created_on)
    wallet.modified_on = state.modified_on
    wallet.organization_id = state.organization_id
    wallet.currency = state.currency
    wallet.balance_micros = state.balance_micros
    wallet.sequence = state.sequence
    return wallet
