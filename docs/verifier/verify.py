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
In a log that is whole, every rule about money holds as well (`@rule` below, a function for each):
each entry of a wallet has its reason and each reason its entry, ids follow from facts, prices,
jobs, fees and refunds add up. events.md beside this file names the fields that the rules read.
Who caused an event had the right to, and another operator has approved what is above the limit.
Lookups and fees cost what was in force, no fee is forgotten, and no month was closed too early.
For each checkpoint: the tree of that many events (RFC 6962) has its root, and a key has signed it.
For each statement: these events give the same. --statements writes all that they give.

Prints one line for each verdict, and which newest events no given checkpoint covers: against one
who has rewritten those, with all that belongs to them, no rule helps. Exits with 0 if all holds,
with 1 if something does not, and with 2 if something cannot be read. What must be remembered of
each event lies in a temporary file, so memory does not grow with the log.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import re
import sqlite3
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Optional

# A loss that is noticed later, or before, explains no checkpoint: it would excuse any month.
NOTICED_WITHIN = timedelta(days=1)
FAILURES_MAX = 20  # The first ones show what is wrong.
LINE_BYTES_MAX = 64 << 20
TOLD_S = 1.0  # On a terminal it is told so often how far the check is.
FIELDS = {"position": int, "stream": str, "version": int, "topic": str, "state": str, "leaf": str}
STREAM = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Unreadable(ValueError):
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
    stored = (place + line["state"]).encode("utf-8", "surrogatepass")
    return hashlib.sha256(b"\x00" + stored).digest()


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
    r"(?P<signatures>(?:\u2014 [^\n]+(?:\n|\Z))+)"  # Whoever copies it may lose the last line end.
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


def read_checkpoint(of: str, text: str, keys: list[bytes]) -> Checkpoint:
    """Read a note and look for the signature of a key that is known, under whatever name."""
    note = NOTE.fullmatch(text)
    if note is None:
        raise Unreadable(f"{of}: is no checkpoint")
    signer, is_forged = "signed by none of the keys" if keys else "no key given", bool(keys)
    for line in note["signatures"].splitlines():
        name, _, signed = line[2:].rpartition(" ")
        with suppress(ValueError):
            signature = base64.b64decode(signed, validate=True)
            for key in keys:
                is_its_id = key_id(name, key) == signature[:4]
                if is_its_id and is_signed(key, note["text"].encode(), signature[4:]):
                    signer, is_forged = f"signed by {name}+{signature[:4].hex()}", False
    root, position = base64.b64decode(note["root"]), int(note["position"])
    told = int(note["size"]), root, position, time_of(note["at"]), signer, is_forged
    return Checkpoint(f"checkpoint {of}", *told)


def key_id(name: str, key: bytes) -> bytes:
    """Return the id that a public key has under a name."""
    return hashlib.sha256(name.encode() + b"\n\x01" + key).digest()[:4]


def read_key(given: str) -> bytes:
    """Read a public key `name+id+key`, or the file that holds it."""
    with suppress(ValueError):
        text = given if "+" in given else Path(given).read_text("utf-8").strip()
        name, number, encoded = text.split("+", 2)
        key = base64.b64decode(encoded, validate=True)
        if key[:1] == b"\x01" and len(key) == 33 and key_id(name, key[1:]).hex() == number:
            return key[1:]
    raise Unreadable(f"{given}: is no public key of the kind Ed25519, or not whole")


# Wallets and their statements.

ENTRIES = {"wallet.deposited": "deposit", "wallet.adjusted": "adjustment"}
ENTRIES |= {"wallet.charged": "charged", "wallet.refunded": "refunded"}
ENTRIES |= {"wallet.reversed": "reversal", "wallet.paid_out": "payout"}
ENTRIES |= {"wallet.claim_changed": "claim"}
KINDS = {"deposited": "deposit", "refunded": "refund", "adjusted": "adjustment", "charged": None}
KINDS |= {"reversed": "reversal", "paid_out": "payout", "claim_changed": "claim"}
DEBITS, SIGNED = {"charged", "reversed", "paid_out"}, {"adjustment", "claim"}
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
    limit: int | None = None  # Of what may be spent in a month, and what was spent in which.
    spent: int = 0
    spending_month: str = ""
    claim: int = 0  # What it owes for reversed deposits.


@dataclass
class Event:
    """One event; its facts stand in `state`, and a missing one raises KeyError."""

    position: int
    stream: str
    version: int
    topic: str
    text: str

    def __getitem__(self, name: str) -> Any:
        return self.state[name]

    @cached_property
    def state(self) -> Any:
        """Read its facts, once; raises ValueError for a text that is no JSON."""
        return json.loads(self.text)

    @property
    def noun(self) -> str:
        """Return the kind of its stream."""
        return self.topic.partition(".")[0]


class Due(NamedTuple):
    """What an event announces of a later one of its commit."""

    facts: Any
    position: int
    reason: str | None = None  # Of a refund.
    link: str | None = None  # Of a charge: the link that gives it back when it is cancelled.


class Charge(NamedTuple):
    """A charge or refund: of whom, for what (type and id), how much, and what is left of it."""

    owner: str
    type: str
    id: str
    micros: int
    left: int


class Memory:
    """Every stream, charge and refund, in a temporary file that goes with the program."""

    def __init__(self) -> None:
        file = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        file.executescript(
            """
            PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -32768;
            CREATE TABLE streams (id BLOB PRIMARY KEY, version INTEGER) WITHOUT ROWID;
            CREATE TABLE charges (charge TEXT PRIMARY KEY, owner TEXT, type TEXT, id TEXT,
                micros INTEGER, open INTEGER, link TEXT) WITHOUT ROWID;
            CREATE INDEX links ON charges (link) WHERE link IS NOT NULL;
            BEGIN;
            """
        )
        self._run = file.execute

    def expected(self, stream: str, version: int) -> int | None:
        """Remember the newest version of a stream; return which was due, None of a new stream."""
        key = bytes.fromhex(stream.replace("-", ""))
        if version > 1:
            following = "UPDATE streams SET version = ? WHERE id = ? AND version = ?"
            found = self._run(following, (version, key, version - 1))
        else:
            found = self._run("INSERT OR IGNORE INTO streams VALUES (?, 1)", (key,))
        if found.rowcount == 1:
            return version
        row = self._run("SELECT version FROM streams WHERE id = ?", (key,)).fetchone()
        self._run("INSERT OR REPLACE INTO streams VALUES (?, ?)", (key, version))
        return None if row is None else int(row[0]) + 1

    def add(self, charge_id: str, charge: Charge, link: str | None = None) -> bool:
        """Remember a charge, under the link that may give it back; False if it is known."""
        insert = "INSERT OR IGNORE INTO charges VALUES (?, ?, ?, ?, ?, ?, ?)"
        return self._run(insert, (charge_id, *charge, link)).rowcount == 1

    def charge(self, charge_id: str) -> Charge | None:
        """Return a charge by its transaction."""
        wanted = "SELECT owner, type, id, micros, open FROM charges WHERE charge = ?"
        row = self._run(wanted, (charge_id,)).fetchone()
        return None if row is None else Charge(*row)

    def give_back(self, charge_id: str, micros: int) -> None:
        """Remember that part of a charge was given back."""
        self._run("UPDATE charges SET open = open - ? WHERE charge = ?", (micros, charge_id))

    def left_of(self, link: str) -> list[tuple[str, int]]:
        """Return each charge of a link of which something is left, and how much."""
        wanted = "SELECT charge, open FROM charges WHERE link = ? AND open <> 0 ORDER BY 1"
        return self._run(wanted, (link,)).fetchall()


class Books:
    """All wallets, the month that was closed last, and what the rules remember."""

    def __init__(self, memory: Memory) -> None:
        self.wallets: dict[str, Wallet] = {}
        self.closed = ""
        self.memory = memory
        self.currency = ""
        self.is_recent = False  # See `an_entry_has_its_reason`.
        self.due: dict[Any, Due] = {}  # What was announced and has not come yet.
        # What is not over, by stream: a job with its open items, a change of plans with what it
        # has done, a link before its activation, a fee, a proposal. And links that were charged.
        self.open: dict[str, Any] = {}
        self.taken: set[str] = set()
        self.ends: dict[str, str] = {}  # Intents to end a link, and their kind.

    def take(self, event: Event, *, is_part: bool = False) -> Iterator[str]:
        """Enter an event; yield what is wrong with it. Raises for one that makes no sense."""
        topic = event.topic
        if not topic.startswith("wallet.") and topic not in RULES and event.version > 1:
            return
        if event.version == 1 and (kind := event.state.get("originator_topic")) != event.noun:
            yield f"its stream begins as {kind!r}, which is not its kind"
        if event.noun == "wallet":
            yield from self._enter(event)
        if topic == "month.closed":
            self.closed, self.is_recent = month_of(event["month"]), True
        if topic in RULES and (event.version == 1) != (topic in FIRST):
            yield "its stream begins again, or with something else"
        for each in RULES.get(topic, ()):
            if not is_part or each in ALONE:
                yield from each(self, event)

    def _enter(self, event: Event) -> Iterator[str]:
        what, begun = event.topic.partition(".")[2], 0 if event.version == 1 else None
        owner = event["organization_id"], event["currency"]
        wallet = self.wallets.setdefault(event.stream, Wallet(owner, begun, begun))
        if owner != wallet.owner:
            yield "the wallet changes its organization or currency"
        if what not in {"opened", "spending_limited"}:  # A limit moves nothing.
            kind = KINDS[what] or event["kind"]
            if kind == "deposit" and event["reference"]["type"] == "sandbox_deposit":
                kind = "sandbox_deposit"
            change = whole(event["amount_micros"]) * (-1 if what in DEBITS else 1)
            yield from self._move(wallet, event, kind, change)

    def _move(self, wallet: Wallet, event: Event, kind: str, change: int) -> Iterator[str]:
        balance, sequence = whole(event["balance_micros"]), whole(event["sequence"])
        if wallet.balance is not None and balance != wallet.balance + change:
            yield f"its balance is not {amount(balance)} but {amount(wallet.balance + change)}"
        if wallet.sequence is not None and sequence != wallet.sequence + 1:
            yield f"its sequence is not {sequence} but {wallet.sequence + 1}"
        if balance < 0:
            yield "its balance is below zero"
        if change == 0 or (kind not in SIGNED and event["amount_micros"] < 0):
            yield "its amount is not above zero"
        if kind in {"deposit", "reversal", "payout"}:  # The bank moves it too.
            owner, reference = event["organization_id"], event["reference"]["id"]
            banked = Charge(owner, event["currency"], reference, change, change)
            self.memory.add(f"bank {event['transaction_id']}", banked)
        wallet.balance, wallet.sequence = balance, sequence
        # Nothing joins a month that is closed, nor one before that of the entry before it.
        after_close = following(self.closed) if self.closed else ""
        wallet.month = max(month_of(event["timestamp"][:7]), wallet.month, after_close)
        new = Statement(balance - change, balance, [sequence, 0], [event.position, 0])
        statement = wallet.statements.setdefault(wallet.month, new)
        statement.closing = balance
        statement.sequences[1], statement.positions[1] = sequence, event.position
        sums = statement.kinds.setdefault(kind, [0, 0, 0])
        sums[0] += 1
        sums[1 if change < 0 else 2] += abs(change)

    def expect(self, event: Event, key: Any, facts: Any, **more: Any) -> Iterator[str]:
        """Expect that a later event of this commit states these facts."""
        if key in self.due:
            yield f"it announces again what has not come: {key}"
        self.due[key] = Due(facts, event.position, **more)

    def keep(self, key: Any, facts: Any) -> Iterator[str]:
        """Check that exactly these facts were announced."""
        due = self.due.pop(key, None)
        if due is None:
            yield "no event before it says so"
        elif due.facts != facts:
            yield f"position {due.position} has announced something else"

    def charge(self, event: Event, price: Any, kind: str, **more: Any) -> Iterator[str]:
        """Expect the charge of a price; its id follows from what is charged for."""
        if price is not None:
            transaction, of = price["transaction_id"], more.pop("of", event.stream)
            yield from named(transaction, "transaction", of)
            facts = (event["organization_id"], micros_of(price), TYPES[event.noun], event.stream)
            charge = ("charged", *facts, kind, price["currency"])
            yield from self.expect(event, transaction, charge, **more)

    def refund(
        self, event: Event, refund: Any, charge_id: str, reason: str, *id_of: Any
    ) -> Iterator[str]:
        """Expect the refund of a charge, whose own facts name what it was for."""
        transaction, charge = refund["transaction_id"], self.memory.charge(charge_id)
        yield from named(transaction, *id_of)
        if charge is None or charge.owner != event["organization_id"]:
            yield f"it gives back {charge_id}, which is no charge of its organization"
            return
        facts = (charge.owner, micros_of(refund), charge.type, charge.id, charge_id)
        yield from self.expect(event, transaction, ("refunded", *facts), reason=reason)

    def open_ends(self) -> Iterator[tuple[int, str]]:
        """Yield what was announced and never came, with the position of its announcement."""
        for key, due in self.due.items():
            yield due.position, f"it announces {key}, which never comes"

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


# Operators: who may cause what, and what takes two of them.

RIGHTS = {  # What only a command causes.
    "money": "organization.registered organization.suspended organization.activated "
    "organization.deactivated organization.price_changed organization.monthly_link_fee_changed "
    "organization.lookup_switched organization.rate_limit_set organization.spending_limit_set "
    "wallet.opened deposit.made adjustment.made adjustment.proposed link.imported "
    "reversal.made payout.made "
    "number_lookup.refunded_by_hand bulk_job.refunded_by_hand link.refunded_by_hand "
    "plan_change.refunded_by_hand monthly_fee.refunded_by_hand proposal.made "
    "organization.brand_set organization.customer_number_set",
    "approve": "adjustment.approved adjustment.rejected proposal.approved proposal.rejected "
    "proposal.granted",
    "catalogue": "plan.published plan.changed plan.disabled plan.enabled price.set "
    "plan.organization_excluded plan.organization_included provider.drained provider.resumed",
    "keys": "api_client.registered api_client.secret_rotated api_client.revoked "
    "operator.registered operator.key_rotated operator.revoked approval_limit.set erasure.made",
    "audit": "settlement.booked",
}
BY_OTHERS_TOO = {  # And then without an actor.
    "money": "bulk_job.cancelled link.status_requested link.suspended link.reactivated "
    "link.end_requested link.ended link.renamed",
    "keys": "webhook_endpoint.disabled webhook_endpoint.enabled webhook_endpoint.deleted",
    "audit": "month.closed",
}
ACTS = {"key.renewed": "keys", "key.revoked": "keys", "installation.released": "keys"}
ACTS.update({"tree.rebuilt": "audit", "checkpoint.signed": "audit"})
ASKED = {topic: right for right, all_of in RIGHTS.items() for topic in all_of.split()}
SHARED = {topic: right for right, all_of in BY_OTHERS_TOO.items() for topic in all_of.split()}
JUDGED = {*ASKED, *SHARED, "operator_act.done", "operator.key_rehashed", "proposal.used"}
TAKE_TWO = {"money", "approve", "keys"}  # Rights that a limit which covers people lets two give.
PEOPLE = {"operator", "key"}  # Proposals that may wait for ALONE_AFTER where nobody can approve.
WITH_SECRET = {*PEOPLE, "client", "secret"}  # What is made by who has asked for it.
ALONE_AFTER = timedelta(hours=24)
SETTLED_LATER = {"link.suspended", "link.reactivated", "link.ended"}
BELIEVED = timedelta(minutes=1)  # A revoked client may still have got in.
BY_CLIENTS = {"deposit": "deposits", "api_client": "clients"}  # With which scope they do what.

# As what an event is proposed: the kind, whose it is, its name; amount, reason, charge and rights,
# the deposit that is reversed and the value date.
ASKED_AS = {
    "deposit.made": "deposit organization_id reference amount_micros - - -",
    "adjustment.made": "adjustment organization_id reference amount_micros reason - -",
    "reversal.made": "reversal organization_id reference amount_micros reason - - "
    "deposit value_date",
    "payout.made": "payout organization_id reference amount_micros reason - - - value_date",
    "refund": "refund organization_id reference amount_micros reason transaction_id -",
    "approval_limit.set": "limit - - above_micros - - -",
    "price.set": "price - - amount_micros - - -",
    "organization.price_changed": "price stream - price_micros - - -",
    "organization.monthly_link_fee_changed": "fee stream - monthly_link_fee_micros - - -",
    "operator.registered": "operator - name - - - may",
    "operator.key_rotated": "key - stream - - - -",
    "api_client.registered": "client - - - - - scopes",
    "api_client.secret_rotated": "secret - client_id - - - -",
}
MOVES = {"deposit.made", "adjustment.made", "reversal.made", "payout.made"}
MADE_LATER = {topic for topic, asked in ASKED_AS.items() if asked.split()[0] in WITH_SECRET}


@dataclass
class Operator:
    """What an operator may do, and who has made the present key, directly or by others."""

    may: set[str]
    makers: set[Any]
    at: datetime  # When the present key was made or refused.
    revoked: bool = False
    has_own_key: bool = False

    def can_approve(self) -> bool:
        """Tell whether it is a second operator for what a limit that covers people lets wait."""
        return "approve" in self.may and self.has_own_key and not self.revoked


class People:
    """All operators and payment services, the limit and what waits for a second operator."""

    def __init__(self) -> None:
        self.operators: dict[Any, Operator] = {}
        self.clients: dict[Any, dict[str, Any]] = {}  # As registered, and until when.
        self.limits: list[int | None] = []  # All that were ever set; None: there is none.
        self.open: dict[str, Any] = {}  # Proposals, also of adjustments.
        self.approved: dict[Any, Any] = {}  # What is due in the commit of an approval.
        # From the first limit on that says so: people and prices take two, and sums count.
        self.covers_people = self.had_approver = False
        self.granted: set[str] = set()
        self.sums: dict[Any, int] = {}  # By charge; by actor and day.

    def take(self, event: Event) -> Iterator[str]:
        """Judge an event by what was in force before it; yield what is wrong with it."""
        topic = event.topic
        if topic not in JUDGED:
            return
        if topic == "operator.key_rehashed":  # To use a key needs no right.
            if event.state.get("actor") != f"operator:{event.stream}":
                yield "it is the key of another operator"
            return
        is_approved = self._is_approved(event)
        right = "approve" if is_approved and topic not in MADE_LATER else self._right(event)
        micros = self._counted(event, is_approved=is_approved)
        if right and self.operators and not self._may(event, right):
            yield f"{event.state.get('actor')!r} does this without the right {right}"
        if not is_approved and self._needs_approval(event, micros):
            yield "it is above the approval limit, and no other operator has approved it"
        if not is_approved and self._takes_two(event):
            yield "it takes another operator, and none has approved it"
        yield from self._note(event)

    def _right(self, event: Event) -> str | None:
        topic = event.topic
        if topic == "operator_act.done":
            return ACTS.get(event["act"])
        if topic == "proposal.used":  # What is made with it needs its own.
            return None
        if topic == "proposal.made" and event.state.get("organization_id") is None:
            return "catalogue" if event["kind"] == "price" else "keys"
        return ASKED.get(topic) or SHARED[topic]

    def _may(self, event: Event, right: str) -> bool:
        topic, actor, at = event.topic, event.state.get("actor"), time_of(event["timestamp"])
        own, holder = f"operator:{event.stream}", self.operators.get(actor)
        is_demo = event["request_id"] == "serve-demo" and right != "money"
        if self._needs_no_right(event, holder) or (actor is None and (topic in SHARED or is_demo)):
            return True
        if its := self.clients.get(actor):  # Payment services, and deposits, are of no client.
            other = self.clients.get(f"client:{event.state.get('client_id')}", {})
            is_own = its["organization_id"] == other.get("organization_id")
            may = is_own and BY_CLIENTS.get(event.noun) in its["scopes"]
            return may and at <= its.get("until", at) + BELIEVED
        if topic == "operator.registered" and not any(
            "keys" in each.may and not each.revoked for each in self.operators.values()
        ):
            return True
        known = self.operators.get(own) if topic == "operator.key_rotated" else None
        if known and actor == own:
            return not known.revoked
        if known and not str(actor).startswith("operator:"):  # All keys were lost.
            return "keys" in known.may
        if holder is None or right not in holder.may:
            return False
        return not holder.revoked or topic in SETTLED_LATER

    def _needs_no_right(self, event: Event, holder: Operator | None) -> bool:
        """Tell whether an event only asks, refuses a key to others, or repeats what holds."""
        topic, actor = event.topic, event.state.get("actor")
        if topic == "price.set":  # That of a setting.
            return actor is None and event.version == 2
        if topic == "approval_limit.set":
            return [event["above_micros"]] == self.limits[-1:]
        if topic == "proposal.made":
            return event["kind"] in PEOPLE and not str(actor).startswith("operator:")
        is_person = self.open.get(event.stream, {}).get("kind") in PEOPLE
        may = holder is not None and "keys" in holder.may and not holder.revoked
        return topic == "proposal.rejected" and is_person and may

    def _is_approved(self, event: Event) -> bool:
        """Tell whether another operator has approved just this, in this commit or before it."""
        topic = event.topic
        by_hand = topic.endswith("refunded_by_hand")
        asked_as = ASKED_AS.get("refund" if by_hand else topic, "- - - - - - -").split()
        kind, *names = [*asked_as, "-", "-"][:9]
        known = {**(event["refund"] if by_hand else {}), **event.state, "stream": event.stream}
        owner, name, *facts = (known.get(each) for each in names)
        return bool(self.approved.pop((kind, owner, name), ((), 0))[0] == (*facts,))

    def _counted(self, event: Event, *, is_approved: bool) -> int:
        """Return the amount that counts against the limit: with that of its charge, or the day."""
        key: Any
        topic = event.topic
        if topic.endswith("refunded_by_hand"):
            key, micros = event["transaction_id"], event["refund"]["amount_micros"]
        elif topic in MOVES:
            key = (event.state.get("actor") or event.stream, event["timestamp"][:10])
            micros = 0 if is_approved or key[0] in self.clients else abs(event["amount_micros"])
        else:
            return 0
        self.sums[key] = self.sums.get(key, 0) + whole(micros)
        return self.sums[key] if micros and self.covers_people else whole(micros)

    def _needs_approval(self, event: Event, micros: int) -> bool:
        limit = self.limits[-1] if self.limits else None
        if limit is None or event.topic != "approval_limit.set":
            return limit is not None and micros > limit
        return event["above_micros"] is None or bool(event["above_micros"] > limit)

    def _takes_two(self, event: Event) -> bool:
        """Tell whether a limit lets another operator approve a person, client or price.

        People need nobody before the first operator could approve: with a key of their own.
        """
        topic, own = event.topic, f"operator:{event.stream}"
        if not self.covers_people or self.limits[-1] is None:
            return False
        if topic == "operator.registered":
            return self.had_approver and bool(TAKE_TWO.intersection(event["may"]))
        if topic == "operator.key_rotated":
            may = self.operators[own].may if own in self.operators else set()
            return self.had_approver and event.state.get("actor") != own and bool(TAKE_TWO & may)
        if topic == "api_client.registered":
            return "deposits" in event["scopes"]
        if topic == "api_client.secret_rotated":
            return "deposits" in self.clients[f"client:{event['client_id']}"]["scopes"]
        if topic == "organization.registered":
            return event["price_micros"] is not None or event["monthly_link_fee_micros"] != 0
        if topic == "price.set":
            return event.state.get("actor") is not None or event.version != 2
        return topic in {"organization.price_changed", "organization.monthly_link_fee_changed"}

    def _note(self, event: Event) -> Iterator[str]:
        stream, topic, at = event.stream, event.topic, time_of(event["timestamp"])
        noun, _, what = topic.partition(".")
        if noun == "operator":
            self._note_operator(event, at)
        elif topic == "api_client.registered":
            self.clients[f"client:{event['client_id']}"] = dict(event.state)
        elif topic == "api_client.revoked":
            self.clients[f"client:{event['client_id']}"]["until"] = at
        elif topic == "approval_limit.set":
            self.limits.append(event["above_micros"])
            self.covers_people |= event.state.get("covers") is not None
        elif topic in {"proposal.made", "adjustment.proposed"}:
            self.open[stream] = event.state
        elif noun in {"proposal", "adjustment"} and what != "made":
            yield from self._decide(event)

    def _note_operator(self, event: Event, at: datetime) -> None:
        actor, own = event.state.get("actor"), f"operator:{event.stream}"
        maker = self.operators.get(actor)
        makers = {actor, *(maker.makers if maker else ())} if actor != own else set()
        if event.topic == "operator.registered":
            self.operators[own] = Operator(set(event["may"]), makers, at)
        elif event.topic == "operator.key_rotated":
            holder = self.operators[own]
            holder.makers, holder.has_own_key = makers, actor == own
            self.had_approver |= holder.can_approve()
        else:
            self.operators[own].revoked = True
        self.operators[own].at = at

    def _decide(self, event: Event) -> Iterator[str]:
        stream, topic, actor = event.stream, event.topic, event.state.get("actor")
        made, what = self.open.get(stream), topic.partition(".")[2]
        is_granted = stream in self.granted
        if made is None or (is_granted and what in {"approved", "granted"}):
            yield "it decides what nobody has proposed, or what was decided"
            return
        if what in {"approved", "granted"}:
            if not self._are_two(made.get("actor"), actor):
                yield "it is not approved by another operator, with a key of their own"
            names = ("organization_id", "reference", "amount_micros", "reason", "transaction_id")
            of_before = topic == "adjustment.approved"
            if of_before and any(event[name] != made[name] for name in names):
                yield "it approves something else than was proposed"
            if (what == "granted") != (made.get("kind") in WITH_SECRET):
                yield "it shows a secret to another than who has asked for it"
        elif what == "used":
            others = [each for name, each in self.operators.items() if name not in besides(made)]
            since = [time_of(made["timestamp"]), *(e.at for e in others if "approve" in e.may)]
            is_alone = time_of(event["timestamp"]) - max(since) >= ALONE_AFTER
            is_alone &= made["kind"] in PEOPLE and not any(each.can_approve() for each in others)
            if actor != made.get("actor") or not (is_granted or is_alone):
                yield "it is not approved by another operator, with a key of their own"
        if what == "granted":
            self.granted.add(stream)
            return
        del self.open[stream]
        if topic in {"proposal.approved", "proposal.used"}:
            name = made.get("reference") or made.get("subject")
            facts = (made.get("amount_micros"), made.get("reason"), made.get("transaction_id"))
            more = (made.get(each) for each in ("may", "deposit", "value_date"))
            due = (*facts, *more), event.position
            self.approved[made["kind"], made.get("organization_id"), name] = due

    def _are_two(self, proposer: Any, approver: Any) -> bool:
        holder, other = self.operators.get(approver), self.operators.get(proposer)
        if self.covers_people:
            is_void = other is not None and other.revoked
            return holder is not None and holder.has_own_key and holder is not other and not is_void
        knows = bool(self.limits) and holder is not None and proposer in holder.makers
        return approver != proposer and not knows and str(approver).startswith("operator:")

    def end(self) -> Iterator[tuple[int, str]]:
        """Yield what was approved and never done, with its position."""
        for _, position in self.approved.values():
            yield position, "this was approved and not done"


def besides(made: Any) -> set[Any]:
    """Return who is no other operator: who has proposed it, or is locked out and has no key."""
    actor = made.get("actor")
    is_lost = not str(actor).startswith("operator:")
    return {actor, f"operator:{made.get('subject')}"} if is_lost else {actor}


# What is in force: prices, and the fees of links that are active. And whether a month was over.

CONTRADICTS = timedelta(hours=1)  # What is behind a close and dated so long before it.
DECIDED = timedelta(minutes=5)  # A price was taken so long before its event, at most.
TIME = re.compile(r'\{"timestamp": ?"([0-9T:.-]{19,})Z"')
# What a link or an organization is after an event; "": the event says it.
STATUS = {"link.activated": "active", "link.reactivated": "active", "link.ended": "ended"}
STATUS |= {"link.suspended": "suspended", "link.status_seen": "", "link.status_kept": ""}
STATUS |= {"organization.activated": "active", "organization.suspended": "suspended"}
STATUS |= {"organization.deactivated": "inactive"}
Price = Optional[int]  # None: that of all; of all, one that no event tells.


@dataclass
class Account:
    """What an organization pays, and since when; times are as they are written, without the Z."""

    prices: list[tuple[str, Price]]
    terms: list[tuple[str, int, str]]  # Its monthly fee and its status, in the order of time.
    links: dict[str, list[list[str]]] = field(default_factory=dict)  # Active from and until.
    due: str = ""  # The month of its newest fee.

    def change(self, at: str, fee: int | None = None, status: str = "") -> None:
        """Note another fee or status; what is dated before the change before it counts with it."""
        last, old_fee, old_status = self.terms[-1]
        now = (old_fee if fee is None else fee, status or old_status)
        self.terms.append((max(at, last), *now))

    def owes(self, month: str) -> tuple[int, set[str]]:
        """Return the fee as a month begins, and the links that are active then."""
        begin = f"{month}-01T00:00:00"
        fee, status = ([(0, "")] + [each[1:] for each in self.terms if each[0] <= begin])[-1]
        if not fee or status != "active":
            return 0, set()
        links = {
            link
            for link, spans in self.links.items()
            if any(since <= begin and (not until or until > begin) for since, until in spans)
        }
        return (fee, links) if links else (0, links)


class Terms:
    """Prices and fees as the log gives them; give it each event in order."""

    def __init__(self) -> None:
        self.accounts: dict[str, Account] = {}
        self.prices: list[tuple[str, Price]] = [("", None)]  # Of all.
        self.closed = self.was_over_at = ""  # The newest month, and a time that has passed then.
        self.owing: dict[str, list[str]] = {}  # Who owed a fee when the month before was closed.
        self.missing: dict[tuple[str, str], int] = {}

    def take(self, event: Event) -> Iterator[str]:
        """Judge an event by what was in force before it; yield what is wrong with it."""
        topic, found = event.topic, TIME.match(event.text)
        if found and topic not in IN_FORCE and found[1] >= self.was_over_at:
            return
        at, owner = event["timestamp"].rstrip("Z"), event.state.get("organization_id")
        if not found:
            time_of(at)
        if at < self.was_over_at:
            self.was_over_at = ""  # Others follow, and say no more than this one.
            yield f"it is dated {at}, so month {self.closed} was closed before its end"
        if topic == "organization.registered":
            terms = [(at, event["monthly_link_fee_micros"], "active")]
            self.accounts[event.stream] = Account([(at, event["price_micros"])], terms)
        elif topic == "price.set":
            self.prices.append((at, event["amount_micros"]))
        elif topic == "month.closed":
            yield from self._close(at, event["month"], event.position)
        elif topic.startswith("organization.") and topic in IN_FORCE:
            self._change(self.accounts[event.stream], event, at)
        elif topic in IN_FORCE and owner in self.accounts:
            yield from self._judge(self.accounts[owner], event, at)

    def _change(self, account: Account, event: Event, at: str) -> None:
        if event.topic == "organization.price_changed":
            account.prices.append((at, event["price_micros"]))
        else:
            fee, status = event.state.get("monthly_link_fee_micros"), STATUS.get(event.topic, "")
            account.change(at, fee, status)

    def _judge(self, account: Account, event: Event, at: str) -> Iterator[str]:
        topic = event.topic
        if topic == "number_lookup.answered":
            yield from self._price(account, at, micros_of(event["price"]))
        elif topic == "bulk_job.created":
            yield from self._price(account, at, event["item_price_micros"])
        elif topic == "monthly_fee.due":
            yield from self._fee(account, event, at)
        else:
            spans = account.links.setdefault(event.stream, [])
            is_active, lasts = (STATUS[topic] or event["status"]) == "active", spans[-1:]
            if is_active and not (lasts and not lasts[0][1]):
                spans.append([at, ""])
            elif not is_active and lasts and not lasts[0][1]:
                lasts[0][1] = at

    def _price(self, account: Account, at: str, micros: int) -> Iterator[str]:
        """Check what a lookup costs; a request may have begun before its price was changed."""
        own, of_all = account.prices[-1][1], self.prices[-1][1]
        if (of_all if own is None else own) in {micros, None}:
            return
        fitting = {
            of_all if own is None else own
            for own in lately(account.prices, at)
            for of_all in lately(self.prices, at)
        }
        if not fitting.intersection({micros, None}):
            told = " or ".join(sorted(amount(each or 0) for each in fitting))
            yield f"it costs {amount(micros)} for each lookup, where {told} was in force"

    def _fee(self, account: Account, event: Event, at: str) -> Iterator[str]:
        month = account.due = month_of(event["month"])
        fee, links = account.owes(month)
        if at[:7] < month:
            yield "it falls due before its month"
        if event["fee_micros"] != fee or {*event["link_ids"]} != links:
            yield f"as {month} began, {amount(fee)} were due for each of {len(links)} other links"
        self.missing.pop((event["organization_id"], month), None)
        if event["organization_id"] in self.owing.get(month, ()):
            self.owing[month].remove(event["organization_id"])

    def _close(self, at: str, month: str, position: int) -> Iterator[str]:
        """Note when a month was over, who owes a fee of the next, and who has never owed this."""
        begins = following(month_of(month))
        if self.closed and month != following(self.closed):
            yield f"month {month} is closed after {self.closed}"
        if at < begins:
            yield f"month {month} is closed before its end"
        earlier = (time_of(at) - CONTRADICTS).isoformat()
        self.closed, self.was_over_at = month, min(f"{begins}-01T00:00:00", earlier)
        for owner in self.owing.pop(month, ()):
            if self.accounts[owner].owes(month)[0]:  # As it was known at both closes.
                self.missing[owner, month] = position
        if at[:7] == begins:
            every = self.accounts.items()
            self.owing[begins] = [of for of, it in every if it.due < begins and it.owes(begins)[0]]

    def end(self) -> Iterator[tuple[int, str]]:
        """Yield the fees of closed months that nobody was asked for."""
        for (owner, month), position in self.missing.items():
            yield position, f"{owner} owes a fee for {month}, which has not fallen due"


IN_FORCE = {*STATUS, "organization.registered", "organization.price_changed", "price.set"}
IN_FORCE |= {"organization.monthly_link_fee_changed", "number_lookup.answered"}
IN_FORCE |= {"bulk_job.created", "monthly_fee.due", "month.closed"}


def lately(prices: list[tuple[str, Price]], at: str) -> set[Price]:
    """Return the newest price, and those that ended about when an event is dated."""
    found, now = {prices[-1][1]}, time_of(at)
    for (_, price), (ended, _) in zip(prices, prices[1:]):
        if abs(time_of(ended) - now) <= DECIDED:
            found.add(price)
    return found


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
        if text[10:11] == "T":
            return datetime.fromisoformat(text[:19])
    raise Unreadable(f"{text} is no time")


def month_of(text: str) -> str:
    """Return a month that is written as it should be."""
    if re.fullmatch(r"[0-9]{4}-(0[1-9]|1[0-2])", text) is None:
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


# The rules about money: each is a function of one event, and of what was before it.

Rule = Callable[[Books, Event], Iterator[str]]
RULES: dict[str, list[Rule]] = {}
NAMESPACE = uuid.UUID("6f1c1f0e-6d0f-5a39-9b6e-2f5d3c8b7a10")
# The first events of streams whose id follows from facts: a kind, and the fields that follow it.
STREAMS = {
    "ledger.opened": ("ledger",),
    "wallet.opened": ("wallet", "organization_id"),
    "deposit.made": ("deposit", "organization_id", "reference"),
    "deposit.played": ("sandbox_deposit", "organization_id", "reference"),
    "adjustment.made": ("adjustment", "organization_id", "reference"),
    "adjustment.proposed": ("adjustment", "organization_id", "reference"),
    "reversal.made": ("reversal", "organization_id", "deposit"),
    "payout.made": ("payout", "organization_id", "reference"),
    "monthly_fee.due": ("monthly_fee", "organization_id", "month"),
    "month.closed": ("month", "month"),
    "settlement.booked": ("settlement", "settles", "provider", "reference", "number"),
    "log.discontinued": ("log.discontinued", "last_position"),
    "log_origin.fixed": ("log_origin",),
    "esim.registered": ("esim", "network", "iccid"),
    "lost_order.opened": ("lost_order", "link_id"),
    "provider.registered": ("provider", "name"),
    "api_client.registered": ("api_client", "client_id"),
    "webhook_list.opened": ("webhook_list", "organization_id"),
    "approval_limit.opened": ("approval_limit",),
    "price.opened": ("price",),
}
FIRST = {*STREAMS, "link.requested", "link.imported", "plan_change.requested"}
FIRST |= {"number_lookup.answered", "bulk_job.created", "proposal.made"}
# What charges and refunds call the thing that they are for, by the kind of its stream.
TYPES = {each: each for each in ("link", "plan_change", "monthly_fee")}
TYPES |= {"number_lookup": "lookup", "bulk_job": "job"}


def rule(*topics: str) -> Callable[[Rule], Rule]:
    """Let a function check the events of these topics; it yields what is wrong."""

    def enter(function: Rule) -> Rule:
        for topic in topics:
            RULES.setdefault(topic, []).append(function)
        return function

    return enter


def derived(kind: str, *parts: Any) -> str:
    """Return the id that follows from a reason: the UUIDv5 of a JSON array of strings."""
    name = ", ".join([encode_basestring(str(each)) for each in (kind, *parts)])
    return str(uuid.uuid5(NAMESPACE, f"[{name}]"))


def named(has: str, kind: str, *parts: Any) -> Iterator[str]:
    """Check an id that follows from facts."""
    follows = derived(kind, *parts)
    if has != follows:
        yield f"it names {has} where {follows} follows from its facts"


def whole(value: Any) -> int:
    """Return a number that is whole; raises TypeError for any other value."""
    if type(value) is not int:
        raise TypeError(value)
    return value


def micros_of(price: Any) -> int:
    """Return the amount of a price or refund, of which there may be none."""
    return 0 if price is None else whole(price["amount_micros"])


def failure(event: Event) -> str:
    """Return the reason of the refunds of what has failed at the network."""
    is_incomplete = event["code"] == "PROVISIONING_FAILED"
    return "provisioning_failed" if is_incomplete else "provisioning_error"


@rule(*STREAMS)
def an_id_of_a_stream_follows_from_its_facts(_: Books, event: Event) -> Iterator[str]:
    kind, *names = STREAMS[event.topic]
    yield from named(event.stream, kind, *(event[name] for name in names))


@rule("ledger.opened", "wallet.opened", "price.set")
def all_wallets_have_the_currency_of_the_log(books: Books, event: Event) -> Iterator[str]:
    if event.topic == "ledger.opened" and not books.currency:
        books.is_recent = True
    if event.topic != "price.set":
        books.currency = books.currency or event["currency"]
    if books.currency and event["currency"] != books.currency:
        yield f"its currency is not {books.currency}, that of the log"


@rule("wallet.spending_limited", *ENTRIES)
def a_limit_is_stated_and_only_a_fee_goes_beyond_it(books: Books, event: Event) -> Iterator[str]:
    wallet, spending = books.wallets[event.stream], event.state.get("spending")
    month = max(wallet.spending_month, month_of(event["timestamp"][:7]))
    spent = wallet.spent if month == wallet.spending_month else 0
    if event.topic == "wallet.spending_limited":
        wallet.limit = None if spending is None else whole(spending["limit_micros"])
        if (event["balance_micros"], event["sequence"]) != (wallet.balance, wallet.sequence):
            yield "it moves the wallet whose limit it sets"
    elif event.topic in {"wallet.charged", "wallet.refunded"}:
        spent += event["amount_micros"] * (1 if event.topic == "wallet.charged" else -1)
    wallet.spending_month, wallet.spent = month, spent
    if wallet.limit is None and spending is None:
        return
    if spending != {"limit_micros": wallet.limit, "month": month, "spent_micros": spent}:
        yield "it states another limit, or spending, than the wallet has"
    is_chosen = event.topic == "wallet.charged" and event["kind"] != "monthly_link_fee"
    if is_chosen and wallet.limit is not None and spent > wallet.limit:
        yield "it spends more than the limit"


@rule(*ENTRIES)
def an_entry_has_its_reason(books: Books, event: Event) -> Iterator[str]:
    what, of, transaction = ENTRIES[event.topic], event["reference"], event["transaction_id"]
    owner, micros = event["organization_id"], event["amount_micros"]
    due = books.due.get(transaction)
    if what == "adjustment" and of == {"type": what, "id": transaction} and not books.is_recent:
        return  # Of the first releases, in a log that is old enough.
    if what == "claim":
        return  # See `a_claim_is_what_a_reversal_lacks_and_is_settled_first`.
    more = {"charged": "kind currency", "refunded": "charge_id"}
    more |= dict.fromkeys(("adjustment", "reversal", "payout"), "description")
    facts = (event[name] for name in more.get(what, "").split())
    yield from books.keep(transaction, (what, owner, micros, of["type"], of["id"], *facts))
    if what == "charged":
        link = None if due is None else due.link
        charge = Charge(owner, of["type"], of["id"], micros, micros)
        if not books.memory.add(transaction, charge, link):
            yield "it takes the same charge again"
    elif what == "refunded":
        yield from _refund_within_its_charge(books, event, due)
    elif of["type"] == "deposit":  # Its payer may take it back.
        books.memory.add(transaction, Charge(owner, "deposit", of["id"], micros, micros))


def _refund_within_its_charge(books: Books, event: Event, due: Due | None) -> Iterator[str]:
    charge_id, micros = event["charge_id"], event["amount_micros"]
    if due is not None and event.state.get("reason", due.reason) != due.reason:
        yield f"its reason is not {due.reason}"
    charge = books.memory.charge(charge_id)
    given = Charge(event["organization_id"], "refund", charge_id, micros, 0)
    is_new = books.memory.add(event["transaction_id"], given)
    if charge is None or micros > charge.left or not is_new:
        yield f"it was given before, or exceeds what is left of {charge_id}"
    books.memory.give_back(charge_id, micros)


@rule("wallet.spending_limited", *ENTRIES)
def a_claim_is_what_a_reversal_lacks_and_is_settled_first(
    books: Books, event: Event
) -> Iterator[str]:
    wallet = books.wallets[event.stream]
    if event.topic in ENTRIES:
        yield from _claim(books, wallet, event)
    if event.state.get("claim_micros", 0) != wallet.claim:
        yield f"it states another claim than {amount(wallet.claim)}"


def _claim(books: Books, wallet: Wallet, event: Event) -> Iterator[str]:
    what, micros, of = ENTRIES[event.topic], event["amount_micros"], event["reference"]
    transaction, key = event["transaction_id"], ("claim", event.stream)
    due = books.due.pop(key, None)
    is_it = due is None
    if what == "claim":
        wallet.claim += micros
        if micros < 0:
            is_it = due is not None and due.facts == (what, transaction, of, micros)
        else:  # All that is lacking, so nothing is left.
            yield from books.expect(event, key, ("reversal", transaction, of, 0))
    else:
        if due is not None:
            claim = derived("claim", transaction)
            is_it = due.facts == (what, claim, of, event["balance_micros"])
        settled = min(wallet.claim, micros)
        if settled > 0 and what not in {"reversal", "payout", "charged"}:
            settles = derived("claim_settlement", transaction)
            yield from books.expect(event, key, ("claim", settles, of, -settled))
    if not is_it:
        yield "a claim is opened or settled otherwise than the entry beside it asks for"


@rule("reversal.made")
def a_deposit_is_reversed_once_and_by_no_more_than_it_was(
    books: Books, event: Event
) -> Iterator[str]:
    deposit = derived("deposit", event["organization_id"], event["deposit"])
    paid_in = derived("transaction", deposit)
    charge = books.memory.charge(paid_in)
    if charge is None or charge.type != "deposit" or event["amount_micros"] > charge.left:
        yield "it reverses more than the deposit was, or what was reversed or never paid in"
    else:
        books.memory.give_back(paid_in, charge.left)


@rule("settlement.booked")
def a_settlement_is_of_a_whole_entry_or_invoice_and_by_turns_taken_back(
    books: Books, event: Event
) -> Iterator[str]:
    micros, number, memory = whole(event["amount_micros"]), whole(event["number"]), books.memory
    settles, provider, owner = (event[it] for it in ("settles", "provider", "organization_id"))
    before = derived("settlement", settles, provider, event["reference"], number - 1)
    if number and memory.charge(f"bank {before}") is None:
        yield "it is counted as if it had been booked before"
    facts = owner or f"provider {provider}", event["currency"], event["reference"]
    due, is_of_one = before if number % 2 else settles, (owner is None) is not (provider is None)
    known = memory.charge(f"bank {due}") == Charge(*facts, micros, micros)
    if not is_of_one or not (known if due else provider):
        yield "it settles, or takes back, what is not there, or another amount"
    for each in (due, settles)[: 1 + number % 2]:
        memory.give_back(f"bank {each}", micros)
    memory.add(f"bank {event.stream}", Charge(*facts, -micros, 0 if number % 2 else -micros))


@rule("deposit.made", "deposit.played", "adjustment.made", "adjustment.approved")
@rule("reversal.made", "payout.made")
def a_deposit_or_adjustment_is_booked(books: Books, event: Event) -> Iterator[str]:
    owner, micros = event["organization_id"], whole(event["amount_micros"])
    yield from named(event["transaction_id"], "transaction", event.stream)
    kind = "sandbox_deposit" if event.topic == "deposit.played" else event.noun
    facts = (event.noun, owner, micros, kind, event["reference"])
    reason = () if event.noun == "deposit" else (event["reason"],)
    yield from books.expect(event, event["transaction_id"], (*facts, *reason))


@rule("proposal.made")
def a_proposal_waits_in_the_stream_of_its_facts(_: Books, event: Event) -> Iterator[str]:
    kind, owner, reference = (event.state.get(e) for e in ("kind", "organization_id", "reference"))
    if kind in {"deposit", "adjustment", "payout"}:
        yield from named(event.stream, "proposal", derived(kind, owner, reference))
    elif kind == "reversal":
        reversal = derived(kind, owner, event["deposit"])
        yield from named(event.stream, "proposal", reversal, reference)
    elif kind == "refund":
        yield from named(event.stream, "proposal", event["transaction_id"], event["reference"])


@rule("number_lookup.answered", "bulk_job.created")
def a_lookup_or_a_job_is_charged_at_its_beginning(books: Books, event: Event) -> Iterator[str]:
    kind = "lookup"
    if event.topic == "bulk_job.created":
        kind, count = "bulk_lookup", whole(event["total_count"])
        if count > 1_000_000:  # More than any release takes; each is remembered.
            raise ValueError(count)
        books.open[event.stream] = event, {*range(count)}
        if micros_of(event["price"]) != count * whole(event["item_price_micros"]):
            yield "it costs another sum than its items"
    yield from books.charge(event, event["price"], kind)


@rule(
    "bulk_job.items_completed", "bulk_job.items_failed", "bulk_job.cancelled", "bulk_job.finished"
)
def a_job_keeps_what_its_answers_cost(books: Books, event: Event) -> Iterator[str]:
    if event.stream not in books.open:
        yield "its job has not begun, or has ended"
        return
    created, still_open = books.open[event.stream]
    is_cancelled = event.topic == "bulk_job.cancelled"
    items = sorted(still_open) if is_cancelled else event.state.get("indexes", [])
    if is_cancelled and not whole(event["count"]) == len(items) > 0:
        yield "it cancels other items than the open ones"
    if len({*items}) != len(items) or not still_open.issuperset(items):
        yield "it ends an item twice, or one that the job does not have"
    still_open.difference_update(items)
    refund, price = event.state.get("refund"), created["price"]
    if "refund" in event.state and micros_of(refund) != len(items) * created["item_price_micros"]:
        yield "it gives another sum back than its items cost"
    if refund is not None and price is not None:
        reason = "cancelled" if is_cancelled else "lookup_unavailable"
        follows = ("refund", event.stream, min(items, default=0))
        yield from books.refund(event, refund, price["transaction_id"], reason, *follows)
    if event.topic == "bulk_job.finished" and still_open:
        yield "it finishes with open items"
    if is_cancelled or event.topic == "bulk_job.finished":
        del books.open[event.stream]


@rule("link.requested", "link.imported", "link.esim_reserved", "link.order_requested")
def a_link_is_charged_once_with_its_esim_or_order(books: Books, event: Event) -> Iterator[str]:
    if event.topic in FIRST:
        books.open[event.stream] = event
        if micros_of(event["price"]) != whole(event["plan"]["price_micros"]):
            yield "it costs another sum than its plan"
        if event["price"] is not None:
            yield from named(event["price"]["transaction_id"], "transaction", event.stream)
        if event.topic == "link.imported":
            network = event["plan"].get("network") or "simulated"
            yield from named(event.stream, "imported_link", network, event["iccid"])
        return
    link, is_taken = books.open.get(event.stream), event.stream in books.taken
    if link is None or (is_taken and event.topic == "link.esim_reserved"):
        yield "its link was not requested, has an eSIM, or is no longer being made"
    elif not is_taken:
        books.taken.add(event.stream)
        yield from books.charge(event, link["price"], "activation", link=event.stream)


@rule("link.activated", "link.provisioning_failed")
def an_active_link_is_paid_for_and_a_failed_one_is_not(books: Books, event: Event) -> Iterator[str]:
    link = books.open.pop(event.stream, None)
    books.taken.discard(event.stream)
    if link is None:
        yield "its link was not requested, or is no longer being made"
        return
    price, charge = link["price"], None
    if price is not None:
        charge = books.memory.charge(price["transaction_id"])
    charged = 0 if charge is None else charge.micros
    if event.topic == "link.provisioning_failed":
        refund = event["refund"]
        if micros_of(refund) != charged:
            yield "it gives another sum back than was charged"
        if refund is not None and price is not None:
            follows = (price["transaction_id"], failure(event), "refund", event.stream)
            yield from books.refund(event, refund, *follows)
        return
    plans = [event.state, *(event.state.get("more") or [])]
    for index, each in enumerate(plans):
        yield from named(each["activation_id"], "activation", event.stream, index)
    if event["plan"] != link["plan"] or charged != micros_of(price):
        yield "it has another plan than was asked for, or was not paid for"
    if link.topic == "link.requested" and (len(plans) > 1 or "bought_at" in event.state):
        yield "it begins with plans that nobody has bought"


@rule("link.end_requested", "link.end_kept", "link.ended")
def a_cancelled_link_gives_back_what_is_left(books: Books, event: Event) -> Iterator[str]:
    if event.topic == "link.end_requested":
        books.ends[event.stream] = event["kind"]
        return
    is_cancelled = books.ends.pop(event.stream, None) == "cancel"
    if event.topic == "link.end_kept":
        return
    if event["reason"] != ("cancelled" if is_cancelled else "ended"):
        yield "it ends for another reason than was intended"
    given = sorted((each["charge_id"], each["amount_micros"]) for each in event["refunds"])
    if given != (books.memory.left_of(event.stream) if is_cancelled else []):
        yield "it gives another sum back than was left"
    of_changes: dict[str, list[Any]] = {}
    for each in event["refunds"]:
        charge_id = each["charge_id"]
        charge = books.memory.charge(charge_id)
        yield from books.refund(event, each, charge_id, "cancelled", "cancellation", charge_id)
        if charge is not None and charge.type == "plan_change":
            of_changes.setdefault(charge.id, []).append(each)
    for change_id, refunds in of_changes.items():
        yield from books.expect(event, ("returned", change_id), refunds)


@rule("plan_change.returned", "link.plan_added")
def a_link_and_its_changes_say_the_same(books: Books, event: Event) -> Iterator[str]:
    if event.topic == "plan_change.returned":
        yield from books.keep(("returned", event.stream), event["refunds"])
    else:
        key = ("added", event["change_id"], event["activation_id"])
        yield from books.keep(key, (event.stream, event["plan"]))


@rule("plan_change.requested")
def a_change_costs_what_its_plans_cost(books: Books, event: Event) -> Iterator[str]:
    books.open[event.stream] = event, [*event["removals"], *event["additions"]], []
    for index, each in enumerate(event["additions"]):
        yield from named(each["activation_id"], "activation", event.stream, index)
        if micros_of(each["price"]) != whole(each["plan"]["price_micros"]):
            yield "it costs another sum than its plans"
        of = {"of": each["activation_id"], "link": event["link_id"]}
        yield from books.charge(event, each["price"], "topup", **of)


@rule("plan_change.plan_removal_done", "plan_change.plan_addition_done")
@rule("plan_change.failed", "plan_change.finished")
def a_change_keeps_what_it_added(books: Books, event: Event) -> Iterator[str]:
    if event.stream not in books.open:
        yield "its change was not requested, or has finished"
        return
    requested, left, failed = books.open[event.stream]
    steps = len(requested["removals"]) + len(requested["additions"])
    is_present = event.state.get("index") == steps - len(left)
    if event.topic == "plan_change.finished":
        if left and not failed:
            yield "it finishes with open steps"
        del books.open[event.stream]
    elif not left or not is_present:
        yield "it does, or fails at, a step that is not the next one"
    elif event.topic == "plan_change.failed":
        lost = [each for each in left if each.get("price") is not None]
        given = [each["amount_micros"] for each in event["refunds"]]
        if failed or given != [each["price"]["amount_micros"] for each in lost]:
            yield "it fails twice, or gives another sum back"
        failed.append(event)
        for refund, step in zip(event["refunds"], lost):
            follows = (failure(event), "refund", step["activation_id"])
            yield from books.refund(event, refund, step["price"]["transaction_id"], *follows)
    else:
        step, is_addition = left.pop(0), event.topic == "plan_change.plan_addition_done"
        if is_addition != ("price" in step) or (is_addition and failed):
            yield "it does another step than the next one, or adds after it has failed"
        if is_addition:
            key = ("added", event.stream, step["activation_id"])
            yield from books.expect(event, key, (event["link_id"], step["plan"]))


@rule("monthly_fee.due", "monthly_fee.charged")
def a_fee_is_that_of_its_links_and_charged_once(books: Books, event: Event) -> Iterator[str]:
    if event.topic == "monthly_fee.due":
        books.open[event.stream], links = event, event["link_ids"]
        is_sum = micros_of(event["price"]) == len(links) * whole(event["fee_micros"])
        if not is_sum or len({*links}) != len(links):
            yield "it is another sum than that of its links, or counts one twice"
        yield from named(event["price"]["transaction_id"], "transaction", event.stream)
        return
    due = books.open.pop(event.stream, None)
    if due is None or any(event[e] != due[e] for e in ("organization_id", "month", "price")):
        yield "it is charged before it is due, twice, or otherwise"
    yield from books.charge(event, event["price"], "monthly_link_fee")


@rule(*(f"{noun}.refunded_by_hand" for noun in TYPES))
def a_refund_by_hand_is_of_a_charge_of_its_stream(books: Books, event: Event) -> Iterator[str]:
    charge_id = event["transaction_id"]
    charge = books.memory.charge(charge_id)
    if charge is None or (charge.type, charge.id) != (TYPES[event.noun], event.stream):
        yield "it gives back a charge that is not of its stream"
    if event.stream in books.open:
        yield "it gives back what an end may still give back"
    follows = ("by_hand", "refund_by_hand", charge_id, event["reference"])
    yield from books.refund(event, event["refund"], charge_id, *follows)


# Rules that need no event before: they hold in a part of a log, too.
ALONE = {an_id_of_a_stream_follows_from_its_facts, a_proposal_waits_in_the_stream_of_its_facts}


class Judge:
    """Every rule about a log, of which only a few hold in a part; give it each event in order."""

    def __init__(self, *, is_part: bool = False) -> None:
        self.memory, self.people, self.terms = Memory(), People(), Terms()
        self.books, self.is_part = Books(self.memory), is_part

    def take(self, event: Event) -> list[str]:
        """Judge an event by those before it; return what is wrong with it."""
        due, wrong = self.memory.expected(event.stream, event.version), []
        if event.version != due and not (due is None and self.is_part):
            wrong.append(f"version {due or 1} of its stream is missing, {event.version} is here")
        try:
            wrong.extend(self.books.take(event, is_part=self.is_part))
            if not self.is_part:  # Before a part operators may have been made.
                wrong.extend(self.people.take(event))
                wrong.extend(self.terms.take(event))
        except (ArithmeticError, AttributeError, KeyError, RecursionError, TypeError, ValueError):
            wrong.append(f"a {event.topic} that makes no sense")
        return wrong


# The check of an export, event by event.


class Check:
    """Takes every line in order; keeps the verdicts."""

    def __init__(self, checkpoints: list[Checkpoint]) -> None:
        self.tree, self.judge = Tree(), Judge()
        self.position = self.events = self.failures = 0
        self.verdicts: list[str] = []
        self.may_go_on = False  # The last file is a part of a log.
        self._notes: dict[int, list[Checkpoint]] = {}  # By the size that they sign.
        for each in checkpoints:
            self._notes.setdefault(each.size, []).append(each)
        self._held = self._covered = 0  # Position and size of the last checkpoint that holds.
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
        self.may_go_on = before is not None
        if before is not None and before.size and not self.tree.size:
            self.tree, self.judge.is_part, self._covered = before, True, before.size
            told = f"trusted  the root before {name}: {before.size} events, {before.root().hex()}"
            self.verdicts.append(f"{told}; so of money only balances and sequences are checked")
            for size in [size for size in self._notes if size < before.size]:
                for note in self._notes.pop(size):
                    self.verdicts.append(f"skipped  {note.name}: its {size} events lie before")
        elif before is not None and before != self.tree:
            self.fail(f"{name}: is no continuation of the events before it")
        self._compare()

    def take(self, line: dict[str, Any]) -> None:
        """Check one event and add its leaf."""
        position, leaf = line["position"], leaf_of(line)
        while self._signed and self._signed[0] < position:
            self._last_up_to[self._signed.pop(0)] = self.position
        wrong = []
        if position <= self.position:
            wrong.append(f"does not rise above {self.position}")
        if leaf.hex() != line["leaf"]:
            wrong.append("the leaf is not that of the event")
        event = Event(position, line["stream"], line["version"], line["topic"], line["state"])
        wrong.extend(self.judge.take(event))
        if event.topic == "log.discontinued":
            with suppress(ValueError, KeyError, TypeError):  # The judge has told it.
                lost = int(event["last_position"]), time_of(event["timestamp"])
                self._losses.append((position, *lost))
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
                self._held, self._covered = self.position, self.tree.size
                self.verdicts.append(f"ok       {note.name}: {note.size} events, {note.signer}")

    def end(self) -> None:
        """Say what is missing, which checkpoints do not hold, and what was checked."""
        for position, reason in self.judge.books.open_ends():
            if self.may_go_on:  # The part may end within a commit.
                self.verdicts.append(f"open     position {position}: {reason} in this part")
            else:
                self.fail(f"position {position}: {reason}")
        self._others += [(note, self._held) for notes in self._notes.values() for note in notes]
        for position, reason in [*self.judge.people.end(), *self.judge.terms.end()]:
            self.fail(f"position {position}: {reason}")
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
        if self.tree.size > self._covered:
            behind = f"behind position {self._held}, up to {self.position}"
            told = f"{self.tree.size - self._covered} events {behind}"
            self.verdicts.append(f"open     {told}: no given checkpoint covers these")
        word, root = "FAILED" if self.failures else "ok", self.tree.root().hex()
        told = f"{self.events} events up to position {self.position}"
        self.verdicts.append(f"{word:8} {told}; root of {self.tree.size} events: {root}")


def read_lines(file: BinaryIO, name: str) -> Iterator[dict[str, Any]]:
    """Read the lines of an export; raises Unreadable for one that is none."""
    number, text = 1, file.readline(LINE_BYTES_MAX)
    while text:
        line: Any = None
        with suppress(ValueError, RecursionError):
            line = json.loads(text) if text.endswith(b"\n") else None
        kinds = {key: type(value) for key, value in line.items()} if isinstance(line, dict) else {}
        if kinds != FIELDS or not STREAM.fullmatch(line["stream"]) or line["version"] >> 63 > 0:
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
                    name = printable(path.name)
                    print(f"\r{name}: {checked.events:,} events", end="", file=sys.stderr)
    return checked


def compare(checked: Check, statements: list[tuple[str, dict[str, Any]]], out: Path | None) -> None:
    """Compare the statements that somebody was given with those of the events; write the latter."""
    if checked.judge.is_part:
        raise Unreadable("statements need the log from its first event on")
    every = checked.judge.books.statements()
    computed = {(each["organization"], each["month"]): each for each in every}
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


def printable(text: str) -> str:
    """Return a line that a terminal only shows, whatever a file has put into it."""
    escaped = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return "".join(escaped).encode("ascii", "backslashreplace").decode()


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
        keys = [*map(read_key, given.key)]
        statements = [(path.name, read_statement(path)) for path in given.statement]
        notes = [(path.name, path.read_text("utf-8", "replace")) for path in given.checkpoint]
        notes += [(of, str(it["checkpoint"])) for of, it in statements if it.get("checkpoint")]
        checked = check(given.exports, [read_checkpoint(*each, keys) for each in notes])
        if given.statement or given.statements:
            compare(checked, statements, given.statements)
    except (Unreadable, OSError, sqlite3.Error) as error:
        print(f"Error: {printable(str(error))}", file=sys.stderr)
        return 2
    checked.end()
    print("\n".join(map(printable, checked.verdicts)))
    return 1 if checked.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
