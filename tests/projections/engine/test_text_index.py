"""The index of texts: searches find the same with it and without, and a rebuild keeps it."""

from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

import psycopg
import pytest
from sqlalchemy import text

from app.processes.migrate import migrate
from app.settings import Settings
from projections.audit.auditor import verify
from projections.engine.rebuild import ORPHAN_S, drop_orphans, rebuild_all
from projections.engine.text_index import pattern, values
from projections.models.link_search import LinkFilter
from projections.models.links import Links
from tests.installation import Installation, Process, postgresql_only, sqlite_only
from tests.projections.link_steps import LinkSteps
from tests.projections.looking import tables
from tests.servers.databases import Databases

TERMS = ("van", "van 7", "n 7", "7", "an 70", "8988", "nothing", "o'h", '"bob"', "%", "europe")
NAMES = ("Van 7", "van 70", 'O\'Hara "Bob"', "100%", None)


def found(process: Process, organization_id: UUID) -> dict[str, set[UUID]]:
    process.projector.catch_up()
    pages = {
        term: process.links.page(
            process.views, organization_id, LinkFilter(search=term), offset=0, limit=99
        )
        for term in TERMS
    }
    assert all(total == len(rows) for rows, total in pages.values())
    return {term: {row.id for row in rows} for term, (rows, _) in pages.items()}


def fleet(process: Process) -> UUID:
    organization_id = process.organization()
    for owner in (organization_id, process.organization()):
        for name in NAMES:
            LinkSteps(process, owner, name).activate()
    return organization_id


def is_whole(process: Process) -> bool:
    return verify(process.log, process.views, process.positions, process.models).failures == []


def test_a_rebuild_keeps_the_index_and_what_it_finds(process: Process) -> None:
    organization_id = fleet(process)
    before, there = found(process, organization_id), tables(process)
    assert [len(before[term]) for term in TERMS] == [2, 2, 2, 5, 1, 5, 0, 1, 1, 1, 5]
    for _ in range(2):
        rebuild_all(process.log, process.views, process.positions, [process.links])
        assert tables(process) == there
        assert found(process, organization_id) == before
    LinkSteps(process, organization_id, "Van 71").activate()
    assert len(found(process, organization_id)["van 7"]) == 3
    assert is_whole(process)


@sqlite_only("there the index is a table, which can be missing")
def test_without_its_table_everything_is_found_by_a_scan(
    installation: Installation, process: Process
) -> None:
    organization_id = fleet(process)
    before = found(process, organization_id)
    with process.views.writing() as connection:
        connection.execute(text("DROP TABLE link_texts"))
    another = installation.process()
    another.links = Links()  # What processes of tests share may have seen the table elsewhere.
    assert found(another, organization_id) == before
    LinkSteps(another, organization_id, "Van 71").activate()
    assert len(found(another, organization_id)["van 7"]) == 3
    rebuild_all(another.log, another.views, another.positions, [another.links])
    assert "link_texts" in tables(another)
    assert len(found(another, organization_id)["van 7"]) == 3


@sqlite_only("there the index is a table, which a killed rebuild leaves behind")
def test_what_a_killed_rebuild_has_left_of_an_index_is_dropped(process: Process) -> None:
    before = tables(process)
    fresh = process.links.of(f"{ORPHAN_S:08x}0badcafe")
    with process.views.writing() as connection:
        fresh.metadata.create_all(connection)
    assert tables(process) != before
    drop_orphans(process.views)
    assert tables(process) == before


@postgresql_only("there the index is one of the table")
def test_a_link_table_has_one_index_of_organizations_and_texts(process: Process) -> None:
    fleet(process)
    known = text("SELECT indexdef FROM pg_indexes WHERE tablename = 'links'")
    for _ in range(2):
        with process.views.reading() as connection:
            (gin,) = (each for each in connection.execute(known).scalars() if "USING gin" in each)
        assert "(organization_id, texts gin_trgm_ops)" in gin
        process.projector.catch_up()
        rebuild_all(process.log, process.views, process.positions, [process.links])


def test_who_may_not_make_extensions_scans(tmp_path: Path, databases: Databases) -> None:
    url = databases.new()
    parts = urlsplit(url)
    role = f"plain_{parts.path[1:]}"
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(f'CREATE ROLE "{role}" LOGIN')
        server.execute(f'GRANT ALL ON SCHEMA public TO "{role}"')
    own = parts._replace(netloc=f"{role}@{parts.hostname}:{parts.port}").geturl()
    process = Process(Settings.from_env({"DATABASE_URL": own, "SIGNING_KEYS": f"{tmp_path}/keys"}))
    try:
        migrate(process)
        organization_id = fleet(process)
        sizes = [len(ids) for ids in found(process, organization_id).values()]
        assert sizes == [2, 2, 2, 5, 1, 5, 0, 1, 1, 1, 5]
        with process.views.reading() as connection:
            made = connection.execute(text("SELECT count(*) FROM pg_extension")).scalar_one()
        assert made == 1  # The language of the server alone.
    finally:
        process.close()
        with psycopg.connect(url, autocommit=True) as server:
            server.execute(f'DROP OWNED BY "{role}"; DROP ROLE "{role}"')
        databases.drop(url)


@pytest.mark.parametrize(
    ("term", "trigrams"),
    [("abc", '"abc"'), ("abcd", '"abc" AND "bcd"'), ('a"bcdef', '"a""b" AND "cde" AND "def"')],
)
def test_trigrams_cover_a_term_to_its_end(term: str, trigrams: str) -> None:
    assert values(term)["trigrams"] == trigrams


@pytest.mark.parametrize(
    ("term", "pieces", "ends"),
    [
        ("abcdef", "%abc%def%", "%abc%def%"),
        ("abcdefgh", "%abc%def%", "%fgh%"),
        ("device 0500", "%dev%ice%050%", "%500%"),
        ("3d266ace-6fa8", "%3d2%66a%6fa%", "%ace%fa8%"),
        ("+46 å ö_4_é", "%+46 å ö/_4/_é%", "%+46 å ö/_4/_é%"),
        ("100% _van_", "%100%van%", "%100%van%"),
    ],
)
def test_patterns_cover_the_words_of_a_term(term: str, pieces: str, ends: str) -> None:
    assert (values(term)["pieces"], values(term)["ends"]) == (pieces, ends)


def test_a_pattern_means_its_term_literally() -> None:
    assert pattern("50%_/") == "%50/%/_//%"
