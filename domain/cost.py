"""What a provider takes for what it does; kept in events, and never shown to a partner."""

import msgspec


class Cost(msgspec.Struct, frozen=True, omit_defaults=True):
    """An amount in the currency of the provider.

    `reference` is the provider's own id of what it was for, by which its invoice can be compared.
    `estimated`: the amount is from a plan or a setting; the provider itself has not told it.
    """

    amount_micros: int
    currency: str
    reference: str | None = None
    estimated: bool = True


class ProviderBalance(msgspec.Struct, frozen=True):
    """What we have left at a provider, in its currency; below zero where it gives credit."""

    amount_micros: int
    currency: str
