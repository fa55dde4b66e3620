"""Number lookups: one number at once, or many as a job that is polled."""

from functools import partial
from typing import Any, Final

from flask import Response

from app.bootstrap.container import DOWNLOADS_SHARE
from app.http.edge.input import parse_id
from app.http.edge.operation import Group, Shown, link_to
from app.http.edge.problem_docs import RETRY_AFTER
from app.http.edge.replies import (
    Answer,
    Commit,
    Page,
    example,
    part_of,
    replay_headers,
    show_page,
    tagged,
    wait_for,
)
from app.http.edge.request import Given, reached
from app.http.lookups import job_replies
from app.http.lookups.input import (
    FORMATS,
    NOT_E164,
    NOT_SUMMARY,
    BulkBody,
    JobQuery,
    JobsQuery,
    LookupBody,
    LookupQuery,
    ResultsQuery,
    read_number,
)
from app.http.lookups.replies import ANSWER, lookup_reply
from app.security.authorization import Caller
from domain import errors
from domain.lookups.bulk_job import BulkJob, BulkRequest
from domain.lookups.single import LookupRequest, LookupResult
from projections.models.jobs import STATUSES, JobCounts, row_of


def require_lookup(caller: Caller, given: Given[None]) -> None:
    """Raise NumberLookupDisabled while lookups are off, for everybody or for the caller."""
    if not (given.parts.settings.number_lookup_enabled and caller.lookup_enabled):
        raise errors.NumberLookupDisabled


LOOKUP = "/number-lookup"
POLL_S = "1"

blueprint = Group(
    "Number lookup",
    "lookup",
    description="Country, validity and carrier of phone numbers: one at once, or many as a "
    "job. When a lookup has a price, every answer is charged, also a repeated one.",
)
_ERASED: Final = errors.NotFound(errors.KEY_ERASED)
_TO_CHARGE: Final = link_to("read_transaction", transaction_id="/meta/charge/transaction_id")


@blueprint.operation(
    f"POST {LOOKUP}",
    feature=require_lookup,
    query=LookupQuery,
    body=LookupBody,
    key=True,
    buys=True,
    read_on_loop=read_number,
    reply=Shown(ANSWER, leads_to=link_to("read_lookup", lookup_id="/meta/lookup_id") | _TO_CHARGE),
    errors="NUMBER_LOOKUP_DISABLED NOT_FOUND IDEMPOTENCY_IN_PROGRESS NUMBER_LOOKUP_UNAVAILABLE",
    invalid={"phone_number": NOT_E164},
    examples=[
        _ERASED,
        errors.SpendingLimit(5_000, 49_999_000, 50_000_000, "USD"),
        errors.InsufficientBalance(5_000, 1_000, "USD"),
    ],
)
def look_up(caller: Caller, given: Given[None]) -> Commit:
    """Look up one number.

    The number stands in the query or in a JSON body; the query wins. A number of the right form
    that cannot exist is an answer (`valid` is false) and is charged. Without an answer nothing is
    charged.
    """
    parts, sent, owner = given.parts, given.body | given.query, caller.organization_id
    currency, price_micros = parts.settings.currency, parts.prices.of_lookup(caller.price_micros)
    wanted = LookupRequest(
        owner, sent["phone_number"], price_micros, currency, given.key, sent.get("max_age")
    )
    lookups, arguments = parts.single_lookup, (wanted, given.cause())

    def answer(result: LookupResult) -> Answer:
        return Answer(lookup_reply(given, result), headers=replay_headers(result.replayed))

    return Commit(partial(lookups.run, *arguments), partial(lookups.prepare, *arguments), answer)


def _load_lookup(caller: Caller, given: Given[Any], lookup_id: str) -> LookupResult:
    return given.parts.single_lookup.read(caller.organization_id, parse_id(lookup_id))


@blueprint.operation(
    "GET /number-lookup/lookups/<lookup_id>",
    resource=_load_lookup,
    reply=Shown(ANSWER, leads_to=_TO_CHARGE),
)
def read_lookup(_: Caller, given: Given[LookupResult]) -> Answer:
    """Read the answer of an earlier lookup again.

    It costs nothing, and nobody is asked: `meta` says how old the answer is and what was charged
    then. `lookup_id` stands in the `meta` of the lookup.
    """
    return Answer(lookup_reply(given, given.found))


@blueprint.operation(
    "POST /number-lookup/bulk",
    feature=require_lookup,
    body=BulkBody,
    key=True,
    buys=True,
    reply=Shown(
        example("The job is accepted, and paid.", job_replies.JobAccepted),
        202,
        headers=RETRY_AFTER,
        leads_to=link_to("read_job read_results cancel_job", job_id="/data/job_id")
        | link_to("read_transaction", transaction_id="/data/charge/transaction_id"),
    ),
    errors="NUMBER_LOOKUP_DISABLED NOT_FOUND",
    invalid={"phone_numbers.1": "The same number stands at index 0."},
    examples=[
        _ERASED,
        errors.SpendingLimit(5_000_000, 49_000_000, 50_000_000, "USD"),
        errors.InsufficientBalance(5_000_000, 1_000_000, "USD"),
    ],
)
def create_job(caller: Caller, given: Given[None]) -> Answer:
    """Look up many numbers as a job.

    The whole job is charged when it is accepted, and each item that fails is refunded. Poll it
    every 1 to 3 seconds until its status is `completed`, `failed` or `cancelled`.
    """
    parts, numbers, owner = given.parts, given.body["phone_numbers"], caller.organization_id
    currency, price_micros = parts.settings.currency, parts.prices.of_lookup(caller.price_micros)
    wanted = BulkRequest(owner, numbers, price_micros, currency, given.key)
    job, replayed = parts.bulk_jobs.accept(wanted, given.cause())
    location = f"{reached(parts.settings.numbers)}/number-lookup/bulk/{job.id}"
    headers = {"Location": location, "Retry-After": POLL_S, **replay_headers(replayed)}
    accepted = job_replies.JobAccepted(job.id, job_replies.charge_of(row_of(job), 0))
    return Answer(accepted, 202, headers)


@blueprint.operation(
    "GET /number-lookup/bulk",
    query=JobsQuery,
    reply=example("A page of jobs, newest first.", Page[job_replies.JobSummary], "JobPageReply"),
    leads_to=link_to("read_job", job_id="/data/data/0/job_id"),
    invalid={"status": f"Must be one of: {', '.join(STATUSES)}."},
)
def list_jobs(caller: Caller, given: Given[None]) -> Page[job_replies.JobSummary]:
    """List your jobs, newest first, without their items.

    A page past the end is an empty list. Jobs that have been erased are not listed.
    """
    parts, owner, query = given.parts, caller.organization_id, given.query
    wait_for(parts, parts.jobs.name)
    exists, status = partial(parts.vault.has, owner), query.get("status")
    found, total = parts.jobs.page(parts.views, owner, status, exists, part_of(query))
    return show_page([job_replies.show_summary(each) for each in found], total, query)


@blueprint.operation(
    "GET /number-lookup/bulk/<job_id>",
    resource=job_replies.load_job,
    query=JobQuery,
    reply=Shown(job_replies.JOB, headers=RETRY_AFTER),
    tagged=True,
    invalid={"fields": NOT_SUMMARY},
)
def read_job(_: Caller, given: Given[JobCounts]) -> Response:
    """Read a job; with `fields=summary` without its items.

    `Retry-After` stands on it until it has ended. With `If-None-Match` an unchanged job is a 304
    without a body.
    """
    parts, job = given.parts, given.found
    headers = {} if job.finished_at is not None else {"Retry-After": POLL_S}
    if "shown" in given.query:
        # With a tag of its own: a client that then asks for the items must not get an empty 304.
        state = job_replies.encode_state(job) + b" summary"
        return tagged(state, lambda: job_replies.show_summary(job), headers)
    row = job_replies.whole(parts, job)
    numbers = job_replies.open_numbers(parts, row)  # Once erased, they are 404 for everybody.
    state = job_replies.encode_state(row)
    return tagged(state, lambda: job_replies.show_job(parts, row, numbers), headers)


@blueprint.operation(
    "GET /number-lookup/bulk/<job_id>/results",
    resource=job_replies.load_job,
    query=ResultsQuery,
    reply=job_replies.RESULTS,
    also=job_replies.EXAMPLES,
    is_file=True,
    invalid={"format": f"Must be one of: {', '.join(FORMATS)}."},
    examples=[errors.RateLimited(DOWNLOADS_SHARE)],
)
def read_results(caller: Caller, given: Given[JobCounts]) -> Response:
    """Read the items of a job as a file: JSON, CSV or NDJSON.

    A running job shows how far it is. The reply is sent while it is made: 429 while your
    organization has several such downloads under way. In CSV a cell that a spreadsheet could take
    for a formula begins with an apostrophe, numbers too.
    """
    parts, wanted = given.parts, job_replies.format_of(given.query.get("format"))
    given.acquire(parts.downloads.slot(caller.organization_id))
    row = job_replies.whole(parts, given.found)
    return job_replies.results_reply(parts, row, wanted, given.query.get("status"))


def _load_to_cancel(caller: Caller, given: Given[Any], job_id: str) -> BulkJob:
    return given.parts.bulk_jobs.load(caller.organization_id, parse_id(job_id))


@blueprint.operation(
    "DELETE /number-lookup/bulk/<job_id>",
    resource=_load_to_cancel,
    reply=job_replies.CANCELLED,
    errors="JOB_FINISHED",
)
def cancel_job(_: Caller, given: Given[BulkJob]) -> job_replies.JobSummary:
    """Cancel a job.

    Every item without an outcome is cancelled and refunded at once; what has ended stays, with its
    result. A job that is cancelled already gets the same reply. 409 `JOB_FINISHED` for one that
    has ended by itself.
    """
    parts = given.parts
    cancelled = parts.bulk_jobs.cancel(given.found, given.cause())
    wait_for(parts, parts.jobs.name)  # So that the next read shows it.
    return job_replies.show_summary(row_of(cancelled))
