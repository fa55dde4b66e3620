#!/usr/bin/env python3
"""Check an export of the log and its checkpoints without the service that wrote them.

    python3 verify.py EXPORT [EXPORT ...] [--checkpoint FILE ...] [--key KEY ...]
                      [--statement FILE ...] [--statements FILE]

Needs Python 3.9 or newer and nothing else, and shares no code with the service. EXPORT is what
`audit export` has written; several are parts, in their order. --checkpoint is a signed note that
somebody kept, --key the public key that signs them (`name+id+key`), or a file with it. --statement
is a statement that somebody was given (JSON); the checkpoint in it is checked like the others.

For each event: the hash of its bytes is that in its line, positions rise, no version of its stream
is missing, and the wallet that it moves has the next sequence and the balance that the sum gives.
For each checkpoint: the tree of that many events (RFC 6962) has its root, and a key has signed it.
For each statement: these events give the same. --statements writes all that they give.

Prints one line for each verdict. Exits with 0 if all holds, with 1 if something does not, and with
2 if something cannot be read.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import re
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO

# A loss that is noticed later, or before, explains no checkpoint: it would excuse any month.
NOTICED_WITHIN = timedelta(days=1)
FAILURES_MAX = 20  # The first ones show what is wrong.
LINE_BYTES_MAX = 64 << 20
TOLD_S = 1.0  # On a terminal it is told so often how far the check is.
FIELDS = {"position": int, "stream": str, "version": int, "topic": str, "state": str, "leaf": str}
STREAM = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MONTH = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])")


class Unreadable(Exception):
    """Raised with one line about a file that is not what it should be."""


# Ed25519: the arithmetic of RFC 8032 §5.1, enough to check a signature.

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
Point = tuple[int, int, int, int]  # x = X/Z, y = Y/Z, x·y = T/Z.


def add(a: Point, b: Point) -> Point:
    """Add two points of the curve."""
    left, right = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    c, d = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = right - left, d - c, d + c, right + left
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def times(scalar: int, point: Point) -> Point:
    """Add a point to itself so many times."""
    total = (0, 1, 1, 0)
    while scalar:
        total = add(total, point) if scalar & 1 else total
        point, scalar = add(point, point), scalar >> 1
    return total


def point_of(text: bytes) -> Point:
    """Return the point that 32 bytes stand for; raises ValueError if they stand for none."""
    y = int.from_bytes(text, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if (x * x - square) % P or y >= P or (x == 0 and sign):
        raise ValueError("no point of the curve")
    x = x if x & 1 == sign else P - x
    return (x, y, 1, x * y % P)


BASE = point_of((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


def is_signed(key: bytes, message: bytes, signature: bytes) -> bool:
    """Tell whether the owner of a public key has signed a message; may raise as `point_of`."""
    public, first = point_of(key), point_of(signature[:32])
    scalar = int.from_bytes(signature[32:], "little")
    digest = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little")
    a, b = times(scalar, BASE), add(first, times(digest % ORDER, public))
    same = not any((a[i] * b[2] - b[i] * a[2]) % P for i in (0, 1))
    return same and len(signature) == 64 and scalar < ORDER


# The tree of RFC 6962.


def node(left: bytes, right: bytes) -> bytes:
    """Return the hash over two subtrees."""
    return hashlib.sha256(b"\x01" + left + right).digest()


@dataclass
class Tree:
    """The full subtrees of a tree that grows, the largest first."""

    size: int = 0
    hashes: list[bytes] = field(default_factory=list)

    def append(self, leaf: bytes) -> None:
        """Add one leaf."""
        size, self.size = self.size, self.size + 1
        while size & 1:
            leaf, size = node(self.hashes.pop(), leaf), size >> 1
        self.hashes.append(leaf)

    def root(self) -> bytes:
        """Return the hash of the whole tree."""
        root = self.hashes[-1] if self.hashes else hashlib.sha256().digest()
        for left in self.hashes[-2::-1]:
            root = node(left, root)
        return root


def leaf_of(line: dict[str, Any]) -> bytes:
    """Return the hash of one event: where it stands, and its stored bytes."""
    place = f"{line['position']}\n{line['stream']}\n{line['version']}\n{line['topic']}\n"
    return hashlib.sha256(
        b"\x00" + (place + line["state"]).encode("utf-8", "surrogatepass")
    ).digest()


def read_range(path: Path) -> Tree | None:
    """Read the tree before a part from the file beside it; None if there is none."""
    beside = path.with_name(path.name + ".range.json")
    if not beside.exists():
        return None
    with suppress(ValueError, KeyError, TypeError):
        told = json.loads(beside.read_bytes())
        tree = Tree(told["size"], [bytes.fromhex(each) for each in told["hashes"]])
        if tree.size >= 0 and len(tree.hashes) == f"{tree.size:b}".count("1"):
            return tree
    raise Unreadable(f"{beside}: is not the tree before a part")


# Checkpoints: signed notes, https://c2sp.org/tlog-checkpoint.

NOTE = re.compile(
    r"(?P<text>[^\n]+\n(?P<size>[0-9]{1,18})\n(?P<root>[A-Za-z0-9+/]{43}=)\n"
    r"position (?P<position>[0-9]{1,18})\ntime (?P<at>[^\n]+)\n(?:[^\n]+\n)*)\n"
    r"(?P<signatures>(?:\u2014 [^\n]+\n)+)"
)


@dataclass
class Checkpoint:
    """What somebody kept: the root of the tree of the first events, and who has signed it."""

    name: str
    size: int
    root: bytes
    position: int
    at: datetime
    signer: str
    is_forged: bool


def read_checkpoint(of: str, text: str, keys: dict[tuple[str, bytes], bytes]) -> Checkpoint:
    """Read a note and look for the signature of a key that is known."""
    note = NOTE.fullmatch(text)
    if note is None:
        raise Unreadable(f"{of}: is no checkpoint")
    signer, is_forged = "signed by none of the keys" if keys else "no key given", bool(keys)
    for line in note["signatures"].splitlines():
        name, _, signed = line[2:].rpartition(" ")
        with suppress(ValueError):
            signature = base64.b64decode(signed, validate=True)
            key = keys.get((name, signature[:4]), b"")
            if key and is_signed(key, note["text"].encode(), signature[4:]):
                signer, is_forged = f"signed by {name}+{signature[:4].hex()}", False
    root, position = base64.b64decode(note["root"]), int(note["position"])
    told = int(note["size"]), root, position, time_of(note["at"]), signer, is_forged
    return Checkpoint(f"checkpoint {of}", *told)


def read_key(given: str) -> tuple[tuple[str, bytes], bytes]:
    """Read a public key `name+id+key`, or the file that holds it; return name and id with it."""
    with suppress(ValueError):
        text = given if "+" in given else Path(given).read_text("utf-8").strip()
        name, number, encoded = text.split("+", 2)
        key = base64.b64decode(encoded, validate=True)
        key_id = hashlib.sha256(name.encode() + b"\n" + key).digest()[:4]
        if key[:1] == b"\x01" and len(key) == 33 and key_id.hex() == number:
            return (name, key_id), key[1:]
    raise Unreadable(f"{given}: is no public key of the kind Ed25519, or not whole")


# Wallets and their statements.

KINDS = {"deposited": "deposit", "refunded": "refund", "adjusted": "adjustment", "charged": None}
STATEMENT = (
    "organization currency month final opening_balance lines closing_balance "
    "first_sequence last_sequence first_position last_position"
)


@dataclass
class Statement:
    """What happened in a wallet within a month, in micro-units."""

    opening: int
    closing: int
    sequences: list[int] = field(default_factory=lambda: [0, 0])  # The first and the last.
    positions: list[int] = field(default_factory=lambda: [0, 0])
    kinds: dict[str, list[int]] = field(default_factory=dict)  # Count, debit, credit.


@dataclass
class Wallet:
    """A wallet as its events give it."""

    owner: tuple[str, str]  # Organization and currency.
    balance: int | None  # None, like the sequence: a part begins behind its first event.
    sequence: int | None
    month: str = ""  # Of the newest statement.
    statements: dict[str, Statement] = field(default_factory=dict)


class Books:
    """All wallets, and the month that was closed last."""

    def __init__(self) -> None:
        self.wallets: dict[str, Wallet] = {}
        self.closed = ""

    def take(self, line: dict[str, Any]) -> Iterator[str]:
        """Enter an event; yield what is wrong with it. Raises for one that makes no sense."""
        noun, _, what = line["topic"].partition(".")
        if line["topic"] == "month.closed":
            self.closed = month_of(json.loads(line["state"])["month"])
        if noun != "wallet":
            return
        state, begun = json.loads(line["state"]), 0 if line["version"] == 1 else None
        owner = state["organization_id"], state["currency"]
        wallet = self.wallets.setdefault(line["stream"], Wallet(owner, begun, begun))
        if owner != wallet.owner:
            yield "the wallet changes its organization or currency"
        if what not in {"opened", "spending_limited"}:  # A limit moves nothing.
            kind = KINDS[what] or state["kind"]
            change = state["amount_micros"] * (-1 if what == "charged" else 1)
            yield from self._move(wallet, line["position"], kind, change, state)

    def _move(
        self, wallet: Wallet, position: int, kind: str, change: int, state: Any
    ) -> Iterator[str]:
        balance, sequence = state["balance_micros"], state["sequence"]
        if wallet.balance is not None and balance != wallet.balance + change:
            yield f"its balance is not {amount(balance)} but {amount(wallet.balance + change)}"
        if wallet.sequence is not None and sequence != wallet.sequence + 1:
            yield f"its sequence is not {sequence} but {wallet.sequence + 1}"
        if balance < 0:
            yield "its balance is below zero"
        wallet.balance, wallet.sequence = balance, sequence
        # Nothing joins a month that is closed, nor one before that of the entry before it.
        after_close = following(self.closed) if self.closed else ""
        wallet.month = max(month_of(state["timestamp"][:7]), wallet.month, after_close)
        new = Statement(balance - change, balance, [sequence, 0], [position, 0])
        statement = wallet.statements.setdefault(wallet.month, new)
        statement.closing = balance
        statement.sequences[1], statement.positions[1] = sequence, position
        sums = statement.kinds.setdefault(kind, [0, 0, 0])
        sums[0] += 1
        sums[1 if change < 0 else 2] += abs(change)

    def statements(self) -> Iterator[dict[str, Any]]:
        """Yield every statement, also of months without an entry, up to the last one closed."""
        for wallet in sorted(self.wallets.values(), key=lambda each: each.owner):
            month, balance = min(wallet.statements, default=""), 0
            while month and month <= max(wallet.month, self.closed):
                statement = wallet.statements.get(month, Statement(balance, balance))
                yield self._told(wallet, month, statement)
                month, balance = following(month), statement.closing

    def _told(self, wallet: Wallet, month: str, statement: Statement) -> dict[str, Any]:
        lines = [
            {"kind": kind, "count": count, "debit": amount(debit), "credit": amount(credit)}
            for kind, (count, debit, credit) in sorted(statement.kinds.items())
        ]
        (first, last), (begin, end) = statement.sequences, statement.positions
        balances = amount(statement.opening), lines, amount(statement.closing)
        places = first or None, last or None, begin or None, end or None
        values = (*wallet.owner, month, month <= self.closed, *balances, *places)
        return dict(zip(STATEMENT.split(), values))


def read_statement(path: Path) -> dict[str, Any]:
    """Read a statement, with or without what the service puts around it."""
    with suppress(ValueError, AttributeError, KeyError, TypeError):
        told: dict[str, Any] = json.loads(path.read_bytes())
        told = told.get("data", told)
        told["lines"] = sorted(told["lines"], key=lambda line: line["kind"])
        month_of(told["month"])
        return told
    raise Unreadable(f"{path}: is no statement")


def time_of(text: str) -> datetime:
    """Return a time as it is written, to the second."""
    with suppress(ValueError):
        return datetime.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")
    raise Unreadable(f"{text} is no time")


def month_of(text: str) -> str:
    """Return a month that is written as it should be."""
    if MONTH.fullmatch(text) is None:
        raise ValueError(text)
    return text


def following(month: str) -> str:
    """Return the month after a month."""
    years, months = divmod(int(month[:4]) * 12 + int(month[5:]), 12)
    return f"{years:04d}-{months + 1:02d}"


def amount(micros: int) -> str:
    """Return an amount as people write it: with two to six decimals."""
    whole, part = divmod(abs(micros), 1_000_000)
    decimals = f"{part:06d}".rstrip("0").ljust(2, "0")
    return f"{'-' if micros < 0 else ''}{whole}.{decimals}"


# The check of an export, event by event.


class Check:
    """Takes every line in order; keeps the verdicts."""

    def __init__(self, checkpoints: list[Checkpoint]) -> None:
        self.tree, self.books = Tree(), Books()
        self.position = self.events = self.failures = 0
        self.verdicts: list[str] = []
        self.is_part = False
        self._versions: dict[int, int] = {}  # The newest one of each stream.
        self._notes: dict[int, list[Checkpoint]] = {}  # By the size that they sign.
        for each in checkpoints:
            self._notes.setdefault(each.size, []).append(each)
        self._held = 0  # The position of the last checkpoint that holds.
        self._others: list[tuple[Checkpoint, int]] = []  # Those that do not, and `held` then.
        # For each position that was signed the last event up to it: what was lost is not there.
        self._signed = sorted(each.position for each in checkpoints)
        self._last_up_to: dict[int, int] = {}
        self._losses: list[tuple[int, int, datetime]] = []  # Behind what, and when it was noticed.

    def fail(self, reason: str) -> None:
        """Note something that is wrong."""
        self.failures += 1
        if self.failures <= FAILURES_MAX:
            self.verdicts.append(f"FAILED   {reason}")

    def begin(self, name: str, before: Tree | None) -> None:
        """Begin a file; a part has the tree before it beside it."""
        if before is not None and before.size and not self.tree.size:
            self.tree, self.is_part = before, True
            told = f"trusted  the root before {name}: {before.size} events, {before.root().hex()}"
            self.verdicts.append(told)
            for size in [size for size in self._notes if size < before.size]:
                for note in self._notes.pop(size):
                    self.verdicts.append(f"skipped  {note.name}: its {size} events lie before")
        elif before is not None and before != self.tree:
            self.fail(f"{name}: is no continuation of the events before it")
        self._compare()

    def take(self, line: dict[str, Any]) -> None:
        """Check one event and add its leaf."""
        position, leaf, version = line["position"], leaf_of(line), line["version"]
        while self._signed and self._signed[0] < position:
            self._last_up_to[self._signed.pop(0)] = self.position
        wrong = []
        if position <= self.position:
            wrong.append(f"does not rise above {self.position}")
        if leaf.hex() != line["leaf"]:
            wrong.append("the leaf is not that of the event")
        stream = int(line["stream"].replace("-", ""), 16)
        expected = self._versions.get(stream, version - 1 if self.is_part else 0) + 1
        if version != expected:
            wrong.append(f"version {expected} of its stream is missing, {version} is here")
        self._versions[stream] = version
        try:
            wrong.extend(self.books.take(line))
            if line["topic"] == "log.discontinued":
                state = json.loads(line["state"])
                lost = int(state["last_position"]), time_of(state["timestamp"])
                self._losses.append((position, *lost))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, Unreadable):
            wrong.append(f"a {line['topic']} that makes no sense")
        for reason in wrong:
            self.fail(f"position {position}: {reason}")
        self.position, self.events = position, self.events + 1
        self.tree.append(leaf)
        self._compare()

    def _compare(self) -> None:
        for note in self._notes.pop(self.tree.size, ()):
            if note.is_forged:
                self.fail(f"{note.name}: is {note.signer}")
            elif note.root != self.tree.root() or (self.events and note.position != self.position):
                self._others.append((note, self._held))
            else:
                self._held = self.position
                self.verdicts.append(f"ok       {note.name}: {note.size} events, {note.signer}")

    def end(self) -> None:
        """Say which checkpoints do not hold, or were not reached, and what was checked."""
        self._others += [(note, self._held) for notes in self._notes.values() for note in notes]
        lost = 0
        for note, held in self._others:
            there = self._last_up_to.get(note.position, self.position)
            for at, last, noticed in self._losses:
                is_near = abs(noticed - note.at) <= NOTICED_WITHIN
                if is_near and there <= last < note.position < at:
                    told = f"signs events that a failover has lost, as position {at} tells"
                    self.verdicts.append(f"lost     {note.name}: {told}")
                    lost += 1
                    break
            else:
                place = f"behind position {held}, at or before {note.position}"
                self.fail(
                    f"{note.name}: the {note.size} events that it signs are not these: {place}"
                )
        if lost:
            told = "rest on the word of the log alone: ask operations about each loss"
            self.verdicts.append(f"lost     {lost} checkpoints {told}")
        if self.failures > FAILURES_MAX:
            self.verdicts.append(f"FAILED   and {self.failures - FAILURES_MAX} more")
        word, root = "FAILED" if self.failures else "ok", self.tree.root().hex()
        told = f"{self.events} events up to position {self.position}"
        self.verdicts.append(f"{word:8} {told}; root of {self.tree.size} events: {root}")


def read_lines(file: BinaryIO, name: str) -> Iterator[dict[str, Any]]:
    """Read the lines of an export; raises Unreadable for one that is none."""
    number, text = 1, file.readline(LINE_BYTES_MAX)
    while text:
        line: Any = None
        with suppress(ValueError, RecursionError):
            line = json.loads(text)
        kinds = {key: type(value) for key, value in line.items()} if isinstance(line, dict) else {}
        if kinds != FIELDS or not STREAM.fullmatch(line["stream"]) or not text.endswith(b"\n"):
            raise Unreadable(f"{name}: line {number} is no line of an export")
        yield line
        number, text = number + 1, file.readline(LINE_BYTES_MAX)


def check(exports: list[Path], checkpoints: list[Checkpoint]) -> Check:
    """Check exports, which are whole or parts in their order."""
    checked, told = Check(checkpoints), time.monotonic()
    for path in exports:
        with path.open("rb") as file:
            checked.begin(path.name, read_range(path))
            for line in read_lines(file, path.name):
                checked.take(line)
                if time.monotonic() > told + TOLD_S and sys.stderr.isatty():
                    told = time.monotonic()
                    print(f"\r{path.name}: {checked.events:,} events", end="", file=sys.stderr)
    return checked


def compare(checked: Check, statements: list[tuple[str, dict[str, Any]]], out: Path | None) -> None:
    """Compare the statements that somebody was given with those of the events; write the latter."""
    if checked.is_part:
        raise Unreadable("statements need the log from its first event on")
    computed = {(each["organization"], each["month"]): each for each in checked.books.statements()}
    for name, told in statements:
        ours = computed.get((str(told.get("organization")), told["month"]), {})
        if not told.get("final"):
            checked.verdicts.append(f"skipped  statement {name}: its month was not closed")
            continue
        others = [key for key in told if key != "checkpoint" and told[key] != ours.get(key)]
        if others:
            checked.fail(f"statement {name}: the events give another {', '.join(others)}")
        else:
            checked.verdicts.append(f"ok       statement {name}")
    if out is not None:
        out.write_text("".join(json.dumps(each) + "\n" for each in computed.values()), "utf-8")


def main(arguments: list[str]) -> int:
    """Check what the arguments name, and print the verdicts."""
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("exports", nargs="+", type=Path)
    parser.add_argument("--checkpoint", action="append", default=[], type=Path)
    parser.add_argument("--key", action="append", default=[])
    parser.add_argument("--statement", action="append", default=[], type=Path)
    parser.add_argument("--statements", type=Path)
    given = parser.parse_args(arguments)
    try:
        keys = dict(map(read_key, given.key))
        statements = [(path.name, read_statement(path)) for path in given.statement]
        notes = [(path.name, path.read_text("utf-8", "replace")) for path in given.checkpoint]
        notes += [
            (of, str(each["checkpoint"])) for of, each in statements if each.get("checkpoint")
        ]
        checked = check(given.exports, [read_checkpoint(*each, keys) for each in notes])
        if given.statement or given.statements:
            compare(checked, statements, given.statements)
    except (Unreadable, OSError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    checked.end()
    print("\n".join(checked.verdicts).encode("ascii", "backslashreplace").decode())
    return 1 if checked.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
