"""An index of the parts of texts: GIN over trigrams on PostgreSQL, FTS5 over trigrams on SQLite.

Without either (an extension that may not be made, an old SQLite) texts are scanned: what is found
is the same.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from sqlalchemy import (
    ColumnElement,
    Connection,
    Table,
    and_,
    bindparam,
    column,
    event,
    func,
    insert,
    select,
    table,
    text,
)
from sqlalchemy.exc import DBAPIError

TRIGRAM_CHARS = 3  # A shorter term has no trigram: it is scanned for.

# Trusted, and in the server's own package; the second one puts the organization into the index.
EXTENSIONS = ("pg_trgm", "btree_gin")
OPERATORS = ("gin_trgm_ops", "uuid_ops")

# In kB: a search reads the list of what is not yet sorted in from its begin to its end.
PENDING_KB = 256

MERGE = 2  # Of SQLite's 2 to 16 the fewest pieces: a search looks each trigram up in each piece.

ESCAPE = "/"
_WORD = re.compile(r"[^\W_]+")

# By an index of the table's own, by a table apart from it, or by no index.
Way = Literal["own", "apart", "scan"]

logger = logging.getLogger(__name__)


class TextIndex:
    """Finds the rows of a table whose text holds a term, within one organization.

    Texts are folded already and never change. On SQLite the index is a table of its own, which
    knows a row by its number in the column `key`; on PostgreSQL it is an index of the table.
    """

    def __init__(self, name: str, owner: Table, organization: str, texts: str, key: str) -> None:
        self.name = name
        self._owner = owner
        self._organization, self._text, self._key = organization, texts, key
        # As SQLite sees it: a row is its number, and a match is asked of the table's own name.
        self._entries = table(name, column("rowid"), column(name), column("texts"))
        self._is_there = False  # Once it is, a rebuild only replaces it.
        event.listen(owner, "after_create", self._create)
        event.listen(owner, "before_drop", self._drop)

    def add(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Index new rows of the table; PostgreSQL does so by itself."""
        if rows and self.is_separate(connection):
            entries = [{"rowid": row[self._key], "texts": row[self._text]} for row in rows]
            connection.execute(insert(self._entries), entries)

    def holds(self, way: Way) -> ColumnElement[bool]:
        """Return the condition that a row's text holds a term, whose `values` are bound to it.

        An index tells which rows may hold it, and each of those is looked at. PostgreSQL would
        look up all trigrams of a pattern, so it is shown patterns of those that cover the term.
        """
        texts = self._owner.c[self._text]
        if way == "own":
            may = [texts.like(bindparam(name), escape=ESCAPE) for name in ("pieces", "ends")]
            return and_(*may, func.strpos(texts, bindparam("term")) > 0)
        it = texts.like(bindparam("pattern"), escape=ESCAPE)
        if way == "scan":
            return it
        entries = self._entries.c
        found = select(entries.rowid).where(entries[self.name].match(bindparam("trigrams")))
        return and_(self._owner.c[self._key].in_(found), it)

    def way(self, connection: Connection, term: str) -> Way:
        """Tell how texts with a folded term are found."""
        if len(term) < TRIGRAM_CHARS:
            return "scan"
        if connection.dialect.name == "postgresql":
            return "own"
        self._is_there = self._is_there or self.is_separate(connection)
        return "apart" if self._is_there else "scan"

    def is_separate(self, connection: Connection) -> bool:
        """Tell whether the index is a table, which a rebuild swaps as it swaps tables."""
        if connection.dialect.name != "sqlite":
            return False
        known = text("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = :name")
        return connection.execute(known, {"name": self.name}).first() is not None

    def _create(self, _: Table, connection: Connection, **__: Any) -> None:
        if connection.dialect.name == "sqlite":
            self._create_table(connection)
        elif _has_operators(connection):
            columns = f'"{self._organization}", "{self._text}" gin_trgm_ops'
            options = f"fastupdate = on, gin_pending_list_limit = {PENDING_KB}"
            connection.exec_driver_sql(
                f'CREATE INDEX "{self.name}" ON "{self._owner.name}" USING gin ({columns}) '
                f"WITH ({options})"
            )
        else:
            logger.warning("searches scan %s: no extensions %s", self._owner.name, EXTENSIONS)

    def _create_table(self, connection: Connection) -> None:
        try:
            connection.exec_driver_sql(
                f'CREATE VIRTUAL TABLE "{self.name}" USING fts5('
                "texts, content='', detail=none, tokenize='trigram case_sensitive 1')"
            )
            connection.exec_driver_sql(
                f'INSERT INTO "{self.name}" ("{self.name}", rank) '  # noqa: S608  # Our own table.
                f"VALUES ('automerge', {MERGE})"
            )
        except DBAPIError as error:
            if not _is_unknown(error):
                raise
            logger.warning("searches scan %s: SQLite has no trigrams", self._owner.name)

    def _drop(self, _: Table, connection: Connection, **__: Any) -> None:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql(f'DROP TABLE IF EXISTS "{self.name}"')


def values(term: str) -> dict[str, str]:
    """Return what conditions on a folded term are bound to."""
    return {
        "term": term,
        "pattern": pattern(term),
        "trigrams": _trigrams(term),
        **_covering(term),
    }


def pattern(term: str) -> str:
    """Return what LIKE finds a text by that holds a term, literally."""
    for sign in (ESCAPE, "%", "_"):
        term = term.replace(sign, ESCAPE + sign)
    return f"%{term}%"


def _trigrams(term: str) -> str:
    """Return a query of FTS5 for trigrams that cover a term: each more costs a list to be read."""
    last = len(term) - TRIGRAM_CHARS
    starts = [*range(0, last, TRIGRAM_CHARS), last]
    parts = (term[start : start + TRIGRAM_CHARS].replace('"', '""') for start in starts)
    return " AND ".join(f'"{part}"' for part in parts)


def _covering(term: str) -> dict[str, str]:
    """Return patterns of PostgreSQL for every third trigram of a term, and for those at the ends.

    Only letters and digits count there, so it is the words of a term that are cut into pieces.
    """
    words = [word for word in _WORD.findall(term) if len(word) >= TRIGRAM_CHARS]
    pieces = [
        word[start : start + TRIGRAM_CHARS]
        for word in words
        for start in range(0, len(word) - TRIGRAM_CHARS + 1, TRIGRAM_CHARS)
    ]
    ends = [word[-TRIGRAM_CHARS:] for word in words if len(word) % TRIGRAM_CHARS]
    whole = f"%{'%'.join(pieces)}%" if pieces else pattern(term)
    return {"pieces": whole, "ends": f"%{'%'.join(ends)}%" if ends else whole}


def _is_unknown(error: DBAPIError) -> bool:
    """Tell whether this SQLite was built without FTS5, or is older than its trigrams."""
    said = str(error.orig)
    return "no such module" in said or "tokenizer" in said


def _has_operators(connection: Connection) -> bool:
    """Tell whether the extensions are there; make them where that is possible and allowed."""
    if _sees_operators(connection):
        return True
    for name in EXTENSIONS:
        try:
            with connection.begin_nested():
                connection.exec_driver_sql(f"CREATE EXTENSION IF NOT EXISTS {name}")
        except DBAPIError as error:
            if error.connection_invalidated:
                raise
    return _sees_operators(connection)


def _sees_operators(connection: Connection) -> bool:
    known = text(
        "SELECT count(DISTINCT opcname) FROM pg_opclass JOIN pg_am ON pg_am.oid = opcmethod "
        "WHERE amname = 'gin' AND opcname = ANY(:names) AND pg_opclass_is_visible(pg_opclass.oid)"
    )
    found: int = connection.execute(known, {"names": [*OPERATORS]}).scalar_one()
    return found == len(OPERATORS)
