"""What an entry of a wallet is called, and which links it is about."""

from uuid import UUID

from domain.accounts.wallet import Wallet


def kind_and_direction(event: Wallet.Moved) -> tuple[str, str]:
    """Return what an entry is called in the stream and whether it takes or gives."""
    match event:
        case Wallet.Charged():
            return event.kind, "debit"
        case Wallet.Refunded():
            return "refund", "credit"
        case Wallet.Deposited():
            return "deposit", "credit"
        case _:
            return "adjustment", "debit" if event.amount_micros < 0 else "credit"


def links_of(event: Wallet.Moved) -> list[UUID]:
    """Return the links that an entry is about, each once; its metadata name them."""
    if not event.metadata or not isinstance(event, Wallet.Charged | Wallet.Refunded):
        return []
    one, several = event.metadata.get("link_id"), event.metadata.get("charged_link_ids", [])
    named = several if one is None else [one]
    return [*dict.fromkeys(map(UUID, named))]
