"""Number lookups: one number at once, or many as a job that is polled."""

from datetime import timedelta
from typing import Any, Final

from flask import Response

from app.http.edge.idempotency import IDEMPOTENCY_REPLAYED, IdempotencyHeader, replay_headers
from app.http.edge.input import Blueprint, parse_id
from app.http.edge.operation import operation
from app.http.edge.paths import reached
from app.http.edge.problem_docs import RETRY_AFTER
from app.http.edge.replies import (
    ETAG,
    LOCATION,
    NOT_MODIFIED,
    common_meta,
    json_response,
    success,
    tagged,
)
from app.http.edge.request import container, current_cause, request_context
from app.http.lookups import ended_jobs, job_replies
from app.http.lookups.input import (
    EXAMPLE,
    NOT_E164,
    BulkBody,
    LookupBody,
    LookupQuery,
    no_number_in_query,
)
from app.http.lookups.job_replies import JOB, JOB_ACCEPTED, JobAccepted
from app.http.lookups.replies import ANSWER, lookup_reply
from app.security.authorization import Caller
from app.settings import Settings
from domain import errors
from domain.errors import NumberLookupDisabled
from domain.lookups.bulk import BulkRequest
from domain.lookups.single import LookupRequest


def require_lookup(caller: Caller) -> None:
    """Raise NumberLookupDisabled while lookups are off, for everybody or for the caller."""
    if not is_enabled(container().settings, caller):
        raise NumberLookupDisabled


def is_enabled(settings: Settings, caller: Caller) -> bool:
    """Tell whether lookups are on, for everybody and for the caller."""
    return settings.number_lookup_enabled and caller.lookup_enabled


def price_micros(settings: Settings, caller: Caller) -> int:
    """Return what a lookup costs this caller: its own price, else the general one."""
    if caller.price_micros is not None:
        return caller.price_micros
    return settings.price_per_lookup_micros


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
@operation(scope=SCOPE, refusals=SINGLE_REFUSALS, feature=require_lookup, takes_body=True)
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
    leads_to=[("read_transaction", "transaction_id", "/meta/charge/transaction_id")],
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
        price_micros(parts.settings, caller),
        parts.settings.currency,
        header.get("key"),
        None if age_s is None else timedelta(seconds=age_s),
    )
    result = parts.single_lookup.run(wanted, current_cause())
    reply = lookup_reply(result, common_meta())
    return json_response(reply, headers=replay_headers(result.replayed))


@blueprint.route("/number-lookup/bulk", methods=["POST"])
@operation(scope=SCOPE, refusals=BULK_REFUSALS, feature=require_lookup, takes_body=True)
@blueprint.arguments(
    BulkBody, location="json", example={"phone_numbers": [EXAMPLE, "+971508245915"]}
)
@blueprint.arguments(IdempotencyHeader, location="headers")
@blueprint.replies(
    202,
    JOB_ACCEPTED,
    headers=LOCATION | RETRY_AFTER | IDEMPOTENCY_REPLAYED,
    leads_to=[("read_job", "job_id", "/data/job_id")],
)
def create_job(caller: Caller, body: dict[str, Any], header: dict[str, Any]) -> Response:
    """Look up many numbers as a job.

    The whole job is charged when it is accepted, and each item that fails is refunded. Poll it
    every 1 to 3 seconds until its status is `completed` or `failed`.
    """
    parts = container()
    wanted = BulkRequest(
        caller.organization_id,
        body["phone_numbers"],
        price_micros(parts.settings, caller),
        parts.settings.currency,
        header.get("key"),
    )
    job_id, replayed = parts.bulk_create.run(wanted, current_cause())
    location = f"{reached(parts.settings.numbers)}/number-lookup/bulk/{job_id}"
    headers = {"Location": location, "Retry-After": POLL_S, **replay_headers(replayed)}
    return success(JobAccepted(job_id), 202, headers=headers)


@blueprint.route("/number-lookup/bulk/<job_id>", methods=["GET"])
@operation(scope=SCOPE, refusals=[errors.NotFound()])
@blueprint.replies(200, JOB, headers=ETAG | RETRY_AFTER)
@blueprint.doc(responses={304: {"headers": RETRY_AFTER}})
@blueprint.doc(responses=NOT_MODIFIED)
def read_job(caller: Caller, job_id: str) -> Response:
    """Read a job.

    `Retry-After` stands on it until it has ended. With `If-None-Match` an unchanged job is a 304
    without a body.
    """
    parts, wanted = container(), parse_id(job_id)
    ended = request_context().parts[ended_jobs.PART]
    kept = job_replies.find_ended(parts, ended, caller.organization_id, wanted)
    if kept is not None:
        return tagged(kept.state, lambda: kept.data)
    row = job_replies.find_job(parts, caller.organization_id, wanted)
    # Once erased, the numbers are 404 for everybody.
    numbers = job_replies.open_numbers(parts, row)
    headers = {} if row.finished_at is not None else {"Retry-After": POLL_S}
    state = job_replies.encode_state(row)
    return tagged(state, lambda: job_replies.show_job(parts, ended, row, numbers), headers)
