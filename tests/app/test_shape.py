"""A shape reads its fields from whatever has them."""

from dataclasses import dataclass
from uuid import UUID

import pytest
from msgspec import UNSET, UnsetType

from app.shape import Shape

OWNER = UUID(int=7)


@dataclass
class Purse:
    owner_id: UUID
    balance_micros: int | None
    coin_count: int = 3
    note: str = "not asked for"


class Told(Shape):
    owner: UUID
    balance: str | None
    coin: int
    name: str
    note: str | UnsetType = UNSET


def test_a_field_is_an_attribute_by_its_name_and_money_becomes_an_amount() -> None:
    told = Told.of(Purse(OWNER, 12_500_000), name="Acme")
    assert told.facts() == {"owner": OWNER, "balance": "12.50", "coin": 3, "name": "Acme"}
    assert Told.of(Purse(OWNER, None), name="Acme", note="given").facts()["balance"] is None


def test_a_field_that_no_source_has_is_a_mistake() -> None:
    with pytest.raises(AttributeError, match="name"):
        Told.of(Purse(OWNER, 0))
