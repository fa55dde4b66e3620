"""Statements and usage over HTTP: as data, as a table, and as a page to print."""

import csv
import io
from decimal import Decimal
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins

from app.books.statements import statements_of
from app.http.edge.media import csv_blocks
from app.http.finance import routes
from app.http.finance.replies import show_statement
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, Tenant, code_of, fields_of
from tests.installation import SetClock
from tests.workers.fees import clock_at, moment

STATEMENTS, USAGE = "/v1/statements", "/v1/usage"
NUMBER, DOWN = "+971508245915", "+15005550001"
CHECKPOINT = "log.example\n3\nabc=\n\n— log.example x<y>\n"
clock = clock_at("2026-01-20", scope="module")


@pytest.fixture(scope="module")
def closed_books(share_service: MakeService, clock: SetClock) -> Service:
    """A service whose clock is the test's; nothing runs in it."""
    made = share_service(clock=clock)
    made.container.shared_clock = clock
    made.container.monotonic = lambda: clock().timestamp()
    made.container.started = clock(), clock().timestamp()
    return made


@pytest.fixture(scope="module")
def tenant(closed_books: Service, clock: SetClock) -> Tenant:
    """A deposit and two lookups in January, nothing in February, a lookup in March."""
    parts = closed_books.container
    found = closed_books.tenant(balance="10.00")
    found.look_up(NUMBER)
    found.look_up(NUMBER)
    for now in ("2026-02-10", "2026-03-10"):
        clock.now = moment(now)
        parts.month_end.run()
    found.headers = {"Authorization": f"Bearer {closed_books.token(found.client_id)}"}
    found.look_up(NUMBER)
    parts.projector.catch_up()
    return found


def data(tenant: Tenant, path: str, **query: str) -> Any:
    reply = tenant.get(path, query_string=query)
    assert reply.status_code == 200, reply.text
    return reply.json["data"]


def test_http_says_what_the_log_alone_says(tenant: Tenant) -> None:
    for each in data(tenant, STATEMENTS):
        told = data(tenant, f"{STATEMENTS}/{each['month']}")
        (alone,) = statements_of(tenant.service.container.log, each["month"]).statements
        shown = show_statement(alone, is_final=each["final"], checkpoint=told["checkpoint"])
        assert told == to_builtins(shown, str_keys=True)


@pytest.mark.each_database
def test_a_month_that_no_text_of_a_database_holds_is_not_there(service: Service) -> None:
    reply = service.tenant(balance=None).get(f"{STATEMENTS}/%00")
    assert (reply.status_code, code_of(reply)) == (404, "NOT_FOUND")


def test_a_closed_month_keeps_the_first_checkpoint_behind_its_close(
    tenant: Tenant, clock: SetClock
) -> None:
    months = [f"{STATEMENTS}/2026-0{number}" for number in (1, 2, 3)]

    def carried() -> list[str | None]:
        return [data(tenant, month)["checkpoint"] for month in months]

    parts = tenant.service.container
    assert carried() == [None, None, None]
    first = parts.checkpoints.make().signed.note  # The close of February is too new for it.
    assert carried() == [first, None, None]
    before = tenant.get(months[0])
    clock.forward(seconds=60)
    second = parts.checkpoints.make().signed.note
    assert carried() == [first, second, None]
    clock.forward(seconds=60)
    parts.checkpoints.make()
    after = tenant.get(months[0])
    assert after.json["data"] == before.json["data"]
    assert after.headers.get("ETag") == before.headers.get("ETag")
    alone = [statements_of(parts.log, month[-7:]).closed_at for month in months]
    assert [*map(parts.statement_checkpoint, alone)] == carried()


def test_a_checkpoint_is_shown_on_the_page_as_text(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenant.service.container, "statement_checkpoint", lambda _: CHECKPOINT)
    page = tenant.get(f"{STATEMENTS}/2026-01", headers={"Accept": "text/html"}).text
    assert "x<y>" not in page
    assert CHECKPOINT.strip() in unescape(page)


def test_a_wrong_question_about_usage_is_refused(tenant: Tenant) -> None:
    for query in ("to=2026-1-1", "to=20260101", "to=2026-01-01T00", "group_by=day,"):
        assert [*fields_of(tenant.get(f"{USAGE}?{query}"))] == [query.partition("=")[0]]


def test_more_groups_than_a_reply_holds_are_refused(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "ROWS_MAX", 1)
    reply = tenant.get(USAGE)
    assert (reply.status_code, [*fields_of(reply)]) == (422, ["group_by"])
    assert data(tenant, USAGE, group_by="kind")["groups"]


ACCEPT = (
    ("text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", "text/html"),  # The JDK.
    ("image/gif, image/jpeg, *; q=.2, */*; q=.2", "application/json"),
    ("application/json;q=.2, text/csv;q=.3", "text/csv"),
    ("TEXT/CSV ; Q = 1. , */*;q=0.99999", "text/csv"),
    ("text/csv;q=0, */*;q=.1", "application/json"),
    ("application/json;q=.1, text/*", "text/csv"),
    ("application/json;q=.1, */*", "text/csv"),
    ("text/html;q=high", "text/html"),
    ("text/html;level=1;q=.4, text/csv;q=.5", "text/csv"),
    ("", "application/json"),
)


def test_accept_is_read_as_leniently_as_it_is_written(tenant: Tenant) -> None:
    for accept, sent in ACCEPT:
        reply = tenant.get(f"{STATEMENTS}/2026-01", headers={"Accept": accept})
        assert (reply.status_code, reply.mimetype) == (200, sent), accept
    nothing = {"Accept": "application/json;q=0, text/csv;q=0, text/html;q=.0"}
    reply = tenant.get(f"{STATEMENTS}/2026-01", headers=nothing)
    assert (reply.status_code, reply.mimetype) == (406, "application/json")


def test_all_transactions_come_as_one_table(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.http.accounts.routes.READ_ROWS", 2)
    accept = {"Accept": "text/csv"}
    reply = tenant.get("/v1/transactions", headers=accept, query_string={"per_page": 1})
    assert reply.headers["Content-Disposition"] == 'attachment; filename="transactions.csv"'
    rows = [*csv.DictReader(io.StringIO(reply.text))]
    listed = tenant.transactions()
    assert [row["id"] for row in rows] == [each["id"] for each in listed]
    some = tenant.get("/v1/transactions", headers=accept, query_string={"kind": "deposit"})
    assert len(some.text.splitlines()) == 2


def test_each_sign_with_which_a_formula_may_begin_is_defused() -> None:
    for sign in ("=", "+", "-", "@", "\t=", "\r=", "\n=", "\uff1d", "\uff20"):
        blocks = csv_blocks(["a", "b"], [(f"{sign}HYPERLINK(1)", Decimal("-1.5"))])
        (row,) = csv.DictReader(io.StringIO(b"".join(blocks).decode(), newline=""))
        assert row == {"a": f"'{sign}HYPERLINK(1)", "b": "-1.5"}


def test_the_style_of_the_page_is_the_one_that_its_policy_allows() -> None:
    folder = Path(routes.__file__).parent
    assert "</style" not in (folder / "statement.css").read_text()
