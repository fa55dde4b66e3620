"""Input of requests: bodies of at most 1 MiB strict JSON, ids in paths, schemas and their fields.

Marshmallow schemas read the parts of a request, and their errors become refusals. The schema of a
body has an `example`.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from itertools import islice
from threading import Lock
from typing import Any
from uuid import UUID

from marshmallow import Schema, ValidationError, fields, pre_load, validate
from webargs.core import is_json
from werkzeug.exceptions import BadRequest, RequestEntityTooLarge, UnsupportedMediaType

from app.http.edge.replies import OR_EMPTY
from app.http.edge.request import Given, current_request, repeated
from domain import strict_json
from domain.errors import NotFound, ValidationFailed
from projections.engine.shape import one_of

BODY_BYTES_MAX = 1024 * 1024
MEMBERS_MAX = 100  # Of an object in a body; ours have at most six.
PROBLEMS_MAX = 20  # Whoever meets more has sent something else than he meant.
WHOLE_LIST = "phone_numbers"  # Of this list all problems are told, because clients mend it by them.
# Parsed, a body can take fifteen times its bytes, so large ones are parsed one at a time.
LARGE_BYTES = 64 * 1024
NOT_AN_ID = "Not a valid UUID."
NOT_A_LIST = "Not a valid list."
NOT_A_FLAG = "Must be true or false."
TOO_MANY_MEMBERS = f"No object may have more than {MEMBERS_MAX} members."

TOKENS_MAX = 1_000  # Enough to find the object of many members that comes first.
# A string, or what begins, ends or divides a member. A string without an end goes to the end of
# all, or each quote in it would be tried as a beginning.
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[{}:]', re.DOTALL)
_parsing_large = Lock()

Members = Callable[[strict_json.Pairs], dict[str, Any]]
Kind = type[Schema] | None
Names = AbstractSet[str]


def read_body(environ: Mapping[str, Any]) -> bytes:
    """Return the body, if any; refuse one that is too large or not declared as JSON."""
    if not environ.get("CONTENT_LENGTH") and "wsgi.input_terminated" not in environ:
        return b""  # Werkzeug would be slow to find out that there is none.
    request = current_request()
    body = request.get_data()
    if len(body) >= BODY_BYTES_MAX and request.content_length is None:
        raise RequestEntityTooLarge  # When the length is not given, no more than this is read.
    if body and (not is_json(request.mimetype) or is_packed()):
        raise UnsupportedMediaType
    data = body.removeprefix(BOM_UTF8)  # RFC 8259 §8.1 lets a reader ignore it.
    return b"" if data.isspace() else data


def is_packed() -> bool:
    """Tell whether the body is compressed."""
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


def _refuse_many_members(data: bytes) -> None:
    """Refuse an object with too many members at the beginning before anything is made of it.

    To parse it would take a hundred times as long, in which no other thread runs.
    """
    if data.count(b":") <= MEMBERS_MAX:
        return
    counts: list[int] = []  # Of the members of each object that is open, outermost first.
    for token in islice(_TOKEN.finditer(data), TOKENS_MAX):
        if token[0] == b"{":
            counts.append(0)
        elif counts and token[0] == b"}":
            counts.pop()
        elif counts and token[0] == b":":
            counts[-1] += 1
            if counts[-1] > MEMBERS_MAX:
                raise ValidationFailed({"body": [TOO_MANY_MEMBERS]})


def parse_id(text: str) -> UUID:
    """Return the UUID of a path; a malformed one is NotFound, like one that names nothing."""
    try:
        parsed = UUID(text)
    except ValueError:
        raise NotFound from None
    if str(parsed) != text.lower():
        raise NotFound
    return parsed


class Reads(fields.Field[Any]):
    """Before a field of marshmallow: `read` makes something of a value, and needs nothing else."""

    def read(self, value: Any) -> Any:
        """Return what the field itself makes of a value."""
        return super()._deserialize(value, None, None)

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> Any:
        return self.read(value)


class Id(Reads, fields.UUID):
    """A UUID in its canonical spelling, as in paths."""

    def read(self, value: Any) -> UUID:
        if not isinstance(value, str):
            raise ValidationError(NOT_AN_ID)
        try:
            return parse_id(value)
        except NotFound:
            raise ValidationError(NOT_AN_ID) from None


TWICE = "Must be given once."
NOT_AN_OBJECT = "The body must be a JSON object."
NOTHING: tuple[object, ...] = (
    None,
    [],
    "",
)  # What axios, PHP and others send as a body where there is none.


def described(description: str, **more: Any) -> dict[str, Any]:
    """Return what the OpenAPI document says about a field of a request."""
    return {"description": description, **more}


def choice(
    values: Collection[str], says: str, name: str, *, required: bool = False, **more: Any
) -> fields.String:
    """Return a field for one of these values, or none; the document gives this choice a name."""
    about = described(says, **one_of(name, values, *([] if required else [OR_EMPTY])), **more)
    return fields.String(required=required, validate=validate.OneOf(values), metadata=about)


class Part:
    """A part of a request, and the schema that reads it.

    `elsewhere` has names of required fields that may stand in another part instead.
    """

    def __init__(self, schema: Schema, elsewhere: Names = frozenset()) -> None:
        self.schema, self.elsewhere = schema, elsewhere
        self.fields = {each.data_key or name: each for name, each in schema.fields.items()}
        self.empty: dict[str, Any] | None = None  # What nothing means; None: it is refused.
        with suppress(ValidationError):
            self.empty = schema.load({}, partial=elsewhere or None)
        has_hooks = any(schema._hooks.values())  # noqa: SLF001  # Nothing public tells of them.
        self._quick = None if has_hooks or elsewhere else self.empty  # Takes a fifth of the time.

    def read(self, sent: dict[str, Any], elsewhere: Names = frozenset()) -> dict[str, Any]:
        """Return what the schema makes of what was sent, or raise ValidationFailed."""
        if not sent and self.empty is not None and len(elsewhere) == len(self.elsewhere):
            return {**self.empty}
        try:
            if self._quick is not None:
                read = {**self._quick}
                for name, value in sent.items():
                    field = self.fields[name]
                    read[str(field.name)] = field.deserialize(value)
                return read
        except (KeyError, ValidationError):
            pass  # The schema finds all that is wrong.
        try:
            loaded: dict[str, Any] = self.schema.load(sent, partial=elsewhere or None)
        except ValidationError as error:
            raise ValidationFailed(_told(error.messages_dict)) from None
        return loaded


class Reader:
    """Reads what an operation takes; made once, at the start, of a schema for each part.

    What stands in the query need not stand in the body, and is not read there.
    """

    def __init__(self, query: Kind, body: Kind, headers: Kind) -> None:
        self.query, self.headers = Part((query or Schema)()), Part((headers or Schema)())
        self.parameters, schema = frozenset(self.query.fields), (body or Schema)()
        required = {name for name, each in schema.fields.items() if each.required}
        self.body = Part(schema, self.parameters & required)
        names = self.headers.fields
        self._keys = [(name, f"HTTP_{name.upper().replace('-', '_')}") for name in names]

    def read(self, given: Given[Any], body: bytes) -> None:
        """Read query, body and headers of a request; raises ValidationFailed or BadRequest."""
        given.query = self.query.read(_once(self.query.fields, given.sent_query))
        sent = _object(body) if body else {}
        elsewhere = self.body.elsewhere & given.query.keys()
        for name in elsewhere:
            sent.pop(name, None)
        given.body = self.body.read(sent, elsewhere)
        headers, environ = dict[str, Any](), given.environ
        for name, key in self._keys:
            if key in environ:
                headers[name] = environ[key]
        given.headers = self.headers.read(headers)


def _once(names: Iterable[str], query: Mapping[str, list[str]]) -> dict[str, Any]:
    """Return these parameters of a query; refuse one that is given more than once."""
    sent, twice = dict[str, Any](), dict[str, list[str]]()
    for name in names:
        if name in query:
            sent[name], *more = query[name]
            if more:
                twice[name] = [TWICE]
    if twice:
        raise ValidationFailed(twice)
    return sent


def _object(data: bytes) -> dict[str, Any]:
    _refuse_many_members(data)
    body = parse_json(data, _few_members)
    if body in NOTHING:
        return {}
    if not isinstance(body, dict):
        raise ValidationFailed({"body": [NOT_AN_OBJECT]})
    return body


def _told(messages: Mapping[Any, Any]) -> dict[str, list[str]]:
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


class WholeNumber(Reads, fields.Integer):
    """A number in plain ASCII digits; Python's `int` would also accept `1_000` and ` 1 `.

    725.0 is a whole number too (JSON Schema, `integer`). A value above `highest` gets the message
    `beyond`.
    """

    def __init__(
        self, highest: int, wanted: str = "", beyond: str = "", lowest: int = 1, **kwargs: Any
    ) -> None:
        metadata = {**kwargs.pop("metadata", {}), "minimum": lowest, "maximum": highest}
        super().__init__(metadata=metadata, **kwargs)
        self.lowest, self.highest = lowest, highest
        self.wanted = wanted or f"Must be a whole number from {lowest} to {highest}."
        self.beyond = beyond or self.wanted

    def read(self, value: Any) -> int:
        read = self.whole(value)
        if read is None or read < self.lowest:
            raise ValidationError(self.wanted)
        if read > self.highest:
            raise ValidationError(self.beyond)
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


class Query(Schema):
    """What a query asks for; an empty filter counts as absent, but an empty page is a mistake."""

    @pre_load
    def drop_empty_filters(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Treat `?status=` as no filter, and ignore outer spaces, which come with what is pasted.

        One may be a `+` that was not encoded; without it a search finds the same phone number.
        """
        given = {name: value.strip() for name, value in data.items()}
        return {name: value for name, value in given.items() if value or name in NO_FILTERS}


NO_FILTERS = ("page", "per_page", "limit", "wait", "webhook_id")  # What is no filter.

KEY = r"^[!-~]{1,255}$"  # No header contains a line break, which `$` would accept.
NOT_A_KEY = "Must be 1 to 255 visible ASCII characters."


class IdempotencyHeader(Schema):
    """The key under which a request may be sent again without being charged again."""

    key = fields.String(
        data_key="Idempotency-Key",
        validate=validate.Regexp(KEY, error=NOT_A_KEY),
        metadata=described(
            "Any text of your own, new for each lookup, job, link or change of plans. The same key "
            "with the same request gives the first outcome again, without a second charge.",
        ),  # No example: the page at /docs would fill it in, and a second try would collide.
    )
