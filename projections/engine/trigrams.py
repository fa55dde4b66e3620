"""Searches for a part of a text: by an index of trigrams on PostgreSQL, by a scan elsewhere.

Without the extensions PostgreSQL scans too. Both ways find the same.
"""

from typing import Any
from unicodedata import normalize

from sqlalchemy import Connection, Index, text

# Both are trusted and come with PostgreSQL. The second puts the organization into the index, so
# that no search reads what other organizations have.
EXTENSIONS = ("pg_trgm", "btree_gin")
OPERATORS = ("gin_trgm_ops", "uuid_ops")
PENDING_KB = 256  # A search reads the whole list of entries that are not merged yet.
ESCAPE = "/"


def trigram_index(name: str, column: str) -> Index:
    """Define the index of a column of texts within an organization, made where it can be made."""
    return Index(
        name,
        "organization_id",
        column,
        postgresql_using="gin",
        postgresql_ops={column: "gin_trgm_ops"},
        postgresql_with={"gin_pending_list_limit": PENDING_KB},
    ).ddl_if(dialect="postgresql", callable_=_knows_operators)


def fold(text: str) -> str:
    """Return a text in a form in which texts that differ only in case, or in code, are equal."""
    return normalize("NFC", text.casefold())


def pattern(term: str) -> str:
    """Return the LIKE pattern for texts that hold a term literally."""
    for sign in (ESCAPE, "%", "_"):
        term = term.replace(sign, ESCAPE + sign)
    return f"%{term}%"


def _knows_operators(*given: Any, **_: Any) -> bool:
    connection: Connection = given[2]  # After the statement and the index.
    known = text(
        "SELECT count(DISTINCT opcname) FROM pg_opclass JOIN pg_am ON pg_am.oid = opcmethod "
        "WHERE amname = 'gin' AND opcname = ANY(:names) AND pg_opclass_is_visible(pg_opclass.oid)"
    )
    found: int = connection.execute(known, {"names": [*OPERATORS]}).scalar_one()
    return found == len(OPERATORS)
