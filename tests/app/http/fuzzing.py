"""A fuzzer over every operation of the OpenAPI document (schemathesis), on ids that exist.

It sends what the document allows and what it forbids, and follows the document's links from reply
to request. The same seed gives the same requests, apart from ids and tokens, which are random.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import schemathesis
from schemathesis import Case
from schemathesis.config import SchemathesisConfig
from schemathesis.core import NOT_SET
from schemathesis.core.failures import AcceptedNegativeData, Failure
from schemathesis.core.parameters import ParameterLocation
from schemathesis.core.transport import Response
from schemathesis.engine import events, from_schema
from schemathesis.generation import GenerationMode
from schemathesis.openapi.checks import RejectedPositiveData, UseAfterFree
from schemathesis.schemas import BaseSchema

from app.http import sandbox
from app.http.catalogue import NOT_A_COUNTRY
from app.http.docs import DOCUMENT
from app.http.edge.input import NOTHING
from app.http.links.input import NO_CHANGE, TOO_MANY
from app.http.lookups.input import MAX_AGE_S, is_e164
from app.http.webhooks.events import NOT_A_CURSOR, NOT_YOURS
from domain.cause import utc_now
from domain.errors import IdempotencyKeyReused
from domain.links.buying import INCOMPATIBLE, UNKNOWN
from domain.links.change_plans import NOT_THERE
from domain.links.networks import NOT_SOLD
from domain.months import month_of
from domain.webhooks import destination
from tests.app.http.buying import BASIC, MORE, Buyer

KEY = "Idempotency-Key"
MISSING = "Missing data for required field."
URL_PROBLEMS = [
    destination.NOT_A_URL,
    destination.NOT_HTTPS,
    destination.WITH_USER,
    destination.WITH_FRAGMENT,
    destination.NOT_A_HOST,
    destination.NOT_AN_ADDRESS,
    destination.OTHER_PORT,
    destination.NOT_PUBLIC,
]
NUMBERS = ["+14155552671", "+4915112345678"]
DRY = {"true", "1", True}
OFTEN, SOMETIMES = 0.7, 0.4  # How often an id that exists stands in for a made-up one.


@dataclass
class Outcome:
    """What a run has sent, by operation, and what it has found."""

    cases: Counter[str] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Plan:
    """What to send: `examples` bounds the requests to one operation in a phase.

    `learn` puts what replies hold into later requests, which then depend on how quick replies are,
    and sends jobs of as many numbers as there may be; `test_bulk_jobs` does so in any case.
    """

    phases: Iterable[str]
    examples: int
    seed: int = 1
    learn: bool = False
    below: str = "/"  # Only operations whose path begins so.


def fuzz(buyer: Buyer, plan: Plan) -> Outcome:
    """Send requests to every operation."""
    schema = _schema_of(buyer, plan)
    outcome = Outcome()
    for event in from_schema(schema).execute():
        if isinstance(event, events.FatalError):
            raise event.exception
        if isinstance(event, events.NonFatalError):
            outcome.findings.append(f"{event.label}: {event.value!r}")
        if isinstance(event, events.ScenarioFinished):
            _note(outcome, event)
    return outcome


def _note(outcome: Outcome, event: events.ScenarioFinished) -> None:
    told = event.recorder
    for case_id, node in told.cases.items():
        label, interaction = node.value.operation.label, told.interactions.get(case_id)
        outcome.cases[label] += 1
        if interaction is not None and interaction.response is not None:
            outcome.answered[f"{label} {interaction.response.status_code}"] += 1
        for check in told.checks.get(case_id, []):
            if check.failure_info is not None:
                failure, call = check.failure_info.failure, check.failure_info.code_sample
                reply = interaction.response if interaction else None
                text = f"{reply.status_code} {reply.text[:400]}" if reply else ""
                found = f"{label}: {check.name}: {failure.title}\n{failure.message}\n{call}\n{text}"
                outcome.findings.append(found)


def _schema_of(buyer: Buyer, plan: Plan) -> BaseSchema:
    service = buyer.service
    document = json.loads(service.app.extensions[DOCUMENT][""])
    # Only clients whose tokens name no organization have this header read, and the fuzzer is none.
    del document["components"]["parameters"]["X-Organization-Id"]["schema"]["pattern"]
    paths = document["paths"].items()
    document["paths"] = {path: item for path, item in paths if path.startswith(plan.below)}
    if not plan.learn:  # To draw 1,000 different numbers takes longer than half of all the rest.
        del document["components"]["schemas"]["BulkBody"]["properties"]["phone_numbers"]["maxItems"]
    schema = schemathesis.openapi.from_dict(document, config=_config(buyer, plan))
    schema.app = service.app
    schema.hook("filter_failure")(_counts)
    return schema


def _of(dictionary: str, probability: float) -> Mapping[str, Any]:
    return {"dictionary": dictionary, "probability": probability}


PARAMETERS: Mapping[str, Any] = {
    "path.identifier": _of("links", OFTEN),
    "path.job_id": _of("jobs", OFTEN),
    "path.lookup_id": _of("lookups", OFTEN),
    "path.plan_id": _of("plans", OFTEN),
    "path.request_id": _of("requests", OFTEN),
    "path.month": _of("months", OFTEN),
    "path.webhook_id": _of("webhooks", OFTEN),
    "path.delivery_id": _of("deliveries", OFTEN),
    "body.url": _of("urls", OFTEN),
    "path.transaction_id": _of("transactions", OFTEN),
    "query.phone_number": _of("numbers", SOMETIMES),
    "query.country": _of("countries", OFTEN),
    "query.after": _of("cursors", OFTEN),
    "query.webhook_id": _of("webhooks", OFTEN),
    "body.phone_number": _of("numbers", SOMETIMES),
    "body.plan_id": _of("plans", OFTEN),
    "body.add[*]": _of("plans", OFTEN),
}


def _config(buyer: Buyer, plan: Plan) -> SchemathesisConfig:
    known = _what_exists(buyer)
    token = buyer.headers["Authorization"].removeprefix("Bearer ")
    secret = {"username": buyer.client_id, "password": f"s-{buyer.client_id}"}
    heard = {"extra-data-sources": {"responses": plan.learn}}
    # Feedback of errors would amend the document by what ours name, so its gaps would stay unseen.
    learning = {
        "examples": heard,
        "coverage": heard,
        "fuzzing": heard | {"error-feedback": {"enabled": False}},
        "stateful": {},
    }
    return SchemathesisConfig.from_dict(
        {
            "seed": plan.seed,
            "continue-on-failure": True,
            "suppress-health-check": ["all"],  # They measure the load of the machine.
            "cache": {"enabled": False},
            "headers": {"Accept-Encoding": "identity"},  # It reads the bytes as they come.
            "auth": {
                "openapi": {
                    "oauth2": {"bearer": token},
                    "payments": {"bearer": token},
                    "basic": secret,
                }
            },
            "dictionaries": {name: {"values": values} for name, values in known.items()},
            "parameters": PARAMETERS,
            "generation": {"max-examples": plan.examples, "deterministic": True, "no-shrink": True},
            "phases": {
                name: {"enabled": name in plan.phases, **facts} for name, facts in learning.items()
            },
        }
    )


def _what_exists(buyer: Buyer) -> dict[str, list[str]]:
    links = [buyer.link(), buyer.link(MORE)]
    job, long = buyer.finished_job(NUMBERS), buyer.create_job(NUMBERS).json["data"]
    buyer.service.until_projected("transactions", "statements", "links", "jobs")
    for each in buyer.get("/v1/webhooks").json["data"]:  # There is room for ten.
        buyer.open("DELETE", f"/v1/webhooks/{each['id']}")
    webhook_id = buyer.webhook()
    return {
        "webhooks": [webhook_id],
        "cursors": [buyer.get("/v1/events").json["data"]["next"]],
        "deliveries": [buyer.test_delivery(webhook_id)],
        "urls": ["https://hooks.example/a", "https://hooks.example:443/b?c"],
        "links": [*(link["id"] for link in links), links[0]["iccid"]],
        "requests": [links[0]["id"]],
        "jobs": [job["job_id"], long["job_id"]],
        "lookups": [buyer.look_up(NUMBERS[0]).json["meta"]["lookup_id"]],
        "plans": [buyer.plans[BASIC], buyer.plans[MORE]],
        "transactions": [each["id"] for each in buyer.transactions()[:3]],
        "months": [month_of(utc_now())],
        "numbers": NUMBERS,
        "countries": ["DE", "fr", "MC"],
    }


@dataclass(frozen=True)
class Refusal:
    """Why a request was refused: its code, and what a validation error says of the fields."""

    case: Case
    code: str
    messages: set[str]


# What a schema cannot say, so no request can be held to it. Each is as narrow as its reason.


def _key_has_another_request(refusal: Refusal) -> bool:
    """The fuzzer sends one key with many bodies, and of these only the first may be accepted."""
    return refusal.code == IdempotencyKeyReused.code and KEY in refusal.case.headers


def _names_what_is_not_there(refusal: Refusal) -> bool:
    """A body may name ids of the right form that exist nowhere, or do not belong to this link."""
    known = {UNKNOWN, NOT_THERE, NOT_SOLD, INCOMPATIBLE}
    return bool(refusal.messages) and refusal.messages <= known


def _two_parts_go_together(refusal: Refusal) -> bool:
    """A schema bounds each of two lists, a sentence both; and some filters must stand alone."""
    are_apart = all(each.startswith("Must be given without ") for each in refusal.messages)
    return refusal.messages in ({TOO_MANY}, {NO_CHANGE}) or bool(refusal.messages and are_apart)


def _letters_are_no_country(refusal: Refusal) -> bool:
    """The pattern is two letters in either case; the text names ISO 3166-1, with 249 countries."""
    known = all(each.startswith(NOT_A_COUNTRY) for each in refusal.messages)
    return known and len((refusal.case.query or {}).get("country", "")) == len("DE")


def _is_not_played_so(refusal: Refusal) -> bool:
    """What goes with an action or a failure, and where a plan works, no schema can say."""
    if refusal.case.operation.path.startswith("/v1/sandbox/deposits"):
        return all("another amount" in it or "at most" in it for it in refusal.messages)
    begun = "Is not used ", NOT_A_COUNTRY
    told = {each for each in refusal.messages if not each.startswith(begun)}
    known = {it for name, it in vars(sandbox).items() if name.isupper() and isinstance(it, str)}
    is_played = refusal.case.operation.path.startswith("/v1/sandbox")
    return (
        is_played
        and bool(refusal.messages)
        and told <= {*known, *sandbox.NOT_SO.values(), NOT_THERE}
    )


def _number_stands_nowhere(refusal: Refusal) -> bool:
    """A lookup needs its number in the query or in the body; OpenAPI has no word for this `or`."""
    in_query = "phone_number" in (refusal.case.query or {})
    return refusal.messages == {MISSING} and not in_query and refusal.case.body is NOT_SET


def _leads_nowhere_public(refusal: Refusal) -> bool:
    """The format `uri` says neither which hosts are public nor which ports may be used."""
    return bool(refusal.messages) and refusal.messages <= set(URL_PROBLEMS)


def _is_no_cursor_of_ours(refusal: Refusal) -> bool:
    """A cursor has the form of the pattern and a checksum; an endpoint must be one's own."""
    return bool(refusal.messages) and refusal.messages <= {NOT_A_CURSOR, NOT_YOURS}


REFUSED_RIGHTLY: tuple[Callable[[Refusal], bool], ...] = (
    _key_has_another_request,
    _names_what_is_not_there,
    _two_parts_go_together,
    _letters_are_no_country,
    _is_not_played_so,
    _number_stands_nowhere,
    _leads_nowhere_public,
    _is_no_cursor_of_ours,
)


def _is_age(name: str, value: object) -> bool:
    return name == "max_age" and type(value) is int and 0 <= value <= MAX_AGE_S


def _query_wins(case: Case) -> bool:
    """A number in the query makes that of the body ignored, whatever it is."""
    number = (case.query or {}).get("phone_number")
    body = case.body if isinstance(case.body, dict) else {"a body": case.body}
    others = {name for name in body if name != "phone_number" and not _is_age(name, body[name])}
    is_lookup = case.operation.label == "POST /number-lookup"
    return is_lookup and isinstance(number, str) and is_e164(number) and not others


def _wrong(case: Case) -> set[ParameterLocation]:
    """Return which parts of a request break a rule."""
    parts = case.meta.components if case.meta else {}
    return {place for place, part in parts.items() if part.mode is GenerationMode.NEGATIVE}


def _dry_run_ignores(case: Case) -> bool:
    """A dry run ignores the key and `Prefer`, whatever they are; nothing else may be wrong."""
    is_dry = (case.query or {}).get("dry_run") in DRY
    is_order = case.operation.label == "POST /v1/links"
    return is_order and is_dry and _wrong(case) == {ParameterLocation.HEADER}


def _sends_no_body(case: Case) -> bool:
    """What some clients send where they send nothing counts as no body."""
    return case.body in NOTHING and _wrong(case) == {ParameterLocation.BODY}


def _has_white_ends(case: Case) -> bool:
    """White space around a value of a query is ignored, also where there is nothing else."""
    values = [each for each in (case.query or {}).values() if isinstance(each, str)]
    is_white = any(each != each.strip() for each in values)
    return is_white and _wrong(case) == {ParameterLocation.QUERY}


def _is_kept_when_ended(case: Case) -> bool:
    """`DELETE` ends a link or cancels a job; both can be read for ever after."""
    return case.operation.path.startswith(("/v1/links/{", "/number-lookup/bulk/{"))


def _counts(_: object, failure: Failure, case: Case, response: Response) -> bool:
    """Tell whether a failure is one: nothing is dropped but what stands above."""
    if isinstance(failure, AcceptedNegativeData):
        excuses = (_query_wins, _dry_run_ignores, _sends_no_body, _has_white_ends)
        return not any(excuse(case) for excuse in excuses)
    if isinstance(failure, UseAfterFree):
        return not _is_kept_when_ended(case)
    if not isinstance(failure, RejectedPositiveData):
        return True
    reply = response.json()
    if not isinstance(reply["error"], dict):  # The token endpoint has errors of its own shape.
        return True
    messages = {each for values in reply.get("errors", {}).values() for each in values}
    refusal = Refusal(case, reply["error"]["code"], messages)
    return not any(excuse(refusal) for excuse in REFUSED_RIGHTLY)
