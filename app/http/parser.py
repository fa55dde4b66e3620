"""How marshmallow schemas meet a request: what they load of it, and their errors as refusals."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from marshmallow import Schema, ValidationError, missing

from app.http.bodies import read_json
from app.http.request_context import current_request
from domain.errors import ValidationFailed

TWICE = "Must be given once."
NOT_AN_OBJECT = "The body must be a JSON object."

Location = Literal["json", "query", "headers"]
Given = Callable[[], dict[str, Any]]


def described(description: str, **more: Any) -> dict[str, Any]:
    """Return what the OpenAPI document says of a field of a request."""
    return {"description": description, **more}


def loader(schema: Schema, location: Location, needed: Callable[[], bool] | None = None) -> Given:
    """Return what loads a part of the request.

    Where nothing was sent, and nothing is required or assumed, nothing is loaded; `needed` tells
    whether even so something is missing.
    """
    given = _GIVEN[location]([field.data_key or name for name, field in schema.fields.items()])
    optional = not any(
        field.required or field.load_default is not missing for field in schema.fields.values()
    )

    def load() -> dict[str, Any]:
        found = given()
        if optional and not found and not (needed is not None and needed()):
            return found
        try:
            loaded: dict[str, Any] = schema.load(found)
        except ValidationError as error:
            raise ValidationFailed(flatten(error.messages_dict)) from None
        return loaded

    return load


def _body(names: Iterable[str]) -> Given:
    def given() -> dict[str, Any]:
        body = read_json()
        if not isinstance(body, dict):  # It lacks every field that is required.
            raise ValidationFailed({name: [NOT_AN_OBJECT] for name in names or ("body",)})
        return body

    return given


def _query(names: Iterable[str]) -> Given:
    def given() -> dict[str, Any]:
        query = current_request().args
        read = {name: values for name in names if (values := query.getlist(name))}
        twice = {name: [TWICE] for name, values in read.items() if len(values) > 1}
        if twice:
            raise ValidationFailed(twice)
        return {name: value for name, (value,) in read.items()}

    return given


def _headers(names: Iterable[str]) -> Given:
    keys = {name: f"HTTP_{name.upper().replace('-', '_')}" for name in names}

    def given() -> dict[str, Any]:
        environ = current_request().environ
        return {name: environ[key] for name, key in keys.items() if key in environ}

    return given


_GIVEN: Mapping[Location, Callable[[list[str]], Given]] = {
    "json": _body,
    "query": _query,
    "headers": _headers,
}


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
