"""Every exception has one status and one code, and leaks nothing."""

import logging
from collections.abc import Iterator

import pytest
from eventsourcing.persistence import OperationalError
from sqlalchemy.exc import InterfaceError
from werkzeug.exceptions import Gone, RequestURITooLarge
from werkzeug.test import TestResponse

from app.http.application import create_app
from app.http.edge.problems import retry_after
from app.http.edge.replies import META, error_detail, failure_body
from domain.errors import (
    REFUSALS,
    ClockOff,
    Conflict,
    IdempotencyInProgress,
    InstallationHeld,
    LinkBusy,
    NetworkUnavailable,
    NumberLookupUnavailable,
    ProvisioningError,
    RateLimited,
    Refused,
    ServiceUnavailable,
    ValidationFailed,
)
from domain.ids import derive_id
from tests.app.http.service import Service, Tenant, code_of

CANARY = "+14155550199"


def every_subclass(kind: type[Refused]) -> Iterator[type[Refused]]:
    for subclass in kind.__subclasses__():
        if subclass.__module__.startswith("domain."):
            yield subclass
            yield from every_subclass(subclass)


def test_every_refusal_has_one_status_and_a_code_of_its_own() -> None:
    refusals = set(every_subclass(Refused))
    refusals -= {InstallationHeld, ClockOff}  # Reasons of SERVICE_UNAVAILABLE.
    assert set(REFUSALS.values()) == refusals
    assert all(refusal.status in range(400, 600) for refusal in refusals)


@pytest.mark.parametrize("kind", [*every_subclass(Refused)])
def test_retryable_is_stated_where_it_must_be_and_true_where_it_helps(kind: type[Refused]) -> None:
    refusal = kind.example()
    details = error_detail(refusal).details or {}
    stated = refusal.status in {409, 429} or refusal.status >= 500
    retryable = {IdempotencyInProgress, LinkBusy, RateLimited, NetworkUnavailable}
    retryable |= {NumberLookupUnavailable, ProvisioningError, ServiceUnavailable}
    retryable |= {InstallationHeld, ClockOff}
    assert ("retryable" in details) == stated
    assert details.get("retryable", False) == (kind in retryable)
    assert ("Retry-After" in retry_after(refusal)) == (kind in retryable)


def test_a_validation_error_ends_with_its_first_problem_and_empty_details_are_never_sent() -> None:
    refusal = ValidationFailed({"add.0": ["It is not.", "Nor that."], "add.1": ["No."]})
    said = failure_body(refusal, META).error.message
    assert said == "The request is not valid. add.0: It is not."
    assert "add.0" not in str(refusal)  # The name of a field may be its sender's secret.
    for kind in every_subclass(Refused):
        assert failure_body(kind.example(), META).error.details != {}


def raising(service: Service, *errors: Exception) -> list[TestResponse]:
    app = create_app(service.container)

    def fail(number: int) -> None:
        raise errors[number]

    app.add_url_rule("/fail/<int:number>", view_func=fail)
    return [app.test_client().get(f"/fail/{number}") for number in range(len(errors))]


AWAY = (503, "SERVICE_UNAVAILABLE", "5")
ANSWERS: list[tuple[Exception, tuple[int, str, str | None]]] = [
    *((kind(CANARY), (500, "INTERNAL_ERROR", None)) for kind in (ValueError, KeyError)),
    (RecursionError(CANARY), (500, "INTERNAL_ERROR", None)),
    (InterfaceError(CANARY, {"n": CANARY}, Exception(CANARY)), AWAY),
    (OperationalError(CANARY), AWAY),
    (Conflict(derive_id("some", "stream")), AWAY),
    (ServiceUnavailable(), AWAY),
    (RateLimited(), (429, "RATE_LIMITED", "1")),
    (IdempotencyInProgress(), (409, "IDEMPOTENCY_IN_PROGRESS", "1")),
    (RequestURITooLarge(CANARY), (414, "REQUEST_URI_TOO_LONG", None)),
    (Gone(CANARY), (410, "GONE", None)),
]


def test_an_exception_is_answered_without_a_word_of_its_own(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    replies = raising(service, *(error for error, _ in ANSWERS))
    for (error, answer), reply in zip(ANSWERS, replies, strict=True):
        told = (reply.status_code, code_of(reply), reply.headers.get("Retry-After"))
        assert told == answer, error
        if answer[0] >= 500 or answer[0] in {409, 429}:
            assert reply.json["error"]["details"]["retryable"] is (answer[2] is not None)
        assert CANARY not in reply.text
    assert CANARY not in caplog.text


def test_an_unexpected_error_is_logged_with_its_place_and_what_has_no_answer_has_one(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    class Unknown(Refused):
        """A refusal without a status, never raised."""

    raising(service, ValueError(CANARY))
    (record,) = [each for each in caplog.records if each.name == "app.http.edge.errors"]
    assert "ValueError" in record.getMessage()
    assert "in fail" in record.getMessage()
    (reply,) = raising(service, Unknown(CANARY))
    assert (reply.status_code, code_of(reply)) == (500, "INTERNAL_ERROR")
    assert CANARY not in reply.text + caplog.text


def test_a_key_with_another_age_is_told_so(acme: Tenant) -> None:
    def ask(key: str, **more: object) -> TestResponse:
        number = {"phone_number": "+14155552671"}
        headers = {"Idempotency-Key": key}
        return acme.post("/number-lookup", query_string={**number, **more}, headers=headers)

    ages: list[tuple[dict[str, int], dict[str, int]]] = [
        ({}, {"max_age": 0}),
        ({"max_age": 0}, {"max_age": 60}),
        ({"max_age": 1}, {}),
    ]
    for key, (first, other) in zip("abc", ages, strict=True):
        assert ask(key, **first).status_code == 200
        assert ask(key, **first).headers["Idempotency-Replayed"] == "true"
        refused = ask(key, **other)
        assert code_of(refused) == "IDEMPOTENCY_KEY_REUSED"
        assert "another max_age; use a new key" in refused.json["error"]["message"]
