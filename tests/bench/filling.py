"""Fills an installation with copies of one organization: log, read models and stores, by COPY.

The organization was made the ordinary way. A copy has ids, numbers, names and positions of its own,
wherever the original's stand: in columns and in the bytes of events. What lies sealed is copied as
it is, and nobody opens it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

import psycopg
from psycopg.sql import SQL, Identifier

# Of the installation, or the network's own: there are no more of them for more organizations.
SHARED = {"follower_positions", "schema_versions", "log_events_servers", "counters"}
SHARED |= {"installation_notes", "simulated_esims", "simulated_endpoints"}
LOG = "log_events"
PLACES = ("notification_id", "position", "first_position", "last_position")
BYTEA = rb"\\x"
INDEX_MEMORY = "1GB"

_HEX = "[0-9a-f]"
_UUID = f"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"
_BARE = f"(?<!{_HEX}){_HEX}{{32}}(?!{_HEX})"
_ICCID = r"(?<!\d)8988\d{15}(?!\d)"
_MSISDN = r"(?<=\+)883\d{12}(?!\d)"
_NAME = r"(?<=evice )\d{8}(?!\d)"
_TOKEN = re.compile(f"{_UUID}|{_BARE}|{_ICCID}|{_MSISDN}|{_NAME}".encode())
_CODED_HEX = "(?:3[0-9]|6[1-6])"
_CODED_UUID = "2d".join(f"{_CODED_HEX}{{{count}}}" for count in (8, 4, 4, 4, 12))
_CODED = re.compile(
    "|".join(
        (
            _CODED_UUID,
            f"(?<!3[0-9])(?<!6[1-6]){_CODED_HEX}{{32}}(?!{_CODED_HEX})",
            "38393838(?:3[0-9]){15}",
            "(?<=2b)383833(?:3[0-9]){12}",
            "(?<=657669636520)(?:3[0-9]){8}",
        )
    ).encode()
)

COLUMNS = """
    SELECT c.relname, array_agg(a.attname::text ORDER BY a.attnum)
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
    WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND NOT a.attisdropped
    GROUP BY c.relname
"""
INDEXES = """
    SELECT CASE WHEN c.oid IS NULL THEN 'DROP INDEX ' || i.indexrelid::regclass
        ELSE 'ALTER TABLE ' || i.indrelid::regclass || ' DROP CONSTRAINT "' || c.conname || '"' END,
        CASE WHEN c.oid IS NULL THEN pg_get_indexdef(i.indexrelid)
        ELSE 'ALTER TABLE ' || i.indrelid::regclass || ' ADD CONSTRAINT "' || c.conname || '" '
            || pg_get_constraintdef(c.oid) END
    FROM pg_index i LEFT JOIN pg_constraint c ON c.conindid = i.indexrelid
    WHERE i.indrelid = %s::regclass
"""
MOVE = """
    UPDATE follower_positions SET position = e.notification_id,
        stream_id = e.originator_id, stream_version = e.originator_version
    FROM (SELECT * FROM log_events ORDER BY notification_id DESC LIMIT 1) AS e
"""
SEQUENCE = """
    SELECT setval(pg_get_serial_sequence('log_events', 'notification_id'), max(notification_id))
    FROM log_events
"""

# The sums over all wallets are of the installation: they are added up anew, not copied.
HOURS, NIL = "transaction_hours", b"00000000-0000-0000-0000-000000000000"
SUMS_OF_ALL = f"""
    DELETE FROM {HOURS} WHERE organization_id = '{NIL.decode()}';
    INSERT INTO {HOURS} (organization_id, kind, hour, count, first, last, debit_micros,
        credit_micros)
    SELECT '{NIL.decode()}', kind, charged_at / 3600000000, count(*), min(position), max(position),
        sum(CASE direction WHEN 'debit' THEN amount_micros ELSE 0 END),
        sum(CASE direction WHEN 'debit' THEN 0 ELSE amount_micros END)
    FROM transactions GROUP BY kind, charged_at / 3600000000
"""  # noqa: S608  # Our own names.

Lines = Mapping[str, Sequence[bytes]]  # Of each table, as COPY writes them.
Server = psycopg.Connection[Any]
Slot = tuple[bytes, int]  # What of the original stands there, and in which form; or a position.
Block = Callable[[int], bytes]

AS_IS, DASHED, CODED, CODED_DASHED, PLACE = range(5)


def dump(url: str) -> Lines:
    """Read all tables."""
    with psycopg.connect(url) as server:
        return {name: _lines(server, name) for name in _columns(server)}


def fill(url: str, before: Lines, copies: int) -> None:
    """Add copies of what has come since `before`.

    All in one transaction: tables that were emptied in it, and indexes made in it, write no log.
    """
    with psycopg.connect(url) as server:
        columns = _columns(server)
        now = {name: _lines(server, name) for name in columns}
        blocks = _blocks(columns, before, now)
        server.execute(f"SET LOCAL maintenance_work_mem = '{INDEX_MEMORY}'")
        for name, block in blocks.items():
            again = _without_indexes(server, name)
            server.execute(SQL("TRUNCATE {}").format(Identifier(name)))
            with server.cursor().copy(SQL("COPY {} FROM STDIN").format(Identifier(name))) as copy:
                copy.write(b"".join(line + b"\n" for line in now[name]))
                for number in range(1, copies + 1):
                    copy.write(block(number))
            for statement in again:
                server.execute(statement)
        server.execute(SUMS_OF_ALL)
        _move_followers(server)


class Cutter:
    """Cuts lines into what all copies share and the slots between."""

    def __init__(self, own: set[bytes], stride: int) -> None:
        self._own = {token: number for number, token in enumerate(sorted(own))}
        self._stride = stride  # From one copy to the next one's positions.

    def block(self, lines: Sequence[bytes], places: Sequence[int]) -> Block:
        """Return what writes these lines of a copy, the same values for the same copy."""
        shared, picked, slots = [b""], list[int](), dict[Slot, int]()

        def put(slot: Slot) -> None:
            picked.append(slots.setdefault(slot, len(slots)))
            shared.append(b"")

        for line in lines:
            fields = line.split(b"\t")
            for number, field in enumerate(fields):
                if number in places and field != b"\\N":
                    put((field, PLACE))
                else:
                    self._cut(field, shared, put)
                shared[-1] += b"\t" if number + 1 < len(fields) else b"\n"
        plan = [(self._own.get(token, -1), token, form) for token, form in slots]

        def write(copy: int) -> bytes:
            values = self._values(copy, plan)
            whole = [*shared, *picked]
            whole[::2], whole[1::2] = shared, [values[slot] for slot in picked]
            return b"".join(whole)

        return write

    def _cut(self, field: bytes, shared: list[bytes], put: Callable[[Slot], None]) -> None:
        coded, at = field.startswith(BYTEA), 0
        for found in (_CODED if coded else _TOKEN).finditer(field):
            token = bytes.fromhex(found[0].decode()) if coded else found[0]
            bare = token.replace(b"-", b"")
            if bare in self._own:
                shared[-1] += field[at : found.start()]
                put((bare, (CODED if coded else AS_IS) + (len(token) > len(bare))))
                at = found.end()
        shared[-1] += field[at:]

    def _values(self, copy: int, plan: Sequence[tuple[int, bytes, int]]) -> list[bytes]:
        new = Random(copy).randbytes(16 * len(self._own)).hex().encode()  # No secret.
        made = []
        for number, token, form in plan:
            if form == PLACE:
                made.append(b"%d" % (int(token) + copy * self._stride))
                continue
            value = new[32 * number : 32 * number + 32]
            if len(token) != len(value):
                value = _digits(token, int(value[:16], 16))
            if form in {DASHED, CODED_DASHED}:
                value = b"-".join((value[:8], value[8:12], value[12:16], value[16:20], value[20:]))
            made.append(value.hex().encode() if form in {CODED, CODED_DASHED} else value)
        return made


def _blocks(columns: Mapping[str, Sequence[str]], before: Lines, now: Lines) -> Mapping[str, Block]:
    """Return what writes the lines of a copy, by table."""
    old = set[bytes]().union(*(_tokens(line) for lines in before.values() for line in lines))
    shared = {line.split(b"\t")[0] for line in before[LOG]}  # Streams: the ledger's, a plan's.
    new = {}
    for name in now.keys() - SHARED:
        known = set(before[name])
        rows = [line for line in now[name] if line not in known]
        if name == LOG:
            rows = [line for line in rows if line.split(b"\t")[0] not in shared]
        if name == HOURS:
            rows = [line for line in rows if not line.startswith(NIL)]
        if rows:
            new[name] = rows
    own = set[bytes]().union(*(_tokens(line) for lines in new.values() for line in lines)) - old
    at = columns[LOG].index(PLACES[0])
    first, last = (max(int(line.split(b"\t")[at]) for line in each[LOG]) for each in (before, now))
    cutter = Cutter(own, last - first)
    blocks = {}
    for name, lines in new.items():
        places = [at for at, column in enumerate(columns[name]) if column in PLACES]
        blocks[name] = cutter.block(lines, places)
    return blocks


def _digits(token: bytes, chance: int) -> bytes:
    """Return other digits in place of those of an eSIM, a phone number or a name."""
    match len(token):
        case 19:
            return b"8988%015d" % (chance % 10**15)
        case 15:
            return b"883%012d" % (chance % 10**12)
        case _:
            return b"%08d" % (chance % 10**8)


def _tokens(line: bytes) -> set[bytes]:
    found = set(_TOKEN.findall(line))
    found.update(bytes.fromhex(each.decode()) for each in _CODED.findall(line))
    return {token.replace(b"-", b"") for token in found}


def _columns(server: Server) -> Mapping[str, Sequence[str]]:
    rows = server.execute(COLUMNS).fetchall()
    return dict(rows)


def _lines(server: Server, name: str) -> Sequence[bytes]:
    with server.cursor().copy(SQL("COPY {} TO STDOUT").format(Identifier(name))) as copy:
        return b"".join(map(bytes, copy)).splitlines()


def _without_indexes(server: Server, name: str) -> Sequence[str]:
    """Drop the indexes of a table; return what makes them again."""
    again = []
    for drop, make in server.execute(INDEXES, [name]).fetchall():
        server.execute(drop)
        again.append(make)
    return again


def _move_followers(server: Server) -> None:
    """Let everything have been read."""
    server.execute(MOVE)
    server.execute(SEQUENCE)
