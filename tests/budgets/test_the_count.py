"""Our count equals the server's: over a random mix both have seen the same statements."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import psycopg
import pytest

from tests.budgets.crew import Crew
from tests.budgets.partner import OPERATIONS, Partner, run_once
from tests.budgets.tally import OWN_COMMIT, Tally, tally
from tests.seeds import PostgresSeed
from tests.servers.databases import Databases
from tests.servers.fixtures import started
from tests.servers.postgres import PostgresServer

__all__ = ["tally"]

COUNTING = {
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.max": "10000",
}
SEEN = """
    SELECT query, sum(calls) FROM pg_stat_statements
    WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND query NOT LIKE '%pg_stat_statements%' AND query NOT IN ('ROLLBACK', 'SELECT $1')
    GROUP BY query
"""
# The last asks whether the connection of a lock still works: how often depends on the time.
UNCOUNTED = {OWN_COMMIT, "ROLLBACK", "SELECT 1"}
# The server counts what succeeds; a turn at a wallet ends behind the reply, so behind the count.
OPERATIONS_RUN = 40


@pytest.fixture
def databases() -> Iterator[Databases]:
    """Databases on a server that counts."""
    server = started(lambda: PostgresServer(COUNTING), "PostgreSQL", "nothing else")
    made = Databases(server.url())
    yield made
    made.close()
    server.close()


def test_the_server_has_seen_what_was_counted(
    databases: Databases, tmp_path: Path, tally: Tally
) -> None:
    random = Random(20_251_122)
    crew = Crew(tmp_path, PostgresSeed(databases), tally)
    partner = Partner(crew)
    with psycopg.connect(crew.url, autocommit=True, application_name="bystander") as server:
        server.execute("CREATE EXTENSION pg_stat_statements")
        server.execute("SELECT pg_stat_statements_reset()")
        counted = Counter(
            text_of(each.text)
            for _ in range(OPERATIONS_RUN)
            for each in run_once(crew, partner, random.choice([*OPERATIONS.values()]))
            if each.text not in UNCOUNTED and not each.failed
        )
        seen = Counter({text_of(query): int(calls) for query, calls in server.execute(SEEN)})
    crew.close()
    assert seen.total() > 0
    # Texts may differ: the server writes one for all that differ in constants only.
    assert seen.total() == counted.total(), f"{counted - seen} is not\n{seen - counted}"


def text_of(text: str) -> str:
    return " ".join(text.split())
