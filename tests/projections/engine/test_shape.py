"""A shape reads its fields from whatever has them, and from the columns that it has."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

import pytest
from msgspec import UNSET, Struct, UnsetType
from sqlalchemy import Integer

from projections.engine.shape import Amount, Moment, Shape, Stored, stored

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


class Coin(Struct):
    metal: str
    weight: int


class Kept(Shape):
    id: UUID
    at: datetime
    coin: Annotated[Coin | None, stored("parts")]
    marks: set[UUID] | None
    value: Annotated[Amount, stored("amount", "worth")]
    seen_at: Moment | None
    facts_of_it: dict[str, int]
    is_old: bool = False
    note: str | UnsetType = UNSET


KEPT = Kept(
    OWNER, datetime(2026, 3, 1, tzinfo=UTC), Coin("tin", 3), {OWNER}, "12.50", None, {"a": 1}
)


def test_a_table_has_a_column_for_each_field_or_part_and_json_for_the_rest() -> None:
    table = Stored(Kept, coin_weight=Integer)
    columns = {each.name: (str(each.type), each.nullable) for each in table.columns("id")}
    assert [*columns] == [*table.names]
    assert columns["coin_weight"] == ("INTEGER", True)
    assert (columns["worth"], columns["seen_at"]) == (("BIGINT", False), ("BIGINT", True))
    values = [OWNER.hex, 1_772_323_200_000_000, "tin", 3, f'["{OWNER}"]', 12_500_000, None]
    assert table.read([*values, '{"a":1}', 0, None, "not of the struct"]) == KEPT
    empty = table.read([*values[:2], None, None, None, 0, 1, "{}", 1, "old"])
    assert (empty.coin, empty.marks, empty.note, empty.is_old) == (None, None, "old", True)
    assert empty.seen_at == "1970-01-01T00:00:00.000Z"


def test_what_is_only_told_is_not_written() -> None:
    with pytest.raises(TypeError):
        Stored(Kept).row(KEPT)
    assert Stored(Coin).row(KEPT.coin or Coin("", 0)) == {"metal": "tin", "weight": 3}


def test_cells_have_parts_apart_and_mappings_as_json() -> None:
    cells = KEPT.cells(["coin_metal", "value", "facts_of_it", "note", "seen_at"])
    assert cells == ["tin", "12.50", '{"a":1}', None, None]


def test_a_field_that_no_source_has_is_a_mistake() -> None:
    with pytest.raises(AttributeError, match="name"):
        Told.of(Purse(OWNER, 0))
