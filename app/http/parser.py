"""How marshmallow schemas meet a request: one webargs parser, whose errors are our refusals."""

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from flask import Request
from marshmallow import Schema, ValidationError
from webargs.flaskparser import FlaskParser

from app.http.bodies import read_json
from domain.errors import ValidationFailed

TWICE = "Must be given once."
NOT_AN_OBJECT = "The body must be a JSON object."


class Parser(FlaskParser):
    """Loads bodies strictly and queries as plain values."""

    def load_json(self, _: Request, schema: Schema) -> Any:
        """Return the body; what is no object lacks every field that is required."""
        body = read_json()
        if not isinstance(body, dict):
            raise ValidationFailed({name: [NOT_AN_OBJECT] for name in schema.fields or ("body",)})
        return body

    def load_querystring(self, req: Request, schema: Schema) -> Any:
        """Return the query; a parameter that is read and comes twice is refused."""
        read = {field.data_key or name for name, field in schema.fields.items()}
        given = {name: values for name, values in req.args.lists() if name in read}
        twice = {name: [TWICE] for name, values in given.items() if len(values) > 1}
        if twice:
            raise ValidationFailed(twice)
        return {name: value for name, (value,) in given.items()}

    def handle_error(self, error: ValidationError, *_: Any, **__: Any) -> NoReturn:
        """Raise what the fields say, without the name of the place they came from."""
        assert isinstance(error.messages, dict)
        (messages,) = error.messages.values()
        raise ValidationFailed(flatten(messages)) from None


def flatten(
    messages: Mapping[Any, Mapping[Any, Any] | Iterable[str]], prefix: str = ""
) -> dict[str, list[str]]:
    """Name nested fields by their path, such as `phone_numbers.3`."""
    found: dict[str, list[str]] = {}
    for name, value in messages.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping):
            found |= flatten(value, f"{path}.")
        else:
            found[path] = list(value)
    return found
