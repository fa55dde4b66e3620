"""What webhooks of any type tell: each message once, whether or not an endpoint wants it.

Messages about entries of wallets are not here: they are made from the transactions.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from msgspec import Struct
from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Integer,
    Select,
    String,
    Table,
    Uuid,
    bindparam,
    or_,
    select,
    union_all,
)

from domain.accounts.organization import Organization
from domain.accounts.wallet import Wallet, wallet_id
from domain.ids import as_id
from domain.log.log import Recorded
from domain.webhooks.endpoint import WebhookRequest
from domain.webhooks.messages import (
    OF_ENTRIES,
    TYPES,
    Entry,
    EventContext,
    body_of_entry,
    kinds_of,
    messages_of,
)
from projections.engine.database import Database
from projections.engine.hot_reads import HotStatement
from projections.engine.inserting import insert_many, upsert
from projections.engine.read_model import Batch, ReadModel
from projections.engine.shape import Stored


class MessageRow(Struct, frozen=True):
    """One message, known by its position and type.

    `about` is the stream in whose order it is sent; the next two are its event.
    """

    position: int
    organization_id: UUID
    type: str
    about: UUID
    stream_id: UUID
    version: int
    body: bytes


STORED = Stored(MessageRow)


def row_of_entry(name: str, entry: Entry) -> MessageRow:
    """Return the message of a type about an entry; the entry's id and sequence stand for it."""
    owner = entry.organization_id
    body = body_of_entry(name, entry)
    key = (entry.transaction_id, entry.sequence)
    return MessageRow(entry.position, owner, name, wallet_id(owner), *key, body)


class WebhookMessages(ReadModel):
    """A row per message, with its body, and the threshold of each organization that has one.

    Most events are charges that cause no message. So that they ask nothing of the database, the
    thresholds are remembered, for as long as each batch begins where the one before has ended: if
    another process has written meanwhile, or nothing was committed, it does not.
    """

    name = "webhook_messages"
    version = 4
    uses = (*kinds_of(TYPES.keys() - OF_ENTRIES.keys()), WebhookRequest.TestAsked)

    def build(self) -> Sequence[Table]:
        self.rows = self.table(
            "webhook_messages",
            *STORED.columns("position", "type"),
            self.index("webhook_messages_by_organization", "organization_id", "position"),
            self.index("webhook_messages_by_type", "organization_id", "type", "position"),
        )
        self.thresholds = self.table(
            "low_balance_thresholds",
            Column("organization_id", Uuid, primary_key=True),
            Column("threshold_micros", BigInteger),
        )
        self._known: dict[int, int | None] = {}
        self._known_at: int | None = None  # The end of the batch before.
        columns = self.rows.c
        new = (columns.position > bindparam("after"), columns.position <= bindparam("until"))
        self._between = HotStatement(select(self.rows).where(*new))
        news = select(columns.organization_id, columns.type).distinct().where(*new)
        self._news = HotStatement(news)
        self._pages: dict[int, HotStatement] = {}  # By the number of types.
        return [self.rows, self.thresholds]

    def follow(self, connection: Connection, batch: Batch) -> None:
        if batch.after != self._known_at:
            columns = self.thresholds.c
            known = connection.execute(select(columns.organization_id, columns.threshold_micros))
            self._known = {owner.int: micros for owner, micros in known}
        self._known_at = None  # Nothing is certain if this fails.
        super().follow(connection, batch)
        self._known_at = batch.until

    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        """Insert the messages; a threshold counts for the events behind it."""
        context, rows, changed = EventContext(self.log, self._known), [], dict[UUID, int | None]()
        for recorded in batch:
            event = recorded.event
            if isinstance(event, Organization.LowBalanceThresholdSet):
                changed[event.originator_id] = event.threshold_micros
                self._known[event.originator_id.int] = event.threshold_micros
            elif type(event) is Wallet.Charged and event.organization_id.int not in self._known:
                continue  # Nearly all events: a charge where no balance is too low.
            for message in messages_of(recorded, context):
                ref, facts = recorded.ref, message._asdict()
                stream = {"stream_id": ref.stream_id, "version": ref.stream_version}
                rows.append({"position": ref.position, **facts, **stream})
        insert_many(connection, self.rows, rows)
        named = [{"organization_id": o, "threshold_micros": m} for o, m in changed.items()]
        upsert(connection, self.thresholds, named)

    def between(
        self, database: Database, after: int, until: int
    ) -> dict[tuple[int, str], MessageRow]:
        """Return the messages of all organizations between two positions, by position and type."""
        rows = database.rows(self._between, after=after, until=until)
        return {(row.position, row.type): row for row in map(STORED.read, rows)}

    def news(self, database: Database, after: int, until: int) -> Mapping[int, set[str]]:
        """Return the types of the messages between two positions, by organization as an int."""
        news = defaultdict[int, set[str]](set)
        for owner, name in database.rows(self._news, after=after, until=until):
            news[as_id(owner).int].add(name)
        return news

    def page(
        self,
        database: Database,
        organization_id: UUID,
        span: tuple[int, int],
        types: Collection[str],
        limit: int,
    ) -> list[MessageRow]:
        """Return the first messages of an organization between two positions, of types or of all.

        Each type is looked for in the index by itself, so that a rare one is found as soon.
        """
        hot = self._pages.get(len(types))
        if hot is None:
            hot = self._pages[len(types)] = HotStatement(self._page_of(len(types)))
        named = {f"type_{number}": name for number, name in enumerate(types)}
        after, until = span
        given = {"owner": organization_id, "after": after, "until": until, "limit": limit}
        return [*map(STORED.read, database.rows(hot, **given, **named))]

    def _page_of(self, types: int) -> Select[Any]:
        columns = self.rows.c
        new = (columns.position > bindparam("after"), columns.position <= bindparam("until"))
        owned = (columns.organization_id == bindparam("owner", type_=Uuid()), *new)
        first = select(self.rows).where(*owned)
        if types:
            wanted = [bindparam(f"type_{number}", type_=String) for number in range(types)]
            found = (
                self._first(select(columns.position).where(*owned, columns.type == each))
                for each in wanted
            )
            each = (select(one.subquery().c.position) for one in found)
            first = select(self.rows).where(columns.position.in_(union_all(*each)))
            first = first.where(or_(*(columns.type == each for each in wanted)))
        return self._first(first)

    def _first(self, statement: Select[Any]) -> Select[Any]:
        limit = bindparam("limit", type_=Integer)
        return statement.order_by(self.rows.c.position, self.rows.c.type).limit(limit)
