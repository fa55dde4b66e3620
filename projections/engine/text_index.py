"""An index for searches within texts: GIN over trigrams on PostgreSQL, FTS5 on SQLite.

Where neither is available (the extension may not be made, SQLite is old) the texts are scanned.
Results are the same.
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

TRIGRAM_CHARS = 3  # A shorter term has no trigram, so the texts are scanned.

# Both are trusted and come with PostgreSQL; the second puts the organization into the index.
EXTENSIONS = ("pg_trgm", "btree_gin")
OPERATORS = ("gin_trgm_ops", "uuid_ops")

# In kB. A search reads the whole list of entries that are not merged yet, so it is kept short.
PENDING_KB = 256

# The smallest that SQLite allows: a search looks each trigram up in each piece of the index.
MERGE = 2

ESCAPE = "/"
_WORD = re.compile(r"[^\W_]+")

# By the table's own index, by a separate index table, or by scanning.
Way = Literal["own", "apart", "scan"]

logger = logging.getLogger(__name__)


class TextIndex:
    """Finds the rows of a table whose text holds a term, within one organization.

    Texts must be case-folded. On PostgreSQL it is an index of the table. On SQLite it is a separate
    table whose row number is the owner's column `key`; a changed text needs `replace` there.
    """

    def __init__(self, name: str, owner: Table, organization: str, texts: str, key: str) -> None:
        self.name = name
        self._owner = owner
        self._organization, self._text, self._key = organization, texts, key
        # For SQLite the row number is the key, and MATCH is asked of a column named like the table.
        self._entries = table(name, column("rowid"), column(name), column("texts"))
        self._is_there = False  # Once it exists, a rebuild only replaces it.
        event.listen(owner, "after_create", self._create)
        event.listen(owner, "before_drop", self._drop)

    def add(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Index new rows of the table; PostgreSQL does this by itself."""
        if rows and self.is_separate(connection):
            entries = [{"rowid": row[self._key], "texts": row[self._text]} for row in rows]
            connection.execute(insert(self._entries), entries)

    def replace(
        self,
        connection: Connection,
        old: Sequence[Mapping[str, Any]],
        new: Sequence[Mapping[str, Any]],
    ) -> None:
        """Replace the texts of rows in the index; SQLite must be told the old texts."""
        if old and self.is_separate(connection):
            gone = [
                {self.name: "delete", "rowid": row[self._key], "texts": row[self._text]}
                for row in old
            ]
            connection.execute(insert(self._entries), gone)
            self.add(connection, new)

    def purge(self, connection: Connection) -> None:
        """Rewrite the separate index without what was deleted, of which it keeps bytes."""
        if self.is_separate(connection):
            merge = f'INSERT INTO "{self.name}" ("{self.name}") VALUES (\'optimize\')'  # noqa: S608  # A table of ours.
            connection.exec_driver_sql(merge)

    def holds(self, way: Way) -> ColumnElement[bool]:
        """Return the condition that a row's text holds a term; bind `values(term)` to it.

        The index finds candidates, and each is compared with the term. PostgreSQL would look up
        every trigram of a pattern, so it gets patterns of only as many as cover the term.
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
        """Return how texts that hold a folded term are found."""
        if len(term) < TRIGRAM_CHARS:
            return "scan"
        if connection.dialect.name == "postgresql":
            return "own"
        self._is_there = self._is_there or self.is_separate(connection)
        return "apart" if self._is_there else "scan"

    def is_separate(self, connection: Connection) -> bool:
        """Tell whether the index is a separate table, which a rebuild has to swap too."""
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
                f'INSERT INTO "{self.name}" ("{self.name}", rank) '  # noqa: S608  # A table of ours.
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
    """Return the values for the conditions of a folded term."""
    return {
        "term": term,
        "pattern": pattern(term),
        "trigrams": _trigrams(term),
        **_covering(term),
    }


def pattern(term: str) -> str:
    """Return the LIKE pattern for texts that hold a term literally."""
    for sign in (ESCAPE, "%", "_"):
        term = term.replace(sign, ESCAPE + sign)
    return f"%{term}%"


def _trigrams(term: str) -> str:
    """Return the FTS5 query: as few trigrams as cover the term, since each is a list to read."""
    last = len(term) - TRIGRAM_CHARS
    starts = [*range(0, last, TRIGRAM_CHARS), last]
    parts = (term[start : start + TRIGRAM_CHARS].replace('"', '""') for start in starts)
    return " AND ".join(f'"{part}"' for part in parts)


def _covering(term: str) -> dict[str, str]:
    """Return PostgreSQL patterns: one of every third trigram of each word, one of the words' ends.

    PostgreSQL's trigrams hold only letters and digits, so a term is cut into words first.
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
    """Tell whether this SQLite has no FTS5, or none with trigrams."""
    said = str(error.orig)
    return "no such module" in said or "tokenizer" in said


def _has_operators(connection: Connection) -> bool:
    """Tell whether the extensions exist; make them first where that is possible and allowed."""
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
