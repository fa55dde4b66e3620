"""Number lookups: one at once, or many as a job that is polled."""

from typing import Any

import msgspec
from flask import Response

from app.authorization import Caller
from app.http import ended_jobs, job_view
from app.http.blueprint import Blueprint
from app.http.commanding import IDEMPOTENCY_REPLAYED, current_cause, replay_headers
from app.http.conditional import tagged
from app.http.envelope import format_time, success
from app.http.feature import lookup_price_micros, require_lookup
from app.http.identifiers import parse_id
from app.http.later import Later
from app.http.lookup_docs import (
    BULK_REFUSALS,
    JOB_ACCEPTED,
    JOB_READ,
    SINGLE_EXAMPLE,
    SINGLE_REFUSALS,
)
from app.http.operation import operation
from app.http.paths import reached
from app.http.request_context import container, request_context
from app.http.schemas.job import BulkBody, JobAcceptedReply, JobReply
from app.http.schemas.lookup import LookupBody, LookupQuery, LookupReply, no_number_in_query
from app.http.schemas.request_headers import IdempotencyHeader
from domain.commands.bulk_create import BulkRequest
from domain.commands.single_lookup import LookupRequest, LookupResult
from domain.errors import NotFound
from domain.money import format_amount

LOOKUP = "/number-lookup"
POLL_S = "1"

blueprint = Blueprint(
    "Number lookup",
    __name__,
    description="Country, validity and carrier of phone numbers: one at once, or up to 1000 as a "
    "job. When a lookup has a price, every answer is charged, also a repeated one.",
)


@blueprint.route(LOOKUP, methods=["POST"])
@operation(scope="lookup", refusals=SINGLE_REFUSALS, feature=require_lookup, takes_body=True)
@blueprint.arguments(LookupQuery, location="query")
@blueprint.arguments(LookupBody, location="json", required=False, needed=no_number_in_query)
@blueprint.arguments(IdempotencyHeader, location="headers")
@blueprint.alt_response(
    200,
    schema=LookupReply,
    description="The answer.",
    example=SINGLE_EXAMPLE,
    headers=IDEMPOTENCY_REPLAYED,
)
def look_up(
    caller: Caller, query: dict[str, Any], body: dict[str, Any], header: dict[str, Any]
) -> Response | Later:
    """Look up one number.

    The number stands in the query or in a JSON body; the query wins. A number of the right form
    that cannot exist is an answer (`valid` is false) and is charged. Without an answer nothing is
    charged.
    """
    parts = container()
    wanted = LookupRequest(
        caller.organization_id,
        {**body, **query}["phone_number"],
        lookup_price_micros(caller),
        parts.settings.currency,
        header.get("key"),
    )
    if request_context().at_once:
        return Later(parts.single_lookup.begin(wanted, current_cause()), _show_lookup)
    return _show_lookup(parts.single_lookup.run(wanted, current_cause()))


@blueprint.route("/number-lookup/bulk", methods=["POST"])
@operation(scope="lookup", refusals=BULK_REFUSALS, feature=require_lookup, takes_body=True)
@blueprint.arguments(BulkBody, location="json")
@blueprint.arguments(IdempotencyHeader, location="headers")
@blueprint.alt_response(202, schema=JobAcceptedReply, **JOB_ACCEPTED)
def create_job(caller: Caller, body: dict[str, Any], header: dict[str, Any]) -> Response:
    """Look up many numbers as a job.

    The whole job is charged when it is accepted, and each item that fails is refunded. Poll it
    every 1 to 3 seconds until its status is `completed` or `failed`.
    """
    parts = container()
    wanted = BulkRequest(
        caller.organization_id,
        body["phone_numbers"],
        lookup_price_micros(caller),
        parts.settings.currency,
        header.get("key"),
    )
    job_id, replayed = parts.bulk_create.run(wanted, current_cause())
    location = f"{reached(parts.settings.numbers)}/number-lookup/bulk/{job_id}"
    headers = {"Location": location, "Retry-After": POLL_S, **replay_headers(replayed)}
    return success({"job_id": job_id}, 202, headers=headers)


@blueprint.route("/number-lookup/bulk/<job_id>", methods=["GET"])
@operation(scope="lookup", refusals=[NotFound()])
@blueprint.alt_response(200, schema=JobReply, **JOB_READ)
@blueprint.alt_response(304, description="`data` is what the ETag of `If-None-Match` stands for.")
def read_job(caller: Caller, job_id: str) -> Response:
    """Read a job.

    `Retry-After` stands on it until it has ended. With `If-None-Match` an unchanged job is a 304
    without a body.
    """
    parts, wanted = container(), parse_id(job_id)
    ended = request_context().parts[ended_jobs.PART]
    kept = job_view.find_ended(parts, ended, caller.organization_id, wanted)
    if kept is not None:
        return tagged(kept.state, lambda: msgspec.Raw(kept.data))
    row = job_view.find_job(parts, caller.organization_id, wanted)
    numbers = job_view.open_numbers(parts, row)  # Once they are erased, that is 404 for everybody.
    headers = {} if row.finished_at is not None else {"Retry-After": POLL_S}
    state = job_view.encode_state(row)
    return tagged(state, lambda: job_view.show_job(parts, ended, row, numbers), headers)


def _show_lookup(result: LookupResult) -> Response:
    headers = replay_headers(result.replayed)
    return success(result.facts, meta=_lookup_meta(result), headers=headers)


def _lookup_meta(result: LookupResult) -> dict[str, Any]:
    answer = result.lookup.answer
    meta: dict[str, Any] = {
        "lookup_id": result.lookup.id,
        "source": answer.source,
        "as_of": format_time(answer.as_of),
        "provider": answer.provider,
    }
    if answer.price is not None:
        meta["charge"] = {
            "transaction_id": answer.price.transaction_id,
            "amount": format_amount(answer.price.amount_micros),
            "currency": answer.price.currency,
        }
    return meta
