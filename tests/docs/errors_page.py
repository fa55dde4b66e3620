"""Writes the table of docs/partners/errors.md from the codes: `python -m tests.docs.errors_page`.

Status, code and whether to try again are those of the code. Cause and advice stand below, once. A
new code needs its entry; an entry without a cause shows the message of the refusal.
"""

import sys
from collections.abc import Iterator
from typing import NamedTuple

from app.http.edge import problems
from app.http.edge.problems import STATUS, Problem
from tests.tidy.source import ROOT

PAGE = ROOT / "docs" / "partners" / "errors.md"
# What stands before the first and behind the second of these is written by hand.
BEGIN = "| Status | Code | Again | Cause | What to do |\n|---|---|---|---|---|\n"
END = "\nThe token operation has its own codes"
AGAIN = {True: "yes", False: "no", None: "it says"}


class Told(NamedTuple):
    """What partners are told of a code; without a `cause` its message says it."""

    advice: str
    cause: str = ""


RUNS_IT = "talk to whoever runs this installation"
SAME = "wait, then the same request"
END_IT = "end it, without money back"
MEANINGS = {
    "BAD_REQUEST": Told(
        "correct the body",
        "the request cannot be read: the body is not JSON, or the request itself is not HTTP/1.1; "
        "the message says which",
    ),
    "UNAUTHORIZED": Told(
        "get a new token, once",
        "the token is missing, malformed, expired, revoked, or not ours; the message says which",
    ),
    "INSUFFICIENT_BALANCE": Told(
        "deposit, then the same request",
        "the wallet has less than the price; `required`, `available`, `currency`",
    ),
    "SPENDING_LIMIT": Told(
        f"wait for the next month, or {RUNS_IT}",
        "the charge would go past what your organization may "
        "[spend in a month](money.md#a-limit-for-each-month); `limit`, `spent`, `required`, "
        "`currency`",
    ),
    "ORGANIZATION_NOT_FOUND": Told(
        "send the header, if your client is a machine-to-machine one",
        "the token names no organization and `X-Organization-Id` is missing or wrong",
    ),
    "ORGANIZATION_SUSPENDED": Told(RUNS_IT),
    "ORGANIZATION_INACTIVE": Told(RUNS_IT),
    "INSUFFICIENT_SCOPE": Told(
        "ask for a token with it", "the token lacks the scope that the message names"
    ),
    "NUMBER_LOOKUP_DISABLED": Told(RUNS_IT, "lookups are off for you, or for everybody"),
    "BILLING_NOT_CONFIGURED": Told(RUNS_IT, "what you ask for has a price, and you have no wallet"),
    "NOT_FOUND": Told(
        "check id and path",
        "there is no such thing, or it belongs to another organization, or it has been erased, or "
        "the path is wrong",
    ),
    "METHOD_NOT_ALLOWED": Told("use a method that `Allow` names"),
    "NOT_ACCEPTABLE": Told(
        "ask for one of them, or for `*/*`",
        "`Accept` names none of the types that this reply has; the message lists them",
    ),
    "REQUEST_TIMEOUT": Told("send the same request faster"),
    "IDEMPOTENCY_IN_PROGRESS": Told(SAME),
    "NOT_SUPPORTED_BY_NETWORK": Told("look at the link's `capabilities` first"),
    "WEBHOOK_LIMIT": Told("delete one first", "your organization has ten webhooks"),
    "WEBHOOK_DISABLED": Told(
        "enable it first, with PATCH", "the webhook is disabled, so nothing is sent to it"
    ),
    "JOB_FINISHED": Told("read its results", "the job has ended, and cannot be cancelled any more"),
    "LINK_BUSY": Told(
        "the same request after `Retry-After`", "something else that changes this link still runs"
    ),
    "LINK_ENDED": Told("buy another one"),
    "LINK_IN_USE": Told(END_IT, "the link to cancel was installed or used"),
    "CANCEL_WINDOW_OVER": Told(
        END_IT, "the link is too old to be cancelled, or this service cancels none"
    ),
    "PAYLOAD_TOO_LARGE": Told("send less in one request"),
    "REQUEST_URI_TOO_LONG": Told("shorten it"),
    "UNSUPPORTED_MEDIA_TYPE": Told(
        "send `Content-Type: application/json`, not compressed", "the body is not JSON"
    ),
    "VALIDATION_ERROR": Told("correct the field", "a field is wrong; see below"),
    "IDEMPOTENCY_KEY_REUSED": Told("a new key for a new request"),
    "RATE_LIMITED": Told(
        SAME,
        "your organization is beyond one of the [limits](limits.md#at-once); nothing was charged",
    ),
    "REQUEST_HEADER_FIELDS_TOO_LARGE": Told("send fewer"),
    "INTERNAL_ERROR": Told("tell us the `request_id`", "a fault of ours"),
    "CONFIG_ERROR": Told(
        "tell whoever runs it", "this installation is not set up for this operation"
    ),
    "NOT_IMPLEMENTED": Told("use plain HTTP/1.1"),
    "PROVISIONING_FAILED": Told(
        "choose another plan, and tell us",
        "the network answered, but without what was asked of it; the money is back",
    ),
    "PROVISIONING_ERROR": Told(
        "see below", "the network failed; `reason` says why; the money is back"
    ),
    "NETWORK_UNAVAILABLE": Told(
        "read without `live`, or wait", "a live answer was asked for, and the network gave none"
    ),
    "NUMBER_LOOKUP_UNAVAILABLE": Told(
        "where `retryable` is true, wait, then the same request",
        "the lookup provider is away, or (`retryable` is false) has no data for this number; "
        "nothing was charged",
    ),
    "SERVICE_UNAVAILABLE": Told(
        f"{SAME} with the same key",
        "our own storage cannot be reached, a machine is out of order, what you ask for is not in "
        "our lists yet, or too many requests wait here",
    ),
}


class Row(NamedTuple):
    """A code as the service sends it; `retryable` is None where only the reply tells it."""

    status: int
    code: str
    message: str
    retryable: bool | None


def rows() -> Iterator[Row]:
    """Yield each code once, by status."""
    known = [each for each in vars(problems).values() if isinstance(each, Problem)]
    sent = [Row(each.status, each.code, each.message, each.retryable) for each in known]
    sent += [
        Row(status, kind.code, kind.message, kind.retryable) for kind, status in STATUS.items()
    ]
    first: dict[tuple[int, str], Row] = {}
    for each in sent:
        first.setdefault((each.status, each.code), each)
    return iter(sorted(first.values(), key=lambda each: each.status))


def table() -> str:
    """Return the rows of the table."""
    return "".join(
        f"| {row.status} | `{row.code}` | {_again(row)} | {_cause(row)} "
        f"| {MEANINGS[row.code].advice} |\n"
        for row in rows()
    )


def _again(row: Row) -> str:
    """Say what `retryable` will be; nothing where a reply does not have it."""
    stated = "retryable" in Problem(row.status, row.code, row.message).details_sent()
    return AGAIN[row.retryable] if stated else "–"


def _cause(row: Row) -> str:
    message = row.message.removesuffix(".")
    return MEANINGS[row.code].cause or message[:1].lower() + message[1:]


def page() -> str:
    """Return the page as it should be."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    return f"{before}{BEGIN}{table()}{END}{rest.partition(END)[2]}"


def main() -> None:
    PAGE.write_text(page(), "utf-8")
    sys.stdout.write(f"{PAGE}\n")


if __name__ == "__main__":
    main()
