"""Whether a reply is one that the OpenAPI document tells of: its status, headers, body and code."""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from tests.app.http.json_schema import problems, resolve

JSON = "application/json"
# What HTTP itself is about; the document tells of the other headers.
OF_HTTP = {
    "cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "date",
    "pragma",
    "vary",
    "x-content-type-options",
}


@cache
def described(encoded: bytes) -> dict[str, Any]:
    """Return the OpenAPI document."""
    document: dict[str, Any] = json.loads(encoded)
    return document


def operation_of(document: Mapping[str, Any], path: str, method: str) -> Mapping[str, Any] | None:
    """Return what the document says of an operation; None where it is not told."""
    found: Mapping[str, Any] | None = document["paths"].get(path, {}).get(method.lower())
    return found


def differences(
    document: Mapping[str, Any],
    operation: Mapping[str, Any],
    status: int,
    headers: Iterable[tuple[str, str]],
    body: bytes,
) -> list[str]:
    """Say what a reply has that the document does not tell, or lacks."""
    if str(status) not in operation["responses"]:
        return [f"{status} is not described: {body!r}"]
    response = resolve(document, operation["responses"][str(status)])
    sent = next((value for name, value in headers if name.lower() == "content-type"), JSON)
    kind, told = sent.partition(";")[0], response.get("content", {JSON: {}})
    if kind not in told:
        return [f"{kind} is not described"]
    found = _of_body(document, response, body) if kind == JSON else []
    return [*_of_headers(document, response, headers), *found]


def _of_headers(
    document: Mapping[str, Any], response: Mapping[str, Any], headers: Iterable[tuple[str, str]]
) -> Iterator[str]:
    sent = {name.lower(): value for name, value in headers}
    told = {name.lower(): resolve(document, each) for name, each in response["headers"].items()}
    yield from (f"{name} is not described" for name in sent.keys() - told.keys() - OF_HTTP)
    for name, facts in told.items():
        if name not in sent:
            yield from (f"{name} is missing",) if facts.get("required") else ()
            continue
        value: Any = sent[name]
        if facts["schema"]["type"] == "integer" and value.isdecimal():
            value = int(value)
        yield from problems(document, facts["schema"], value, name)


def _of_body(
    document: Mapping[str, Any], response: Mapping[str, Any], body: bytes
) -> Iterator[str]:
    if "content" not in response:
        yield from (f"a body is not described: {body!r}",) if body else ()
        return
    told = json.loads(body)
    media = response["content"][JSON]
    yield from problems(document, media["schema"], told)
    if (error := told.get("error")) is not None:
        code = error if isinstance(error, str) else error["code"]
        yield from () if code in response["x-error-codes"] else (f"{code} is not described",)
