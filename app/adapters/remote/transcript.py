"""Records calls to a provider and their replies, without personal data and secrets."""

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from app.adapters.remote.exchange import Outcome, Reply, Request

# Values that are words of the provider, such as a state, are kept; all others are replaced.
WORD = re.compile(r"[A-Za-z][A-Za-z_ -]{0,23}")
# Names of fields whose values may be secret or personal even if they look like a word.
PRIVATE = re.compile(
    r"token|secret|passw|key|auth|user|name|mail|phone|number|matching|code|lpa|url|href|address",
    re.IGNORECASE,
)
DIGITS = re.compile(r"[0-9]{5,}")
HEADERS = ("content-type", "retry-after", "x-ratelimit-limit", "x-ratelimit-remaining")
LIST_MAX = 2  # Items shown of a list; the rest has the same form.
SEGMENT_CHARS = 24  # Longer parts of a path are ids.


def redacted(request: Request, reply: Reply | Outcome, seconds: float) -> dict[str, Any]:
    """Return one exchange without numbers, ids, names and secrets."""
    url = urlsplit(request.url)
    facts: dict[str, Any] = {
        "method": request.method,
        "path": "/".join(_segment(each) for each in url.path.split("/")),
        "query": sorted(name for name, _ in parse_qsl(url.query, keep_blank_values=True)),
        "request": _shape_of(request.body or b"", words=False),
        "ms": round(seconds * 1000),
    }
    if not isinstance(reply, Reply):
        return facts | {"outcome": reply}
    headers = {k: v for k, v in reply.headers.items() if k in HEADERS}
    answer = _shape_of(reply.body, words=True)
    return facts | {"status": reply.status, "headers": headers, "reply": answer}


def _segment(text: str) -> str:
    return "…" if DIGITS.search(text) or len(text) > SEGMENT_CHARS else text


def _shape_of(body: bytes, *, words: bool) -> Any:
    if not body:
        return None
    try:
        return _shape(msgspec.json.decode(body), words=words)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return f"{len(body)} bytes that are no JSON"


def _shape(value: Any, *, words: bool) -> Any:
    """Return the form of a value; with `words`, also texts that are plain words."""
    if isinstance(value, Mapping):
        return {
            _segment(str(name)): _shape(each, words=words and not PRIVATE.search(str(name)))
            for name, each in value.items()
        }
    if isinstance(value, str):
        return value if words and WORD.fullmatch(value) else f"text of {len(value)}"
    if isinstance(value, Sequence):
        left = len(value) - LIST_MAX
        more = [f"and {left} more"] if left > 0 else []
        return [_shape(each, words=words) for each in value[:LIST_MAX]] + more
    if value is None or isinstance(value, bool):
        return value
    return "number"
