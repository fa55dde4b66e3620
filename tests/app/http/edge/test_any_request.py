"""Whatever is sent, the answer is JSON of a known shape and never an error of ours."""

import os
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.app.http.service import Tenant

EXAMPLES = 300 if os.environ.get("SOAK") == "1" else 30

PATHS = [
    "/number-lookup",
    "/number-lookup/bulk",
    "/number-lookup/bulk/8c1f0c7e-5b1f-4a5e-8a44-0f6f6f0e2d11",
    "/v1/wallet",
    "/v1/transactions",
    "/v1/transactions/8c1f0c7e-5b1f-4a5e-8a44-0f6f6f0e2d11",
    "/v1/plans",
    "/v1/links",
    "/auth/token",
]
FIELDS = ["phone_number", "phone_numbers", "page", "per_page", "kind", "from", "to", "reference"]
FIELDS += ["search", "max_price", "sort", "plan_id", "created_from", "expires_before"]
NUMBERS = ["+971508245915", "+15005550001", "+9991234567", " 14155552671"]
TEXT = st.text(max_size=20) | st.sampled_from(NUMBERS)
HEADER = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=8,
)
BODIES = st.one_of(
    st.fixed_dictionaries(
        {"json": st.dictionaries(st.sampled_from(FIELDS) | TEXT, VALUES, max_size=3)}
    ),
    st.fixed_dictionaries({"json": VALUES}),
    st.fixed_dictionaries({"data": st.binary(max_size=40), "content_type": HEADER}),
    st.fixed_dictionaries(
        {"data": st.binary(max_size=40), "content_type": st.just("application/json")}
    ),
    st.just({}),
)
REQUESTS = st.fixed_dictionaries(
    {
        "path": st.sampled_from(PATHS)
        | st.text(max_size=20).map(lambda text: f"/{quote(text, safe='')}"),
        "method": st.sampled_from(["GET", "POST", "PUT", "HEAD", "OPTIONS", "PATCH"]),
        "query_string": st.dictionaries(st.sampled_from(FIELDS), TEXT, max_size=3),
    }
)
HEADERS = st.dictionaries(
    st.sampled_from(
        ["Idempotency-Key", "X-Request-Id", "X-Organization-Id", "If-None-Match", "Accept"]
    ),
    HEADER,
    max_size=3,
)


@pytest.mark.rounds
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(request=REQUESTS, headers=HEADERS, body=BODIES)
def test_any_request_is_answered(
    acme: Tenant, request: dict[str, Any], headers: dict[str, str], body: dict[str, Any]
) -> None:
    reply = acme.open(**request, headers=headers, **body)
    assert reply.status_code < 500 or reply.json["error"]["code"] == "NUMBER_LOOKUP_UNAVAILABLE"
    assert reply.headers["X-Request-Id"]
    if request["method"] == "HEAD" or reply.status_code == 304:
        assert reply.data == b""
    elif request["path"] == "/auth/token":
        assert reply.json.keys() == {"error", "error_description"}
    elif reply.mimetype == "application/json":
        assert reply.json.keys() >= {"success", "meta"} or reply.status_code == 200
    else:
        assert request["path"] == "/docs"
