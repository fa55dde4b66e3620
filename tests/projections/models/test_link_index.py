"""The index of the links' texts: found is the same with it and without, and a rebuild keeps it."""

from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

import psycopg
import pytest
from sqlalchemy import text

from app.processes.doctor import examine
from app.processes.migrate import migrate
from app.settings import Settings
from projections.engine.rebuild import rebuild_all
from projections.models.links import LinkFilter
from tests.installation import Process, postgresql_only
from tests.projections.link_steps import LinkSteps
from tests.projections.looking import link_page, tables
from tests.servers.databases import Databases

TERMS = ("van", "van 7", "n 7", "7", "an 70", "8988", "nothing", "o'h", '"bob"', "%", "europe")
SIZES = [2, 2, 2, 5, 1, 5, 0, 1, 1, 1, 5]
NAMES = ("Van 7", "van 70", 'O\'Hara "Bob"', "100%", None)


def found(process: Process, organization_id: UUID) -> dict[str, set[UUID]]:
    pages = {it: link_page(process, organization_id, LinkFilter(search=it)) for it in TERMS}
    assert all(total == len(rows) for rows, total in pages.values())
    return {term: {row.id for row in rows} for term, (rows, _) in pages.items()}


def fleet(process: Process) -> UUID:
    organization_id = process.organization()
    for owner in (organization_id, process.organization()):
        for name in NAMES:
            LinkSteps(process, owner, name).activate()
    return organization_id


def searches(process: Process) -> list[str]:
    return [each.message for each in examine(process) if each.check == "search"]


@pytest.mark.each_database
def test_a_rebuild_keeps_what_is_found(process: Process) -> None:
    organization_id = fleet(process)
    before, there = found(process, organization_id), tables(process)
    assert [len(before[term]) for term in TERMS] == SIZES
    for _ in range(2):
        rebuild_all(process.source, [process.links])
        assert tables(process) == there
        assert found(process, organization_id) == before
    LinkSteps(process, organization_id, "Van 71").activate()
    assert len(found(process, organization_id)["van 7"]) == 3
    assert process.audit().failures == []


@postgresql_only("SQLite scans")
def test_a_link_table_has_one_index_of_organizations_and_texts(process: Process) -> None:
    fleet(process)
    known = text("SELECT indexdef FROM pg_indexes WHERE tablename = 'links'")
    for _ in range(2):
        with process.views.reading() as connection:
            (gin,) = (each for each in connection.execute(known).scalars() if "USING gin" in each)
        assert "(organization_id, texts gin_trgm_ops)" in gin
        assert searches(process) == []
        process.projector.catch_up()
        rebuild_all(process.source, [process.links])


def test_who_may_not_make_extensions_scans_and_is_warned(
    tmp_path: Path, databases: Databases
) -> None:
    url = databases.new()
    parts = urlsplit(url)
    role = f"plain_{parts.path[1:]}"
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(f'CREATE ROLE "{role}" LOGIN')
        server.execute(f'GRANT ALL ON SCHEMA public TO "{role}"')
    own = parts._replace(netloc=f"{role}@{parts.hostname}:{parts.port}").geturl()
    process = Process(Settings.from_env({"DATABASE_URL": own, "SIGNING_KEYS": f"{tmp_path}/keys"}))
    warnings: list[str] = []
    try:
        migrate(process, warn=warnings.append)
        assert [each for each in warnings if "pg_trgm and btree_gin" in each] == searches(process)
        assert len(searches(process)) == 1
        assert [*map(len, found(process, fleet(process)).values())] == SIZES
        with process.views.reading() as connection:
            made = connection.execute(text("SELECT count(*) FROM pg_extension")).scalar_one()
        assert made == 1  # The language of the server alone.
    finally:
        process.close()
        with psycopg.connect(url, autocommit=True) as server:
            server.execute(f'DROP OWNED BY "{role}"; DROP ROLE "{role}"')
        databases.drop(url)
