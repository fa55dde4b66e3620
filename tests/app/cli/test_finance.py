"""`finance` says why it cannot serve its pages; what it serves is in the net."""

import socket
from contextlib import closing

import pytest

from tests.app.cli.shell import Shell


def test_a_port_that_is_taken_is_told(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert f"PORT {port}: " in shell.refusal("finance", "--port", port)


def test_a_role_that_is_not_there_is_named_by_its_setting(shell: Shell) -> None:
    elsewhere = shell.having(FINANCE_DATABASE_URL="postgresql://nobody:secret@127.0.0.1:1/x")
    told = elsewhere.refusal("finance", "--port", 0)
    assert told.startswith("FINANCE_DATABASE_URL: ")
    assert "secret" not in told


OLDER = "CREATE VIEW finance_statements AS SELECT 1 AS month"


@pytest.mark.parametrize("then", [[], [OLDER]])
def test_views_of_an_older_release_are_named(shell: Shell, then: list[str]) -> None:
    with closing(shell.container()) as parts, parts.views.writing() as connection:
        for statement in ("DROP VIEW finance_statements", *then):
            connection.exec_driver_sql(statement)
    assert "run: python -m app migrate" in shell.refusal("finance", "--port", 0)
