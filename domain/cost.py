"""What a provider charges us; kept in events, and never shown to a partner."""

import msgspec


class Cost(msgspec.Struct, frozen=True, omit_defaults=True):
    """An amount in the currency of the provider.

    `reference` is the provider's id of the purchase, to compare with its invoice.
    `estimated`: the amount comes from a plan or a setting, not from the provider's reply.
    """

    amount_micros: int
    currency: str
    reference: str | None = None
    estimated: bool = True


class ProviderBalance(msgspec.Struct, frozen=True):
    """What we have left at a provider, in its currency; below zero where it gives credit."""

    amount_micros: int
    currency: str
