"""The net has no holes: every operation, status and command is recorded, or there is a reason."""

import json
import re
from collections.abc import Mapping
from contextlib import closing
from typing import Any, cast

import pytest

from app.bootstrap.container import Container
from app.bootstrap.sandbox import FAILURES
from app.cli.root import cli
from app.http.application import create_app
from app.http.docs import DOCUMENT
from app.http.edge.problems import CODES
from app.settings import Settings
from domain.links.link import Link
from domain.log.log import Log, Recorded
from domain.webhooks.messages import EventContext, messages_of
from tests.app.cli.test_root import leaves
from tests.app.http.described import differences, operation_of
from tests.app.http.json_schema import problems, resolve
from tests.golden.files import EVENTS
from tests.net.operations import exchanges, operations, webhooks
from tests.net.recording import RECORDINGS

OF_EVERY_REQUEST = {
    408: "the server cuts off what does not come to its end, whatever it asks for",
    413: "the server refuses a body by its length, whatever it is for",
    414: "the server refuses the target before it knows the operation",
    431: "the server refuses the head before it knows the operation",
    500: "an error of our own cannot be ordered",
    501: "the server refuses the method or encoding before it knows the operation",
}
SERVERS_OWN = "it takes no input, so only the server itself says this, as to every request"
CROWDED = "more than 512 requests of one caller must wait"
IN_PROGRESS = "a twin waits for the first request as long as that may take, and gets its outcome"
ONLY_PATHS = "it has no resource in its path, so only a path that is not there is 404"
UNRECORDED: Mapping[str, str] = {
    **{
        f"GET {path} {status}": SERVERS_OWN
        for path in (
            "/.well-known/jwks.json",
            "/.well-known/oauth-authorization-server",
            "/livez",
            "/number-lookup/health",
            "/readyz",
        )
        for status in (400, 503)
        if (path, status) not in {("/readyz", 503), ("/number-lookup/health", 503)}
    },
    "GET /.well-known/jwks.json 429": CROWDED,
    "GET /.well-known/oauth-authorization-server 429": CROWDED,
    "POST /v1/deposits 429": CROWDED,
    "POST /number-lookup 404": ONLY_PATHS,
    "POST /number-lookup/bulk 404": ONLY_PATHS,
    "POST /number-lookup 409": IN_PROGRESS,
    "POST /v1/links 409": IN_PROGRESS,
    "POST /v1/links/{identifier}/cancel 502": "the network is asked before, and then it is a 503",
    "GET /v1/links/{identifier}/topup-plans 422": "it takes no input",
}


REPLIES_MIN = 900
# What stands in place of what is masked, in the form that the document tells of.
UNMASKED = {
    r'"<(?:duration|(?:position|size) \d+)>"': "1",
    r"<id \d+>": "8c1f0c7e-5b1f-4a5e-8a44-0f6f6f0e2d11",
    r"<(?:now|two weeks later|\d{4}-)[^>]*>": "2026-03-10T10:00:00.000Z",
    r"<code \d+>": "K2QW-7XTR-M3PA-ZYB4",
    r"<iccid(?: \d+)?>": "8988399900000000011",
    r"<msisdn \d+>": "+883999000000011",
    r"<client \d+>": f"cl_{'0' * 24}",
    r"<secret \d+>": f"whsec_{'0' * 43}=",
    r"<etag \d+>": f'W/"{"0" * 32}"',
    r"<(?:seconds|left)>": "9",
    r"<receiver>": "http://127.0.0.1",
}


@pytest.fixture(scope="module")
def document() -> Any:
    sandbox = Settings.from_env({"SANDBOX": "true"})  # It has more operations, and lacks none.
    with closing(Container(sandbox)) as container:
        return json.loads(create_app(container).extensions[DOCUMENT][""])


def test_every_status_of_every_operation_is_recorded(document: Any) -> None:
    recorded = {(each.method, each.path, each.status) for each in exchanges()}
    missing = {
        f"{each.method} {each.path} {status}"
        for each in operations(document)
        for status in sorted(each.statuses - OF_EVERY_REQUEST.keys())
        if not any(
            (method, found) == (each.method, status) and each.pattern.fullmatch(path)
            for method, path, found in recorded
        )
    }
    without = "a scenario of tests/net must record it; test_every_operation says what each is sent"
    assert missing == UNRECORDED.keys(), without


def test_a_repeat_of_every_operation_that_takes_a_key_is_recorded(document: Any) -> None:
    replayed = [each for each in exchanges() if ("idempotency-replayed", "true") in each.headers]
    taken = 0
    for each in operations(document):
        told = operation_of(document, each.path, each.method) or {}
        if any(it.get("name") == "Idempotency-Key" for it in told.get("parameters", ())):
            taken += 1
            assert any(
                it.method == each.method and each.pattern.fullmatch(it.path) for it in replayed
            ), each
    assert taken == 10


def test_every_error_code_is_recorded_or_can_be_scripted() -> None:
    """So a partner of a sandbox sees none of them first in production."""
    told = "".join(file.read_text() for file in RECORDINGS.rglob("*.txt"))
    scripted = {each.upper() for each in FAILURES["request"]}
    recorded = {*re.findall(r'"code": "([A-Z_]+)"', told)}
    assert {*CODES} - scripted - recorded == set()


def unmasked(text: str) -> str:
    for mask, instead in UNMASKED.items():
        text = re.sub(mask, instead, text)
    return text


def test_every_recorded_reply_is_one_that_the_document_tells_of(document: Any) -> None:
    known, seen = [*operations(document)], 0
    for each in exchanges():
        for operation in known:
            if operation.method == each.method and operation.pattern.fullmatch(each.path):
                break
        else:
            continue  # It is no operation.
        if not each.headers:
            continue  # Not all of it is recorded.
        told = operation_of(document, operation.path, each.method)
        assert told is not None
        headers = [(name, unmasked(value)) for name, value in each.headers]
        wrong = differences(document, told, each.status, headers, unmasked(each.body).encode())
        assert wrong == [], (each.method, each.path, each.status)
        seen += 1
    assert seen > REPLIES_MIN


def test_every_recorded_webhook_is_one_that_the_document_tells_of(document: Any) -> None:
    told = document["webhooks"]
    bodies = [json.loads(unmasked(each)) for each in webhooks()]
    read = (e for e in EVENTS if isinstance(e, Link.PlanStarted | Link.PlanEnded))
    # Nothing is read in the background here; and nothing else is needed for these two.
    found = (messages_of(Recorded(7, each), EventContext(cast("Log", None))) for each in read)
    bodies += [json.loads(each.body) for messages in found for each in messages]
    for each in bodies:
        media = told[each["type"]]["post"]["requestBody"]["content"]["application/json"]
        assert [*problems(document, media["schema"], each)] == [], each
        data = resolve(document, resolve(document, media["schema"])["properties"]["data"])
        assert each["data"].keys() <= data["properties"].keys(), each
    assert {each["type"] for each in bodies} == told.keys()


@pytest.mark.parametrize("status", sorted(OF_EVERY_REQUEST.keys() - {500}))
def test_what_the_server_says_to_every_request_is_recorded(status: int) -> None:
    files = (RECORDINGS / "server").glob("*.txt")
    assert any(f"\n-> {status}\n" in file.read_text() for file in files)


def test_every_command_is_recorded() -> None:
    texts = [file.read_text() for file in RECORDINGS.rglob("*.txt")]
    titles = {title for text in texts for title in re.findall(r"^== (.*)$", text, re.MULTILINE)}
    missing = {
        command
        for command in (" ".join(path) for path, _ in leaves(cli))
        if not any(f"{title} ".startswith(f"{command} ") for title in titles)
    }
    assert missing == set()


def test_every_recording_is_played() -> None:
    """The name of a recording is that of its scenario."""
    files = [file.relative_to(RECORDINGS) for file in RECORDINGS.rglob("*.txt")]
    orphans = [
        file
        for file in files
        if f"\ndef test_{file.stem}("
        not in (RECORDINGS.parent / f"test_{file.parent}.py").read_text()
    ]
    assert files
    assert orphans == []
