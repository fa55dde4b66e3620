"""The check of replies against the document sees each kind of difference."""

from typing import Any

import pytest

from tests.app.http.json_schema import problems

DOCUMENT = {"components": {"schemas": {"Name": {"type": "string", "maxLength": 3}}}}
NAME = {"$ref": "#/components/schemas/Name"}
THING = {"properties": {"name": NAME}, "required": ["name"]}


@pytest.mark.parametrize(
    ("schema", "right", "wrong"),
    [
        ({"type": "integer"}, 1, True),
        ({"type": "boolean"}, True, 1),
        ({"type": ["string", "null"]}, None, 1),
        ({"type": "number"}, 1.5, "1.5"),
        ({"format": "uuid"}, "5b0e6a3c-9d1f-5c47-8f5e-2f4a7c9b1d60", "5b0e"),
        ({"format": "date-time"}, "2026-11-21T03:04:05Z", "2026-11-21T03:04:05"),
        ({"format": "uri"}, "https://api.example/docs", "/docs"),
        ({"enum": ["a"]}, "a", "b"),
        ({"const": ""}, "", "a"),
        ({"pattern": "^[a-z]{2}$"}, "ab", "ab\n"),
        ({"minimum": 1, "maximum": 2}, 2, 3),
        ({"minItems": 1, "maxItems": 2, "uniqueItems": True}, [1, 2], [1, 1]),
        ({"items": NAME}, ["abc"], ["abc", "abcd"]),
        ({"minProperties": 1}, {"a": 1}, {}),
        ({"additionalProperties": NAME}, {"a": "abc"}, {"a": 1}),
        (THING, {"name": "abc"}, {}),
        (THING, {"name": "abc"}, {"name": "abc", "colour": "red"}),
        (THING, {"name": "abc"}, {"name": "abcd"}),
        ({"anyOf": [NAME, {"type": "null"}]}, None, "abcd"),
        ({"$ref": "#/components/schemas/Name", "description": "Short."}, "abc", "abcd"),
    ],
)
def test_a_difference_is_seen_and_what_is_right_is_not_one(
    schema: dict[str, Any], right: object, wrong: object
) -> None:
    assert [*problems(DOCUMENT, schema, right)] == []
    assert [*problems(DOCUMENT, schema, wrong)] != []


def test_a_keyword_that_it_does_not_know_is_an_error() -> None:
    with pytest.raises(KeyError, match="dependentSchemas"):
        [*problems(DOCUMENT, {"dependentSchemas": {}}, {})]
