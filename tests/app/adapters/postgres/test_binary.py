"""The server and the driver read what we encode in binary."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.errors import DivisionByZero

from app.adapters.postgres.connection import BoundedConnection
from app.adapters.postgres.database import conninfo
from app.adapters.postgres.log import BIGINT, BYTEA, TEXT, array, bigint, from_bigint, uuids

IDS = [UUID(int=0), UUID("6f1c1f0e-6d0f-5a39-9b6e-2f5d3c8b7a10")]
NUMBERS = [0, -1, 2**63 - 1, -(2**63)]


@pytest.fixture
def connection(database_url: str) -> Iterator[BoundedConnection]:
    connection = BoundedConnection.open(conninfo(database_url))
    yield connection
    connection.close()


@pytest.mark.parametrize(
    ("kind", "written", "meant"),
    [
        ("uuid", uuids(IDS), IDS),
        ("uuid", uuids(str(each) for each in IDS), IDS),
        ("uuid", uuids([]), []),
        ("bigint", array(BIGINT, [*map(bigint, NUMBERS)]), NUMBERS),
        ("text", array(TEXT, ["ä€😀,{}\"'\\".encode(), b""]), ["ä€😀,{}\"'\\", ""]),
        ("bytea", array(BYTEA, [b"", bytes(range(256))]), [b"", bytes(range(256))]),
    ],
)
def test_an_array_arrives_as_it_was_meant(
    connection: BoundedConnection, kind: str, written: bytes, meant: list[Any]
) -> None:
    read = connection.run_prepared(f"SELECT to_json($1::{kind}[])::text".encode(), [written])
    direct = connection.execute(f"SELECT to_json(%s::{kind}[])::text", [meant])
    assert (read.get_value(0, 0) or b"").decode() == (direct.fetchone() or [""])[0]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_goes_there_and_back(connection: BoundedConnection, number: int) -> None:
    found = connection.run_prepared(b"SELECT $1::bigint", [bigint(number)])
    assert from_bigint(found.get_value(0, 0)) == number


def test_a_statement_is_prepared_once_and_goes_on_after_a_refusal(
    connection: BoundedConnection,
) -> None:
    divide, add = b"SELECT 1 / $1::bigint", b"SELECT 1 + $1::bigint"
    for _ in range(2):
        with pytest.raises(DivisionByZero):
            connection.run_prepared(divide, [bigint(0)])
        assert from_bigint(connection.run_prepared(add, [bigint(1)]).get_value(0, 0)) == 2
    with pytest.raises(psycopg.errors.SyntaxError):
        connection.run_prepared(b"SELEC", [])
    found = connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()
    assert found == (2,)


ADD = "INSERT INTO t VALUES ($1::bigint, $2::text, $3::bytea)"


@pytest.fixture
def writing(connection: BoundedConnection) -> BoundedConnection:
    """A connection outside of autocommit, and a table."""
    connection.execute("CREATE TEMPORARY TABLE t (n bigint PRIMARY KEY, name text, data bytea)")
    connection.autocommit = False
    return connection


def test_what_is_written_is_sent_before_a_read_and_checked(writing: BoundedConnection) -> None:
    counts = list[int]()
    writing.write("BEGIN", ())
    writing.write(ADD, (1, "ä\n€", bytes(range(256))), counts.append)
    writing.write(ADD, (2**63 - 1, None, None), counts.append)
    writing.write("UPDATE t SET n = n - $1", (1,), counts.append)
    assert counts == []
    rows = writing.execute("SELECT * FROM t ORDER BY n").fetchall()
    assert rows == [(0, "ä\n€", bytes(range(256))), (2**63 - 2, None, None)]
    assert counts == [1, 1, 2]


def test_an_error_or_a_wrong_count_commits_nothing(writing: BoundedConnection) -> None:
    def refuse(count: int) -> None:
        raise LookupError(count)

    writing.write("BEGIN", ())
    writing.write(ADD, (1, None, None))
    writing.write(ADD, (1, None, None))
    with pytest.raises(psycopg.errors.UniqueViolation):
        writing.commit()
    writing.rollback()
    writing.write("BEGIN", ())
    writing.write("DELETE FROM t", (), refuse)
    writing.write(ADD, (1, None, None))
    with pytest.raises(LookupError, match="0"):
        writing.commit()
    writing.rollback()
    writing.write("BEGIN", ())
    writing.write(ADD, (1, None, None))
    writing.rollback()  # Before it was sent.
    assert writing.execute("SELECT * FROM t").fetchall() == []


def test_what_the_driver_lets_the_server_forget_is_prepared_again(
    writing: BoundedConnection,
) -> None:
    for number, forget in enumerate([writing.rollback, lambda: writing.execute("DROP TABLE u")]):
        writing.write("BEGIN", ())
        writing.write(ADD, (number, None, None))
        writing.commit()
        writing.execute("CREATE TABLE u ()", prepare=True)  # So that the driver has something too.
        forget()
        writing.write("BEGIN", ())
        writing.write(ADD, (-1 - number, None, None))
        writing.commit()
    assert writing.execute("SELECT count(*) FROM t").fetchone() == (4,)
