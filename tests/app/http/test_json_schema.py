"""The check of replies against the document sees what JSON Schema alone would let pass."""

from typing import Any

import pytest

from tests.app.http.json_schema import problems

THING = {"type": "object", "properties": {"name": {"type": "string"}}}
DOCUMENT = {"components": {"schemas": {"Thing": THING}}}
REFERENCE = {"$ref": "#/components/schemas/Thing", "description": "One."}


@pytest.mark.parametrize(
    ("schema", "right", "wrong"),
    [
        ({"format": "uuid"}, "5b0e6a3c-9d1f-5c47-8f5e-2f4a7c9b1d60", "5b0e"),
        ({"format": "date-time"}, "2026-11-21T03:04:05Z", "2026-11-21T03:04:05"),
        ({"format": "uri"}, "https://api.example/docs", "/docs"),
        ({"pattern": "^[a-z]{2}$"}, "ab", "ab\n"),
        ({"items": REFERENCE}, [{"name": "abc"}], [{"name": "abc", "colour": "red"}]),
        ({"anyOf": [REFERENCE, {"type": "null"}]}, None, {"colour": "red"}),
    ],
)
def test_a_difference_is_seen_and_what_is_right_is_not_one(
    schema: dict[str, Any], right: object, wrong: object
) -> None:
    assert [*problems(DOCUMENT, schema, right)] == []
    assert [*problems(DOCUMENT, schema, wrong)] != []
