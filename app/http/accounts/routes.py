"""The balance of your organization and every entry of it."""

from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

from flask import Response
from msgspec import convert

from app.bootstrap.container import DOWNLOADS_SHARE, Container
from app.http.accounts import account
from app.http.accounts.input import TransactionQuery
from app.http.edge.input import parse_id
from app.http.edge.media import CSV, csv_blocks, csv_reply, preferred
from app.http.edge.operation import Group, link_to
from app.http.edge.replies import Answer, Page, example, filters_of, part_of, show_page, wait_for
from app.http.edge.request import Given
from app.http.edge.schemas import example_of
from app.security.authorization import Caller
from domain.accounts.wallet import Wallet, wallet_id
from domain.errors import NotFound, RateLimited, ServiceUnavailable
from projections.models.transactions import COLUMNS, EntryFilter, Transaction

BEHIND = "The list of transactions is not up to date; try again."
READ_ROWS = 1_000  # Rows of one SQL query, which bounds the memory of a download.
_ROW: Final = convert(example_of(Transaction), Transaction).cells(COLUMNS)
EXAMPLE: Final = b"".join(csv_blocks(COLUMNS, [_ROW])).decode()


class TransactionPage(Page[Transaction]):
    """Transactions."""


blueprint = Group("Wallet", "wallet", description=__doc__)


@blueprint.operation(
    "GET /v1/wallet", reply=example("The balance.", account.Wallet), errors="NOT_FOUND"
)
def read_wallet(caller: Caller, given: Given[None]) -> account.Wallet:
    """Read the balance.

    404 when your organization has no wallet: then nothing with a price can be bought.
    """
    wallet = given.parts.log.find(Wallet, wallet_id(caller.organization_id))
    if wallet is None:
        raise NotFound("The organization has no wallet.")
    return account.Wallet.holding(wallet)


@blueprint.operation(
    "GET /v1/transactions",
    query=TransactionQuery,
    reply=example("A page of transactions.", TransactionPage),
    leads_to=link_to("read_transaction", transaction_id="/data/data/0/id"),
    also={CSV: EXAMPLE},
    invalid={"per_page": "Must be a whole number from 1 to 100."},
    examples=[RateLimited(DOWNLOADS_SHARE)],
)
def list_transactions(caller: Caller, given: Given[None]) -> Answer | Response:
    """List transactions, newest first.

    With `after_sequence` they come oldest first, for who follows them.
    A page past the end is an empty list. Write the `+` of an offset as `%2B`. With
    `Accept: text/csv` all that match come as one table, whatever page is asked for: 429 while your
    organization has several such downloads under way.
    """
    parts, query, kind = given.parts, given.query, preferred(CSV)
    wait_for(parts, parts.transactions.name)
    filters = filters_of(query)
    after: int | None = filters.pop("after_sequence", None)
    wanted = EntryFilter(**filters)
    if kind == CSV:
        given.acquire(parts.downloads.slot(caller.organization_id))
        every = _every(parts, caller.organization_id, wanted)
        if after is not None:
            every = _behind(parts, caller.organization_id, after)
        return csv_reply(COLUMNS, (each.cells(COLUMNS) for each in every), "transactions.csv")
    with parts.views.reading() as connection:
        owner, part = caller.organization_id, part_of(query)
        if after is None:
            entries, total = parts.transactions.page(connection, owner, wanted, part)
        else:
            entries, total = parts.transactions.behind(connection, owner, after, part)
    return Answer(show_page(entries, total, query), headers={"Vary": "Accept"})


def _load_transaction(caller: Caller, given: Given[Any], transaction_id: str) -> Transaction:
    parts, wanted = given.parts, parse_id(transaction_id)
    is_known = wait_for(parts, parts.transactions.name)
    entry = parts.views.read(parts.transactions.get, wanted, caller.organization_id)
    if entry is None:
        raise NotFound if is_known else ServiceUnavailable(BEHIND)
    return entry


@blueprint.operation(
    "GET /v1/transactions/<transaction_id>",
    resource=_load_transaction,
    reply=example("The transaction.", Transaction),
)
def read_transaction(_: Caller, given: Given[Transaction]) -> Transaction:
    """Read one transaction.

    Its id stands in `meta.charge` of a lookup, and in the list.
    """
    return given.found


def _every(parts: Container, organization_id: UUID, wanted: EntryFilter) -> Iterator[Transaction]:
    """Yield all transactions that match, newest first; each query reads `READ_ROWS`."""
    _, first, last = parts.views.read(parts.transactions.span, organization_id, wanted)
    while first <= last:
        found = parts.views.read(
            parts.transactions.listed, organization_id, wanted, (first, last), READ_ROWS
        )
        yield from found
        if len(found) < READ_ROWS:
            return
        last = found[-1].sequence - 1


def _behind(parts: Container, organization_id: UUID, after: int) -> Iterator[Transaction]:
    """Yield all transactions behind a sequence, oldest first."""
    found: list[Transaction] | None = None
    while found is None or len(found) == READ_ROWS:
        with parts.views.reading() as connection:
            part = slice(0, READ_ROWS)
            found, _ = parts.transactions.behind(connection, organization_id, after, part)
        yield from found
        after = found[-1].sequence if found else after
