"""Number lookups: one number at once, or many as a job that is polled."""

from datetime import timedelta
from functools import partial
from typing import Any, Final

from flask import Response

from app.bootstrap.container import DOWNLOADS_SHARE
from app.http.edge.input import Blueprint, IdempotencyHeader, parse_id
from app.http.edge.media import CSV, JSON, NDJSON, also_sent_as
from app.http.edge.operation import operation
from app.http.edge.paging import offset_of, show_page
from app.http.edge.problem_docs import RETRY_AFTER
from app.http.edge.replies import (
    ETAG,
    IDEMPOTENCY_REPLAYED,
    LOCATION,
    NOT_MODIFIED,
    common_meta,
    json_response,
    replay_headers,
    success,
    tagged,
    wait_for,
)
from app.http.edge.request import container, current_cause, reached, request_context
from app.http.lookups import ended_jobs, job_replies
from app.http.lookups.input import (
    EXAMPLE,
    FORMATS,
    NOT_E164,
    NOT_SUMMARY,
    BulkBody,
    JobQuery,
    JobsQuery,
    LookupBody,
    LookupQuery,
    ResultsQuery,
    no_number_in_query,
)
from app.http.lookups.job_replies import (
    CANCELLED,
    JOB,
    JOB_ACCEPTED,
    JOB_PAGE,
    JobAccepted,
    charge_of,
    show_summary,
)
from app.http.lookups.replies import ANSWER, lookup_reply
from app.http.lookups.results import EXAMPLES, RESULTS, format_of, results_reply
from app.security.authorization import Caller
from app.settings import Settings
from domain import errors
from domain.errors import NumberLookupDisabled
from domain.lookups.bulk_commands import BulkRequest
from domain.lookups.bulk_job import BulkJob
from domain.lookups.single import LookupRequest, LookupResult
from projections.models.jobs import STATUSES, JobCounts, row_of


def require_lookup(caller: Caller) -> None:
    """Raise NumberLookupDisabled while lookups are off, for everybody or for the caller."""
    if not is_enabled(container().settings, caller):
        raise NumberLookupDisabled


def is_enabled(settings: Settings, caller: Caller) -> bool:
    """Tell whether lookups are on, for everybody and for the caller."""
    return settings.number_lookup_enabled and caller.lookup_enabled


SCOPE = "lookup"
LOOKUP = "/number-lookup"
POLL_S = "1"

blueprint = Blueprint(
    "Number lookup",
    __name__,
    description="Country, validity and carrier of phone numbers: one at once, or many as a "
    "job. When a lookup has a price, every answer is charged, also a repeated one.",
)

SINGLE_REFUSALS: Final = (
    errors.NumberLookupDisabled(),
    errors.ValidationFailed({"phone_number": [NOT_E164]}),
    errors.NotFound(errors.KEY_ERASED),
    errors.IdempotencyKeyReused(),
    errors.SpendingLimit(5_000, 49_999_000, 50_000_000, "USD"),
    errors.BillingNotConfigured(),
    errors.InsufficientBalance(5_000, 1_000, "USD"),
    errors.IdempotencyInProgress(),
    errors.RateLimited(),
    errors.NumberLookupUnavailable(),
)
BULK_REFUSALS: Final = (
    errors.NumberLookupDisabled(),
    errors.ValidationFailed({"phone_numbers.1": ["The same number stands at index 0."]}),
    errors.NotFound(errors.KEY_ERASED),
    errors.IdempotencyKeyReused(),
    errors.RateLimited(),
    errors.SpendingLimit(5_000_000, 49_000_000, 50_000_000, "USD"),
    errors.BillingNotConfigured(),
    errors.InsufficientBalance(5_000_000, 1_000_000, "USD"),
)


@blueprint.route(LOOKUP, methods=["POST"])
@operation(
    scope=SCOPE, refusals=SINGLE_REFUSALS, feature=require_lookup, takes_body=True, buys=True
)
@blueprint.arguments(LookupQuery, location="query")
@blueprint.arguments(
    LookupBody,
    location="json",
    required=False,
    needed=no_number_in_query,
    example={"phone_number": EXAMPLE},
)
@blueprint.arguments(IdempotencyHeader, location="headers")
@blueprint.replies(
    200,
    ANSWER,
    headers=IDEMPOTENCY_REPLAYED,
    leads_to=[
        ("read_lookup", "lookup_id", "/meta/lookup_id"),
        ("read_transaction", "transaction_id", "/meta/charge/transaction_id"),
    ],
)
def look_up(
    caller: Caller, query: dict[str, Any], body: dict[str, Any], header: dict[str, Any]
) -> Response:
    """Look up one number.

    The number stands in the query or in a JSON body; the query wins. A number of the right form
    that cannot exist is an answer (`valid` is false) and is charged. Without an answer nothing is
    charged.
    """
    parts = container()
    given = body | query
    age_s = given.get("max_age")
    wanted = LookupRequest(
        caller.organization_id,
        given["phone_number"],
        parts.settings.lookup_price_micros(caller.price_micros),
        parts.settings.currency,
        header.get("key"),
        None if age_s is None else timedelta(seconds=age_s),
    )
    result = parts.single_lookup.run(wanted, current_cause())
    reply = lookup_reply(parts, result, common_meta())
    return json_response(reply, headers=replay_headers(result.replayed))


def _find_lookup(caller: Caller, lookup_id: str) -> LookupResult:
    return container().single_lookup.read(caller.organization_id, parse_id(lookup_id))


@blueprint.route("/number-lookup/lookups/<lookup_id>", methods=["GET"])
@operation(scope=SCOPE, refusals=[errors.NotFound()], resource=_find_lookup)
@blueprint.replies(
    200,
    ANSWER,
    leads_to=[("read_transaction", "transaction_id", "/meta/charge/transaction_id")],
)
def read_lookup(_: Caller, found: LookupResult) -> Response:
    """Read the answer of an earlier lookup again.

    It costs nothing, and nobody is asked: `meta` says how old the answer is and what was charged
    then. `lookup_id` stands in the `meta` of the lookup.
    """
    return json_response(lookup_reply(container(), found, common_meta()))


@blueprint.route("/number-lookup/bulk", methods=["POST"])
@operation(scope=SCOPE, refusals=BULK_REFUSALS, feature=require_lookup, takes_body=True, buys=True)
@blueprint.arguments(
    BulkBody, location="json", example={"phone_numbers": [EXAMPLE, "+971508245915"]}
)
@blueprint.arguments(IdempotencyHeader, location="headers")
@blueprint.replies(
    202,
    JOB_ACCEPTED,
    headers=LOCATION | RETRY_AFTER | IDEMPOTENCY_REPLAYED,
    leads_to=[
        *((name, "job_id", "/data/job_id") for name in ("read_job", "read_results", "cancel_job")),
        ("read_transaction", "transaction_id", "/data/charge/transaction_id"),
    ],
)
def create_job(caller: Caller, body: dict[str, Any], header: dict[str, Any]) -> Response:
    """Look up many numbers as a job.

    The whole job is charged when it is accepted, and each item that fails is refunded. Poll it
    every 1 to 3 seconds until its status is `completed`, `failed` or `cancelled`.
    """
    parts = container()
    wanted = BulkRequest(
        caller.organization_id,
        body["phone_numbers"],
        parts.settings.lookup_price_micros(caller.price_micros),
        parts.settings.currency,
        header.get("key"),
    )
    job, replayed = parts.bulk_create.run(wanted, current_cause())
    location = f"{reached(parts.settings.numbers)}/number-lookup/bulk/{job.id}"
    headers = {"Location": location, "Retry-After": POLL_S, **replay_headers(replayed)}
    return success(JobAccepted(job.id, charge_of(row_of(job), 0)), 202, headers=headers)


@blueprint.route("/number-lookup/bulk", methods=["GET"])
@operation(
    scope=SCOPE,
    refusals=[errors.ValidationFailed({"status": [f"Must be one of: {', '.join(STATUSES)}."]})],
)
@blueprint.arguments(JobsQuery, location="query")
@blueprint.replies(200, JOB_PAGE, leads_to=[("read_job", "job_id", "/data/data/0/job_id")])
def list_jobs(caller: Caller, query: dict[str, Any]) -> Response:
    """List your jobs, newest first, without their items.

    A page past the end is an empty list. Jobs that have been erased are not listed.
    """
    parts, owner = container(), caller.organization_id
    wait_for(parts, parts.jobs.name)
    found, total = parts.jobs.page(
        parts.views,
        owner,
        query.get("status"),
        partial(parts.vault.holds, owner),
        offset=offset_of(query),
        limit=query["per_page"],
    )
    return success(show_page([show_summary(each) for each in found], total, query))


def _find_job(caller: Caller, job_id: str) -> JobCounts:
    owner, wanted = caller.organization_id, parse_id(job_id)
    try:
        return job_replies.find_job(container(), owner, wanted)
    except errors.NotFound:  # Perhaps it has been erased: then nothing of it may stay here.
        request_context().parts[ended_jobs.PART].drop(owner, wanted)
        raise


@blueprint.route("/number-lookup/bulk/<job_id>", methods=["GET"])
@operation(
    scope=SCOPE,
    refusals=[errors.NotFound(), errors.ValidationFailed({"fields": [NOT_SUMMARY]})],
    resource=_find_job,
)
@blueprint.arguments(JobQuery, location="query")
@blueprint.replies(200, JOB, headers=ETAG | RETRY_AFTER)
@blueprint.doc(responses={304: {"headers": RETRY_AFTER}})
@blueprint.doc(responses=NOT_MODIFIED)
def read_job(caller: Caller, job: JobCounts, query: dict[str, Any]) -> Response:
    """Read a job; with `fields=summary` without its items.

    `Retry-After` stands on it until it has ended. With `If-None-Match` an unchanged job is a 304
    without a body.
    """
    parts, ended = container(), request_context().parts[ended_jobs.PART]
    headers = {} if job.finished_at is not None else {"Retry-After": POLL_S}
    state = job_replies.encode_state(job)
    if "shown" in query:
        # With a tag of its own: a client that then asks for the items must not get an empty 304.
        return tagged(state + b" summary", lambda: show_summary(job), headers)
    kept = ended.find(caller.organization_id, job.id)
    if kept is not None and kept.state == state:
        return tagged(state, lambda: kept.data)
    row = job_replies.whole(parts, job)
    numbers = job_replies.open_numbers(parts, row)  # Once erased, they are 404 for everybody.
    state = job_replies.encode_state(row)
    return tagged(state, lambda: job_replies.show_job(parts, ended, row, numbers), headers)


@blueprint.route("/number-lookup/bulk/<job_id>/results", methods=["GET"])
@operation(
    scope=SCOPE,
    refusals=[
        errors.NotFound(),
        errors.ValidationFailed({"format": [f"Must be one of: {', '.join(FORMATS)}."]}),
        errors.NotAcceptable(JSON, CSV, NDJSON),
        errors.RateLimited(DOWNLOADS_SHARE),
    ],
    resource=_find_job,
)
@blueprint.arguments(ResultsQuery, location="query")
@also_sent_as(EXAMPLES)
@blueprint.replies(200, RESULTS)
def read_results(caller: Caller, job: JobCounts, query: dict[str, Any]) -> Response:
    """Read the items of a job as a file: JSON, CSV or NDJSON.

    A running job shows how far it is. The reply is sent while it is made: 429 while your
    organization has several such downloads under way. In CSV a cell that a spreadsheet could take
    for a formula begins with an apostrophe, numbers too.
    """
    parts, wanted = container(), format_of(query.get("format"))
    request_context().hold(parts.downloads.place(caller.organization_id))
    row = job_replies.whole(parts, job)
    return results_reply(parts, row, wanted, query.get("status"))


def _find_to_cancel(caller: Caller, job_id: str) -> BulkJob:
    return container().bulk_cancel.find(caller.organization_id, parse_id(job_id))


@blueprint.route("/number-lookup/bulk/<job_id>", methods=["DELETE"])
@operation(
    scope=SCOPE, refusals=[errors.NotFound(), errors.JobFinished()], resource=_find_to_cancel
)
@blueprint.replies(200, CANCELLED)
def cancel_job(caller: Caller, job: BulkJob) -> Response:
    """Cancel a job.

    Every item without an outcome is cancelled and refunded at once; what has ended stays, with its
    result. A job that is cancelled already gets the same reply. 409 `JOB_FINISHED` for one that
    has ended by itself.
    """
    _ = caller
    parts = container()
    cancelled = parts.bulk_cancel.run(job, current_cause())
    wait_for(parts, parts.jobs.name)  # So that the next read shows it.
    return success(show_summary(row_of(cancelled)))
