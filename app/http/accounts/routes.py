"""The wallet of the calling organization and its transactions."""

from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

from flask import Response

from app.bootstrap.container import DOWNLOADS_SHARE, Container
from app.http.accounts.input import TransactionQuery
from app.http.accounts.replies import (
    TRANSACTION,
    TRANSACTION_PAGE,
    WALLET,
    show_transaction,
    show_wallet,
)
from app.http.accounts.table import COLUMNS, cells
from app.http.edge.input import Blueprint, parse_id
from app.http.edge.media import CSV, JSON, also_sent_as, csv_reply, preferred
from app.http.edge.operation import operation
from app.http.edge.paging import offset_of, show_page
from app.http.edge.replies import success, wait_for
from app.http.edge.request import container, request_context
from app.security.authorization import Caller
from domain.accounts.wallet import Wallet, wallet_id
from domain.errors import (
    NotAcceptable,
    NotFound,
    RateLimited,
    ServiceUnavailable,
    ValidationFailed,
)
from projections.engine.freshness import wait_until_projected
from projections.models.transactions import EntryFilter, Transaction
from projections.models.wallets import WalletRow

BEHIND = "The list of transactions is not up to date; try again."
READ_AT_ONCE = 1_000  # Rows of one SQL query, which bounds the memory of a download.
EXAMPLE: Final = (
    f"{','.join(COLUMNS)}\r\n"
    "7,4711,2026-11-21T03:04:05.100Z,bulk_lookup,debit,5.00,USD,87.50,,Bulk number lookup,job,"
    '8c1f0c7e-5b1f-4a5e-8a44-0f6f6f0e2d11,,,b7a8e3c2-3a4d-5e6f-8a9b-0c1d2e3f4a5b,"{}"\r\n'
)

blueprint = Blueprint(
    "Wallet", __name__, description="The balance of your organization and every entry of it."
)


@blueprint.route("/v1/wallet", methods=["GET"])
@operation(scope="wallet", refusals=[NotFound()])
@blueprint.replies(200, WALLET)
def read_wallet(caller: Caller) -> Response:
    """Read the balance.

    404 when your organization has no wallet: then nothing with a price can be bought.
    """
    wallet = _find_wallet(caller.organization_id)
    if wallet is None:
        message = "The organization has no wallet."
        raise NotFound(message)
    return success(show_wallet(wallet.balance_micros, wallet.currency))


@blueprint.route("/v1/transactions", methods=["GET"])
@operation(
    scope="wallet",
    refusals=[
        ValidationFailed({"per_page": ["Must be a whole number from 1 to 100."]}),
        NotAcceptable(JSON, CSV),
        RateLimited(DOWNLOADS_SHARE),
    ],
)
@blueprint.arguments(TransactionQuery, location="query")
@also_sent_as({CSV: EXAMPLE})
@blueprint.replies(
    200,
    TRANSACTION_PAGE,
    leads_to=[("read_transaction", "transaction_id", "/data/data/0/id")],
)
def list_transactions(caller: Caller, query: dict[str, Any]) -> Response:
    """List transactions, newest first.

    A page past the end is an empty list. Write the `+` of an offset as `%2B`. With
    `Accept: text/csv` all that match come as one table, whatever page is asked for: 429 while your
    organization has several such downloads under way.
    """
    parts, kind = container(), preferred(CSV)
    wait_for(parts, parts.transactions.name)
    wanted = EntryFilter(
        query.get("kind"), query.get("since"), query.get("until"), query.get("reference")
    )
    if kind == CSV:
        request_context().hold(parts.downloads.place(caller.organization_id))
        every = _every(parts, caller.organization_id, wanted)
        return csv_reply(COLUMNS, map(cells, every), "transactions.csv")
    with parts.views.reading() as connection:
        entries, total = parts.transactions.page(
            connection,
            caller.organization_id,
            wanted,
            offset=offset_of(query),
            limit=query["per_page"],
        )
    shown = [show_transaction(entry) for entry in entries]
    return success(show_page(shown, total, query), headers={"Vary": "Accept"})


def _find_transaction(caller: Caller, transaction_id: str) -> Transaction:
    parts = container()
    wanted = parse_id(transaction_id)
    is_known = wait_for(parts, parts.transactions.name)
    with parts.views.reading() as connection:
        entry = parts.transactions.get(connection, caller.organization_id, wanted)
    if entry is None:
        raise NotFound if is_known else ServiceUnavailable(BEHIND)
    return entry


@blueprint.route("/v1/transactions/<transaction_id>", methods=["GET"])
@operation(scope="wallet", refusals=[NotFound()], resource=_find_transaction)
@blueprint.replies(200, TRANSACTION)
def read_transaction(_: Caller, entry: Transaction) -> Response:
    """Read one transaction.

    Its id stands in `meta.charge` of a lookup, and in the list.
    """
    return success(show_transaction(entry))


def _every(parts: Container, organization_id: UUID, wanted: EntryFilter) -> Iterator[Transaction]:
    """Yield all transactions that match, newest first; each query reads `READ_AT_ONCE`."""
    with parts.views.reading() as connection:
        _, first, last = parts.transactions.span(connection, organization_id, wanted)
    while first <= last:
        with parts.views.reading() as connection:
            found = parts.transactions.listed(
                connection, organization_id, wanted, (first, last), READ_AT_ONCE
            )
        yield from found
        if len(found) < READ_AT_ONCE:
            return
        last = found[-1].sequence - 1


def _find_wallet(organization_id: UUID) -> WalletRow | Wallet | None:
    """Read a balance; from the log itself while the read model is behind."""
    parts = container()
    names = [parts.wallets.name]
    if not wait_until_projected(parts.log, parts.views, parts.positions, names):
        return parts.log.find(Wallet, wallet_id(organization_id))
    with parts.views.reading() as connection:
        return parts.wallets.get(connection, organization_id)
