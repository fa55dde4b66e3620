"""Rows that are written many at once stand there as rows that are written one by one."""

from collections.abc import Iterator
from itertools import product
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Uuid,
    select,
)
from sqlalchemy.exc import IntegrityError

from projections.engine.inserting import MANY_ROWS, insert_many, insert_new, upsert
from projections.models.plans import NAME
from tests.installation import Process

pytestmark = pytest.mark.each_database

THINGS = Table(
    "things",
    MetaData(),
    Column("owner", Uuid, primary_key=True),
    Column("name", NAME, primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("count", Integer),
    Column("switched", Boolean),
    Column("box", LargeBinary),
    Column("other", Uuid),
)
SIZES = [1, MANY_ROWS - 1, MANY_ROWS, 50]


@pytest.fixture
def connection(process: Process) -> Iterator[Connection]:
    with process.views.writing() as writing:
        THINGS.create(writing)
        yield writing


def thing(number: int) -> dict[str, Any]:
    return {
        "owner": UUID(int=number % 3),
        "name": f"{number:03d} {{}},'\"\\\t\n ÅÄ–漢",
        "at": 2**40 + number,
        "count": -number,
        "switched": number % 2 == 0,
        "box": bytes(range(number % 256)),
        "other": UUID(int=2**127 + number),
    }


def bare(number: int) -> dict[str, Any]:
    return {"owner": UUID(int=number), "name": "", "at": 0} | dict.fromkeys(
        ("count", "switched", "box", "other")
    )


def written(connection: Connection) -> list[dict[str, Any]]:
    rows = [row._asdict() for row in connection.execute(select(THINGS))]
    return sorted(rows, key=lambda row: (row["name"], row["owner"]))


@pytest.mark.parametrize("write", [insert_many, insert_new, upsert])
def test_each_row_is_there_as_it_was_given(connection: Connection, write: Any) -> None:
    for make, count in product((thing, bare), SIZES):
        rows = [make(number) for number in range(count)]
        write(connection, THINGS, rows)
        assert written(connection) == rows
        connection.execute(THINGS.delete())
    write(None, THINGS, [])  # No rows are no statement.


def test_a_row_with_a_known_key_is_replaced_but_for_columns_that_are_not_given(
    connection: Connection,
) -> None:
    given = ("owner", "name", "at", "switched")
    for count in SIZES:
        rows = [thing(number) for number in range(count)]
        upsert(connection, THINGS, rows)
        changed = [{n: row[n] for n in given} | {"at": -1, "switched": None} for row in rows]
        upsert(connection, THINGS, [*changed, {**changed[0], "name": "new"}])
        assert written(connection) == [
            *({**old, **new} for old, new in zip(rows, changed, strict=True)),
            {**dict.fromkeys(thing(0)), **changed[0], "name": "new"},
        ]
        connection.execute(THINGS.delete())


def test_a_row_with_a_known_key_can_be_left_as_it_is(connection: Connection) -> None:
    for count in SIZES:
        rows = [thing(number) for number in range(count)]
        known = rows[: count // 2]
        insert_many(connection, THINGS, known)
        insert_new(connection, THINGS, [*({**row, "at": -1} for row in known), *rows])
        assert written(connection) == rows
        connection.execute(THINGS.delete())


def test_what_the_database_refuses_is_raised_as_the_library_raises_it(process: Process) -> None:
    with process.views.writing() as making:
        THINGS.create(making)
    for write, count in product((insert_many, insert_new, upsert), SIZES):
        rows = [{**thing(number), "at": None} for number in range(count)]
        with pytest.raises(IntegrityError), process.views.writing() as writing:
            write(writing, THINGS, rows)
