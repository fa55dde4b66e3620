"""Input of requests: bodies of at most 1 MiB strict JSON, ids in paths, schemas and their fields.

Marshmallow schemas read the parts of a request, and their errors become refusals. The schema of a
body has an `example`.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from math import inf
from threading import Lock
from typing import Any, Final, NoReturn
from uuid import UUID

from flask import Request
from marshmallow import Schema, ValidationError, fields, pre_load, validate
from webargs.flaskparser import FlaskParser
from werkzeug.exceptions import BadRequest, UnsupportedMediaType

from app.http.edge.request import CURRENT, UUID_FORM, current_request, repeated
from app.http.edge.schemas import OR_EMPTY
from domain import strict_json
from domain.errors import NotFound, ValidationFailed
from domain.links.esim import ICCID_FORM
from projections.engine.shape import NAME, OR, id_of, one_of

BODY_BYTES_MAX = 1024 * 1024
MEMBERS_MAX = 100  # Of an object in a body; ours have at most six.
PROBLEMS_MAX = 20  # Whoever meets more has sent something else than he meant.
WHOLE_LIST = "phone_numbers"  # Of this list all problems are told, because clients mend it by them.
# Parsed, a body can take fifteen times its bytes, so large ones are parsed one at a time.
LARGE_BYTES = 64 * 1024
NOT_A_LIST = "Not a valid list."
NOT_A_FLAG = "Must be true or false."
TOO_MANY_MEMBERS = f"No object may have more than {MEMBERS_MAX} members."

# Words of a field that the document has; others are marshmallow's, which refuses a misspelt one.
OF_DOCUMENT: Final = {
    *("anyOf", "default", "enum", "examples", "format", "maxItems", "maxLength", "maximum"),
    *("minItems", "minimum", "pattern", "type", "uniqueItems", NAME, OR),
}
_parsing_large = Lock()

Members = Callable[[strict_json.Pairs], dict[str, Any]]


def read_body(environ: Mapping[str, Any]) -> bytes:
    """Return the body, if any; refuse one that is not declared as JSON."""
    if not environ.get("CONTENT_LENGTH"):  # The server sets it also where it came in chunks.
        return b""
    request = current_request()
    body = request.get_data()
    if body and (not request.is_json or is_packed()):
        raise UnsupportedMediaType
    data = body.removeprefix(BOM_UTF8)  # RFC 8259 §8.1 lets a reader ignore it.
    return b"" if data.isspace() else data


def is_packed() -> bool:
    return current_request().headers.get("Content-Encoding", "").lower() not in {"", "identity"}


def parse_json(data: bytes, members: Members = strict_json.members_once) -> Any:
    """Return what JSON says, or an empty object for nothing. Raises BadRequest."""
    try:
        if len(data) < LARGE_BYTES:
            return strict_json.parse(data, members) if data else {}
        with _parsing_large:
            return strict_json.parse(data, members)
    except ValueError:
        raise BadRequest from None


def _few_members(pairs: strict_json.Pairs) -> dict[str, Any]:
    """Return an object; refuse one with too many members before a message is made for each."""
    if len(pairs) > MEMBERS_MAX:
        raise ValidationFailed({"body": [TOO_MANY_MEMBERS]})
    return strict_json.members_once(pairs)


def parse_id(text: str) -> UUID:
    """Return the UUID of a path; a malformed one is NotFound, like one that names nothing."""
    with suppress(ValueError):
        if str(parsed := UUID(text)) == text.lower():
            return parsed
    raise NotFound


class Reads(fields.Field[Any]):
    """Before a field of marshmallow: `read` makes something of a value, and needs nothing else.

    The document `says` what it is, and has what is `OF_DOCUMENT`.
    """

    def __init__(
        self, says: str = "", *given: Any, form: Mapping[str, Any] = {}, **kwargs: Any
    ) -> None:
        words = {name: kwargs.pop(name) for name in [*kwargs] if name in OF_DOCUMENT}
        about = {**form, **({"description": says} if says else {}), **words}
        super().__init__(*given, metadata=about, **kwargs)

    def read(self, value: Any) -> Any:
        """Return what the field itself makes of a value."""
        return super()._deserialize(value, None, None)

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> Any:
        return self.read(value)

    def _validate(self, value: Any) -> None:
        if self.validators:  # Marshmallow makes a list of them each time, also of none.
            super()._validate(value)


class Text(Reads, fields.String):
    """A text."""


A_UUID: Final = {"type": "string", "format": "uuid"}


class Id(Reads, fields.Field[UUID]):
    """A UUID in its canonical spelling, as in paths."""

    def __init__(self, says: str = "", **kwargs: Any) -> None:
        super().__init__(says, form={} if "anyOf" in kwargs else A_UUID, **kwargs)

    def read(self, value: Any) -> UUID:
        with suppress(NotFound):
            if isinstance(value, str):
                return parse_id(value)
        raise ValidationError("Not a valid UUID.")


class Few(Reads, fields.List[Any]):
    """A list of at most `most` items: too many are one error, not one for each.

    With `same`, which is told where an item stands again, each stands there only once.
    """

    def __init__(
        self, says: str, item: Any, *, most: int, too_many: Any, same: str = "", **kwargs: Any
    ) -> None:
        super().__init__(says, item, **kwargs)
        self.most, self.too_many, self.same = most, too_many, same

    def read(self, value: Any) -> list[Any]:
        if isinstance(value, list) and len(value) > self.most:
            raise ValidationError(self.too_many)
        items: list[Any] = super().read(value)
        first = dict[Any, int]()
        again = [(at, it) for at, it in enumerate(items) if first.setdefault(it, at) != at]
        if self.same and again:
            raise ValidationError({at: [self.same.format(first[it])] for at, it in again})
        return items


CLIENT_ID: Final = "cl_2f7f0e5c8d13"  # In all examples.
# The ids in paths whose name does not say all: what it is, its form, an example.
IDS: Mapping[str, tuple[str, dict[str, str], str]] = {
    "client_id": ("The `client_id`.", {}, CLIENT_ID),
    "identifier": (
        "The id of the link, or its ICCID (18 to 22 digits).",
        {"pattern": f"^({ICCID_FORM}|{UUID_FORM})$"},
        id_of("link"),
    ),
    "month": ("The month (UTC).", {"pattern": "^[0-9]{4}-(0[1-9]|1[0-2])$"}, "2026-11"),
    "request_id": ("The id of the request, from its 202.", {"format": "uuid"}, id_of("link")),
    "webhook_id": ("The id of the endpoint.", {"format": "uuid"}, id_of("webhook")),
}


def in_path(name: str) -> dict[str, Any]:
    """Return what the OpenAPI document says of an id in a path."""
    thing = name.removesuffix("_id")
    usual = f"The id of the {thing}.", {"format": "uuid"}, id_of(thing)
    says, form, shown = IDS.get(name, usual)
    schema = {"type": "string", **form, "examples": [shown]}
    return {"in": "path", "name": name, "description": says, "schema": schema}


TWICE = "Must be given once."
NOTHING: tuple[object, ...] = (None, [], "")  # What axios, PHP and others send where no body is.


def choice(
    values: Collection[str], says: str, name: str, *, required: bool = False, **more: Any
) -> Text:
    """Return a field for one of these values, or none; the document gives this choice a name."""
    known = one_of(name, values, *([] if required else [OR_EMPTY]))
    return Text(says, required=required, validate=validate.OneOf(values), **known, **more)


class Parser(FlaskParser):
    """The parser of flask-smorest, with our bounds of a body, our order and our errors."""

    def load_json(self, req: Request, schema: Schema) -> Any:  # noqa: ARG002  # Of webargs.
        return in_body(read_body(req.environ))

    def load_querystring(self, req: Request, schema: Schema) -> Any:  # noqa: ARG002  # As above.
        return in_query(schema, CURRENT.get().sent_query)

    def handle_error(self, error: ValidationError, *_: Any, **__: Any) -> NoReturn:
        raise ValidationFailed(messages_shown(*error.messages_dict.values()))  # By location.


def in_query(schema: Schema, query: Mapping[str, list[str]]) -> dict[str, Any]:
    """Return the parameters that a schema reads; refuse one that is given more than once."""
    sent, twice = dict[str, Any](), dict[str, list[str]]()
    for attribute, field in schema.fields.items():
        name = field.data_key or attribute
        if name in query:
            sent[name], *more = query[name]
            if more:
                twice[name] = [TWICE]
    if twice:
        raise ValidationFailed(twice)
    return sent


def in_body(data: bytes) -> dict[str, Any]:
    """Return the object that a body is; an empty one for what some send where there is none."""
    if not data:
        return {}
    body = parse_json(data, _few_members)
    if body in NOTHING:
        return {}
    if not isinstance(body, dict):
        raise ValidationFailed({"body": ["The body must be a JSON object."]})
    return body


def messages_shown(messages: Mapping[Any, Any]) -> dict[str, list[str]]:
    """Return the problems that are told; names that the client has chosen are cut."""
    others = {repeated(str(name)): problems for name, problems in messages.items()}
    is_list = isinstance(others.get(WHOLE_LIST), Mapping)
    found = _flat({WHOLE_LIST: others.pop(WHOLE_LIST)}) if is_list else {}
    left = PROBLEMS_MAX
    for name, problems in _flat(others).items():
        if left <= 0:
            break
        found[name] = problems[:left]
        left -= len(problems)
    return found


def _flat(
    messages: Mapping[Any, Mapping[Any, Any] | Iterable[str]], prefix: str = ""
) -> dict[str, list[str]]:
    """Name nested fields by their path, such as `phone_numbers.3`."""
    found: dict[str, list[str]] = {}
    for name, value in messages.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping):
            found |= _flat(value, f"{path}.")
        else:
            found[path] = list(value)
    return found


NO_NUL = validate.Regexp(r"^[^\x00]*$", error="Must not hold a NUL character.")
_DIGITS = re.compile(r"([0-9]{1,100})(?:\.0{1,20})?", re.ASCII)


TEXT_CHARS_MAX = 255
SHORT = (validate.Length(max=TEXT_CHARS_MAX), NO_NUL)
_FILLED = re.compile("[0-9]{18,21}[Ff]")


class Search(Text):
    """A text to look for; an ICCID may have the `F` that fills its last byte (3GPP TS 31.102)."""

    def __init__(self, says: str) -> None:
        about = f"Only those whose {says} holds this text, in upper or lower case."
        super().__init__(about, validate=SHORT)

    def read(self, value: Any) -> str:
        text: str = super().read(value)
        return text[:-1] if _FILLED.fullmatch(text) else text


class WholeNumber(Reads, fields.Integer):
    """A number in plain ASCII digits; Python's `int` would also accept `1_000` and ` 1 `.

    725.0 is a whole number too (JSON Schema, `integer`).
    """

    beyond = ""  # The message for a value above `highest`, where that has one of its own.

    def __init__(
        self, says: str, highest: int, *, lowest: int = 1, wanted: str = "", **kwargs: Any
    ) -> None:
        super().__init__(says, **kwargs, minimum=lowest, maximum=highest)
        self.lowest, self.highest = lowest, highest
        self.wanted = wanted or f"Must be a whole number from {lowest} to {highest}."

    def read(self, value: Any) -> int:
        read = self.whole(value)
        if read is None or read < self.lowest:
            raise ValidationError(self.wanted)
        if read > self.highest:
            raise ValidationError(self.beyond or self.wanted)
        return read

    def whole(self, value: Any) -> int | None:
        """Return the number that a text says, if it says one."""
        found = _DIGITS.fullmatch(value) if isinstance(value, str) else None
        return int(found[1]) if found else None


class JsonNumber(WholeNumber):
    """A whole number in a body, and no text or flag that could be read as one."""

    def whole(self, value: Any) -> int | None:
        read = int(value) if type(value) is float and value.is_integer() else value
        return read if type(read) is int else None


class Flag(Reads, fields.Boolean):
    """True or false, not a text or number that could mean it."""

    def read(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise ValidationError(NOT_A_FLAG)
        return value


class Names(Reads, fields.Field[Sequence[str]]):
    """Names with commas between them; one that is given twice counts once."""

    def __init__(
        self, says: str, known: Collection[str], wrong: str, most: float = inf, **kwargs: Any
    ) -> None:
        super().__init__(says, **kwargs)
        self.known, self.wrong, self.most = frozenset(known), wrong, most

    def read(self, value: Any) -> Sequence[str]:
        named = value.split(",")
        if len(named) > self.most or not self.known.issuperset(named):
            raise ValidationError(self.wrong)
        return [*dict.fromkeys(named)]


class Query(Schema):
    """What a query asks for; an empty filter counts as absent, but an empty page is a mistake."""

    @pre_load
    def drop_empty_filters(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Treat `?status=` as no filter, and ignore outer spaces, which come with what is pasted.

        One may be a `+` that was not encoded; without it a search finds the same phone number.
        """
        given = {name: value.strip() for name, value in data.items()}
        return {name: value for name, value in given.items() if value or name in NO_FILTERS}


PER_PAGE_MAX = 100
PAGE_MAX = 10**12  # Far beyond any list, but its offset still fits into the database's 64 bits.
PAST_ALL = "No list is that long; the number of its last page stands in `last_page`."


def per_page(usual: int, what: str) -> WholeNumber:
    """Return the field that says how many of what make a page."""
    return WholeNumber(f"How many {what} make a page.", PER_PAGE_MAX, load_default=usual)


class PageQuery(Query):
    """Which page is asked for."""

    page = WholeNumber(
        "The page, from 1.", PAGE_MAX, wanted="Must be a whole number, 1 or more.", load_default=1
    )
    page.beyond = PAST_ALL
    per_page = per_page(50, "items")


# What is no filter: an empty one would begin anew, or mean all.
NO_FILTERS = ("page", "per_page", "limit", "wait", "webhook_id", "link_id", "after_sequence")

KEY = r"^[!-~]{1,255}$"  # No header contains a line break, which `$` would accept.
NOT_A_KEY = "Must be 1 to 255 visible ASCII characters."


class IdempotencyHeader(Schema):
    """The key under which a request may be sent again without being charged again."""

    # No example: the page at /docs would fill it in, and a second try would collide.
    key = Text(
        "Any text of your own, new for each lookup, job, link or change of plans. The same key "
        "with the same request gives the first outcome again, without a second charge.",
        data_key="Idempotency-Key",
        validate=validate.Regexp(KEY, error=NOT_A_KEY),
    )
