"""The numbers in the documents are those of the code: sentences, written with the constants."""

import pytest

from app.adapters.stores import throttle
from app.bootstrap.container import IN_FLIGHT_MAX as ON_THREADS_MAX
from app.http.edge import calling, front
from app.http.edge.input import BODY_BYTES_MAX
from app.http.edge.schemas import PER_PAGE_MAX
from app.http.tokens import routes as tokens
from app.processes.stopping import CLEAN_END_S
from app.settings import HTTP_THREADS, WAITING_MAX, Settings
from domain.accounts import committer
from domain.links.waiting import share_of
from domain.lookups import answers, bulk, bulk_job, in_flight
from tests.tidy.source import ROOT
from workers import lookup_turns

KIB, MIB = 1024, 1024 * 1024
IN_WORDS = {3: "three", 5: "five"}
ORDINALS = {4: "fourth", 5: "fifth", 6: "sixth"}
DEFAULTS = Settings.from_env({})
PARTNERS, API = "docs/partners", "app/http/edge/openapi.md"
HEAD = f"over {front.HEADERS_MAX} headers, or over {front.HEAD_BYTES_MAX // KIB} KiB of them"
*RESTS, LAST = (f"{rest.total_seconds():g}" for rest in lookup_turns.RESTS)


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ("ARCHITECTURE.md", f"{HTTP_THREADS} threads behind it"),
        ("ARCHITECTURE.md", f"one message per slice of {bulk.SLICE_ITEMS} numbers"),
        ("ARCHITECTURE.md", f"at most {IN_WORDS[answers.ATTEMPTS_MAX]} times per item"),
        ("ARCHITECTURE.md", f"rests for {', '.join(RESTS)} and {LAST} s between its starts"),
        ("ARCHITECTURE.md", f"After {committer.SETTLE_S:g} s the reply is 503"),
        ("ARCHITECTURE.md", f"exits after {CLEAN_END_S:g} s"),
        ("docs/path-of-a-request.md", f"one of {HTTP_THREADS} threads"),
        (
            "docs/path-of-a-request.md",
            f"{ON_THREADS_MAX} that hold a thread, {in_flight.IN_FLIGHT_MAX} that hold none",
        ),
        ("docs/deployment.md", f"complete requests to {HTTP_THREADS} others"),
        ("docs/deployment.md", f"a body over {BODY_BYTES_MAX // MIB} MiB"),
        (
            "docs/deployment.md",
            f"a head over {front.HEAD_BYTES_MAX // KIB} KiB or of over {front.HEADERS_MAX} headers",
        ),
        ("docs/deployment.md", f"{calling.WAITING_REQUESTS_MAX:,} requests wait for a thread"),
        ("docs/deployment.md", f"over {front.HELD_BYTES_MAX // MIB} MiB are held"),
        ("docs/deployment.md", f"an idle one after {front.KEEP_ALIVE_S:g} s"),
        ("docs/deployment.md", f"when a process has {front.CONNECTIONS_MAX:,}"),
        (API, f"`per_page` (1 to {PER_PAGE_MAX})"),
        (API, f"`PAYLOAD_TOO_LARGE`: over {BODY_BYTES_MAX // MIB} MiB"),
        (API, f"`REQUEST_URI_TOO_LONG`: over {front.HEAD_BYTES_MAX // KIB} KiB"),
        (API, HEAD),
        (f"{PARTNERS}/errors.md", f"larger than {BODY_BYTES_MAX // MIB} MiB"),
        (f"{PARTNERS}/errors.md", f"longer than {front.HEAD_BYTES_MAX // KIB} KiB"),
        (f"{PARTNERS}/errors.md", HEAD),
        (f"{PARTNERS}/jobs.md", f"up to {DEFAULTS.bulk_numbers_max} unless this installation"),
        (f"{PARTNERS}/esim.md", f"({DEFAULTS.provisioning_deadline_s} seconds unless"),
        (f"{PARTNERS}/idempotency.md", f"({DEFAULTS.provisioning_deadline_s} seconds unless"),
    ],
)
def test_a_number_in_a_document_is_that_of_the_code(document: str, sentence: str) -> None:
    text = " ".join((ROOT / document).read_text("utf-8").split())
    assert sentence in text


def test_the_token_operation_tells_how_many_wrong_secrets_are_too_many() -> None:
    told = " ".join((tokens.issue_token.__doc__ or "").split())
    assert f"After {IN_WORDS[throttle.FAILURES_MAX]} wrong secrets" in told
    assert f"after {throttle.ADDRESS_FAILURES_MAX} of any clients" in told


def test_one_organization_holds_half_of_the_places_wherever_it_is_told() -> None:
    assert share_of(WAITING_MAX) * 2 == WAITING_MAX
    assert WAITING_MAX * 2 == HTTP_THREADS
    for document in ("docs/operations.md", "docs/queues.md", "docs/path-of-a-request.md"):
        assert "at most half" in (ROOT / document).read_text("utf-8"), document


def test_a_slice_has_a_rest_between_all_of_its_starts() -> None:
    assert len(lookup_turns.RESTS) == bulk_job.ATTEMPTS_MAX - 1
    told = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    assert f"after the {ORDINALS[bulk_job.ATTEMPTS_MAX]} start" in told
