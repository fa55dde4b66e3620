"""Request bodies: at most 1 MiB of strict JSON, or none.

A group of operations: flask-smorest documents them, but stands not between request and view.

Ids in paths: a UUID in its one canonical spelling, or nothing that exists.

How marshmallow schemas meet a request: what they load of it, and their errors as refusals.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, Literal
from uuid import UUID

import flask_smorest
import msgspec
from marshmallow import Schema, ValidationError, missing
from msgspec import Struct
from webargs.core import is_json
from werkzeug.exceptions import BadRequest, RequestEntityTooLarge, UnsupportedMediaType

from app.http.edge.request import current_request
from domain.errors import NotFound, ValidationFailed

BODY_BYTES_MAX = 1024 * 1024


def check_body() -> None:
    """Read the body; refuse one that is too large or not declared as JSON. None at all is fine."""
    request, body = current_request(), _sent()
    if len(body) >= BODY_BYTES_MAX and request.content_length is None:
        raise RequestEntityTooLarge  # Of a body without a length no more than that is read.
    if not body:
        return
    encoding = request.headers.get("Content-Encoding", "identity")
    if not is_json(request.mimetype) or encoding != "identity":
        raise UnsupportedMediaType


def read_json() -> Any:
    """Return the parsed body, or an empty object when there is no body."""
    data = _sent()
    return parse_json(data) if data else {}


def _sent() -> bytes:
    """Return the body; werkzeug takes its time to find out that there is none."""
    request = current_request()
    environ = request.environ
    if not environ.get("CONTENT_LENGTH") and "wsgi.input_terminated" not in environ:
        return b""
    return request.get_data()


def parse_json(data: bytes) -> Any:
    """Parse RFC 8259 JSON in UTF-8; BadRequest for anything else.

    Refused too: NaN, infinities, nesting without end, and a member that comes twice, since two
    readers of such an object may see different values.
    """
    try:
        return json.loads(data.decode(), object_pairs_hook=_members, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise BadRequest from None


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError
    "".join(members).encode()  # A lone surrogate cannot be named in a reply: a ValueError.
    return members


def _no_constant(_: str) -> None:
    raise ValueError


def parse_id(text: str) -> UUID:
    """Return the UUID of a path; a malformed one is NotFound, like one that names nothing."""
    try:
        parsed = UUID(text)
    except ValueError:
        raise NotFound from None
    if str(parsed) != text.lower():
        raise NotFound
    return parsed


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


SCHEMA_REF = "#/components/schemas/{name}"

Decorator = Callable[[Any], Any]


class Blueprint(flask_smorest.Blueprint):
    """The blueprint of flask-smorest; its decorators only document, and schemas are made once.

    `reply_types` are the structs of its replies, which the OpenAPI document describes.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.reply_types: set[type[Struct]] = set()

    def arguments(
        self,
        schema: type[Schema],
        *,
        location: Location,
        needed: Callable[[], bool] | None = None,
        **options: Any,
    ) -> Decorator:
        """Load a part of the request behind the arguments of a view; see `loader` for `needed`."""
        made = schema()
        load = loader(made, location, needed)
        documented = _documentation(super().arguments(made, location=location, **options))

        def decorate(view: Any) -> Any:
            @wraps(documented(view))
            def loaded(*args: Any, **kwargs: Any) -> Any:
                return view(*args, load(), **kwargs)

            return loaded

        return decorate

    def replies(
        self,
        status: int,
        reply: Struct | type[Struct],
        description: str = "",
        headers: Mapping[str, Any] | None = None,
    ) -> Decorator:
        """Document a reply by an example, or by its type where there is none.

        Without a description the docstring of its type says what it is.
        """
        kind = reply if isinstance(reply, type) else type(reply)
        self.reply_types.add(kind)
        content: dict[str, Any] = {"schema": {"$ref": SCHEMA_REF.format(name=kind.__name__)}}
        if not isinstance(reply, type):
            content["example"] = msgspec.to_builtins(reply)
        response = {
            "description": description or kind.__doc__,
            **({"headers": headers} if headers else {}),
            "content": {"application/json": content},
        }
        return self.doc(responses={status: response})

    @staticmethod
    def doc(**facts: Any) -> Decorator:
        """Document whatever else there is."""
        return _documentation(flask_smorest.Blueprint.doc(**facts))


def _documentation(decorator: Decorator) -> Decorator:
    """Keep what a decorator documents, without the call that it would put around each request."""

    def decorate(view: Any) -> Any:
        view._apidoc = decorator(view)._apidoc  # noqa: SLF001  # Where flask-smorest keeps it.
        return view

    return decorate
