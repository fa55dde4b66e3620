"""An operation is said once: `@group.operation(…)` stands on a plain function (caller, given).

By what it says a request is checked before the function is called, and the OpenAPI document is
made. The function returns its data, an `Answer` (another status, headers), or a response of its own
(a file, a picture), or it raises a refusal; it knows nothing of how it was called.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial, update_wrapper
from typing import Any, NamedTuple, TypeVar

import flask_smorest
from flask import Response
from flask_smorest.utils import deepupdate
from marshmallow import Schema
from msgspec import Struct, to_builtins

from app.http.edge.callers import SCOPES, authenticate, claims_of
from app.http.edge.input import (
    PROBLEMS_MAX,
    TOO_MANY_MEMBERS,
    IdempotencyHeader,
    Parser,
    in_path,
    parse_json,
    read_body,
)
from app.http.edge.media import JSON, also_sent_as
from app.http.edge.problem_docs import error_responses
from app.http.edge.problems import OF_EVERY_REQUEST, WRONG_MEDIA_TYPE
from app.http.edge.replies import ETAG, IDEMPOTENCY_REPLAYED, LOCATION, NOT_MODIFIED, respond
from app.http.edge.request import CURRENT, Given
from app.security.tokens import Claims
from domain.errors import REFUSALS, NotAcceptable, Refused, ValidationFailed

View = TypeVar("View", bound=Callable[..., object])

READ = "GET"
MADE = {201, 202}  # The statuses whose replies have a `Location`.
LIMITS = ("RateLimit-Policy", "RateLimit")
UNKNOWN_PARAMETER = "Unknown parameter; this operation takes: {}."
OF_EVERY_CALLER = "UNAUTHORIZED INSUFFICIENT_SCOPE RATE_LIMITED"
# A caller that acts for no organization gets none of its refusals.
OF_ORGANIZATION = "ORGANIZATION_NOT_FOUND ORGANIZATION_SUSPENDED ORGANIZATION_INACTIVE"
OF_MONEY = "SPENDING_LIMIT BILLING_NOT_CONFIGURED INSUFFICIENT_BALANCE"


class Shown(NamedTuple):
    """A reply as the document shows it; without a description the docstring of its type is used.

    `leads_to` is made by `link_to`. What is no outcome is not kept for an `Idempotency-Key`.
    """

    example: Struct
    status: int = 200
    description: str = ""
    headers: Mapping[str, Any] = {}
    leads_to: Mapping[str, Any] = {}
    is_outcome: bool = True


def link_to(operations: str, **value: str) -> dict[str, Any]:
    """Return links to these operations; their parameter has the value at a place in the reply."""
    ((parameter, pointer),) = value.items()
    return {
        name: {"operationId": name, "parameters": {parameter: f"$response.body#{pointer}"}}
        for name in operations.split()
    }


@dataclass(eq=False)
class Operation:
    """All that is said of an operation; the decorator `operation` of its group takes it.

    In a group without a scope it needs no token, and its function is called without arguments.
    """

    group: "Group"
    line: str  # Method and path, such as `GET /v1/links`.
    _: KW_ONLY
    who: Callable[..., Any] = authenticate  # Finds the caller; others act for no organization.
    feature: Callable[..., None] | None = None  # Refuses a caller for whom it is off.
    # Finds what the path names, or raises NotFound, before the input is read.
    resource: Callable[..., Any] | None = None  # None: what its group loads such things by.
    query: type[Schema] | None = None
    body: type[Schema] | None = None  # None: nothing, or with POST at most an empty object.
    headers: type[Schema] | None = None
    key: bool = False  # It takes an `Idempotency-Key`, and a repeated request changes nothing.
    buys: bool = False  # It may cost money.
    reply: Struct | Shown | Sequence[Shown] = ()  # An example for each status.
    leads_to: Mapping[str, Any] = field(default_factory=dict)  # As `Shown` has it, of a sole 200.
    also: Mapping[str, str] = field(default_factory=dict)  # Examples of other types of a 200.
    is_file: bool = False  # Those come first, for generators would read each of them as JSON.
    tagged: bool = False  # It has an `ETag`, and 304 answers who has it.
    # Reads its input quickly: it returns a `Commit`, so the loop may answer it (`server/loop.py`).
    read_on_loop: Callable[[Given[Any], bytes], None] | None = None
    errors: str = ""  # The codes of its refusals, but those that the other fields say.
    invalid: Mapping[str, str] = field(default_factory=dict)  # A field and what can be wrong.
    examples: Sequence[Refused] = ()  # Of its refusals, in place of the example of their class.
    doc: Mapping[str, Any] = field(default_factory=dict)  # As for flask-smorest's `doc`.

    def __call__(self, view: View) -> View:
        """Add the operation to its group; the function stays as it is."""
        self.view, self.name = view, view.__name__
        method, self.route = self.line.split()
        ids = re.findall("<(.*?)>", self.route)
        self.resource = self.resource or self.group.loaders.get(ids[-1] if ids else "")
        if self.body is None and method == "POST" and self.group.scope is not None:
            self.body = Schema
        if self.key and self.headers is None:
            self.headers = IdempotencyHeader
        kinds = {"query": self.query, "body": self.body, "headers": self.headers}
        self.inputs = {name: kind() for name, kind in kinds.items() if kind is not None}
        fields = self.inputs["query"].fields if self.query else {}
        self.parameters = frozenset(each.data_key or name for name, each in fields.items())
        self.is_strict = self.buys or (self.group.strict and method != READ)
        self.described = self._described()
        self._read = self._reading(_set_parts)
        # The decorators of flask-smorest wrap a function; this one only looks like theirs.
        documented = self.group.doc(**self.described)(self._reading(view))
        serve = update_wrapper(partial(self._serve), documented)
        named = [*map(in_path, ids)]
        self.group.add_url_rule(self.route, self.name, serve, methods=[method], parameters=named)
        self.group.operations.append(self)
        return view

    def call(self) -> object:
        """Call the function after its checks, where its path is fixed."""
        return self.view(*self._check())

    def enter(self) -> Claims:
        """Make the checks that come first: of the clock, without which no token can be judged.

        Return the claims of the token; raises Unauthorized without a valid one.
        """
        return claims_of(self._enter_context())

    def _enter_context(self, **path: str) -> Given[Any]:
        """Return the context of the request, in which it is now known what answers it."""
        given = CURRENT.get()
        given.operation, given.path = self, path
        given.at = given.parts.gate.now()  # First: a wrong clock can judge no token.
        return given

    def _check(self, **path: str) -> tuple[Any, Given[Any]]:
        """Make all checks, in the order of our contract; return what they have found."""
        given = self._enter_context(**path)
        caller = self.who(given, self.group.scope)
        if not self.line.startswith(READ):
            given.parts.gate.refuse_held()
        if self.feature is not None:
            self.feature(caller, given)
        given.found = None if self.resource is None else self.resource(caller, given, **path)
        body = b"" if self.body is None else read_body(given.environ)
        if self.body is None and self.resource is not None:
            parse_json(read_body(given.environ))  # Reading a link may ask the network.
        if self.is_strict:
            _refuse_unknown(given)
        (self.read_on_loop or self._read)(given, body)
        given.refuse_over_limit()
        return caller, given

    def _reading(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that reads the input by flask-smorest, and takes each part by name."""
        for name, schema in reversed([*self.inputs.items()]):
            facts: dict[str, Any] = {"location": "json" if name == "body" else name}
            arguments: Callable[..., Any] = self.group.ARGUMENTS_PARSER.use_args
            if schema.fields:  # Else it takes nothing, and the document says nothing of it.
                facts["required"] = self.read_on_loop is None and bool(schema.validate({}))
                facts["example"] = getattr(schema, "example", None)
                arguments = self.group.arguments
            function = arguments(schema, arg_name=name, **facts)(function)
        return function

    def _serve(self, **path: str) -> Response:
        """Answer a request in a thread."""
        if self.group.scope is None:
            return respond(self.view(CURRENT.get()))
        caller, given = self._check(**path)
        given.at = given.parts.clock()  # The checks may have waited for long.
        response = respond(self.view(caller, given), is_tagged=self.tagged)
        if self.resource is None and self.body is None:  # Only now, so errors of the function win.
            parse_json(read_body(given.environ))
        return response

    @property
    def _is_of_organization(self) -> bool:
        """Whether its callers act for an organization, which is rate-limited."""
        return self.group.scope is not None and self.who is authenticate

    @property
    def replies(self) -> Sequence[Shown]:
        """The successes, as the document shows them."""
        if isinstance(self.reply, Shown):
            return [self.reply]
        if isinstance(self.reply, Struct):
            return [Shown(self.reply, leads_to=self.leads_to)]
        return self.reply

    @property
    def codes(self) -> list[str]:
        """The codes of all its refusals."""
        said = {
            OF_ORGANIZATION: self._is_of_organization,
            OF_EVERY_CALLER: self.group.scope,
            "VALIDATION_ERROR": self.query or self.body,
            "NOT_FOUND": self.resource,
            "IDEMPOTENCY_KEY_REUSED": self.key,
            self.errors: True,
            OF_MONEY: self.buys,
            "NOT_ACCEPTABLE": self.also,
        }
        return [code for codes, applies in said.items() if applies for code in codes.split()]

    def _described(self) -> dict[str, Any]:
        """Return what the document says of it besides its input, in the notation of apispec.

        A text in place of a header refers to what has this name there.
        """
        responses: dict[int, Any] = {}
        for status, response in (*self._successes(), *error_responses(self._problems()).items()):
            deepupdate(responses.setdefault(status, {}), response)
        scope = self.group.scope
        security = [{scheme: [scope]} for scheme, scopes in SCOPES.items() if scope in scopes]
        said = {"operationId": self.name, "security": security, "responses": responses}
        deepupdate(said, self.doc)
        limits = LIMITS if self._is_of_organization else ()
        for response in responses.values():
            sent = {name: name for name in ("X-Request-Id", *limits)}
            response["headers"] = sent | response.get("headers", {})
        return said | {"responses": dict(sorted(responses.items()))}

    def _successes(self) -> Iterator[tuple[int, dict[str, Any]]]:
        if self.is_file:
            yield 200, also_sent_as(self.also)
        for each in self.replies:
            kind = type(each.example)
            headers = {
                **(ETAG if self.tagged else {}),
                **(LOCATION if each.status in MADE else {}),
                **each.headers,
                **(IDEMPOTENCY_REPLAYED if self.key and each.is_outcome else {}),
            }
            content = {JSON: {"schema": kind.__name__, "example": to_builtins(each.example)}}
            said = {"description": each.description or kind.__doc__, "content": content}
            links = {"links": each.leads_to} if each.leads_to else {}
            yield each.status, said | {"headers": headers} | links
            if self.tagged:
                yield 304, {**NOT_MODIFIED, "headers": headers}
        if self.also:
            yield 200, also_sent_as(self.also)

    def _problems(self) -> list[Refused]:
        """Return an example of each error."""
        if self.group.scope is None:
            said = self.doc.get("responses", {})
            its = [REFUSALS[code].example() for code in self.codes]
            return [*its, *(each for each in OF_EVERY_REQUEST if each.status not in said)]
        wrong = {name: [problem] for name, problem in self.invalid.items()}
        types = [*([JSON] if self.replies else ()), *self.also]
        own = [ValidationFailed(wrong or {"body": [TOO_MANY_MEMBERS]}), NotAcceptable(*types)]
        examples = {each.code: each for each in (*own, *self.examples)}
        refused = [examples.get(code) or REFUSALS[code].example() for code in self.codes]
        # Operations that take no body refuse one that cannot be read, too.
        return [WRONG_MEDIA_TYPE, *refused, *OF_EVERY_REQUEST]


class Group(flask_smorest.Blueprint):
    """flask-smorest's blueprint with one decorator more: `operation`, whose arguments are above.

    All its operations have one scope; without one they need no token. Where it is `strict`, those
    that change something refuse unknown parameters. `loaders` has by the last id in a path what
    loads the thing. `webhooks` are what the group tells partners by itself, and `schemas` the
    bodies of that.
    """

    ARGUMENTS_PARSER = Parser()

    def __init__(
        self, name: str, scope: str | None = None, *, description: str, strict: bool = False
    ) -> None:
        super().__init__(name, __name__, description=description.partition("\n\n")[0])
        self.scope, self.strict = scope, strict
        self.loaders: dict[str, Callable[..., Any]] = {}
        self.operations: list[Operation] = []
        self.webhooks: dict[str, Any] = {}
        self.schemas: dict[str, Any] = {}
        self.operation = partial(Operation, self)


def _refuse_unknown(given: Given[Any]) -> None:
    """Refuse what nobody reads in the query: a misspelt `dry_run` must not buy, nor play."""
    unknown = given.unknown_parameters(PROBLEMS_MAX)
    if unknown:
        known = ", ".join(sorted(given.operation.parameters)) or "none"
        given.operation = None  # What is refused is not ignored.
        raise ValidationFailed({name: [UNKNOWN_PARAMETER.format(known)] for name in unknown})


def _set_parts(given: Given[Any], _: bytes, **sent: dict[str, Any]) -> None:
    for name, part in sent.items():
        setattr(given, name, part)
