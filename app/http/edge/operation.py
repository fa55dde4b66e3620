"""What all operations with a caller share: the order of the checks before the view, their errors.

The rate limit counts a request after its scope, and refuses it last, after wrong input.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial, wraps
from types import MappingProxyType
from typing import Any

from flask import Response

from app.http.edge.callers import authenticate, refuse_over_limit
from app.http.edge.input import (
    LOADS,
    PARAMETERS,
    PROBLEMS_MAX,
    TOO_MANY_MEMBERS,
    Blueprint,
    check_body,
    read_json,
)
from app.http.edge.problem_docs import error_responses
from app.http.edge.problems import OF_EVERY_REQUEST, WRONG_MEDIA_TYPE, problem_of
from app.http.edge.request import (
    container,
    current_request,
    request_context,
    unknown_parameters,
)
from app.security.authorization import Caller
from domain import errors
from domain.errors import Refused

View = Callable[..., Response]
Feature = Callable[[Caller], None]
Resource = Callable[..., Any]

SAFE = {"GET", "HEAD"}
_EVERYWHERE = (
    errors.Unauthorized(),
    errors.OrganizationNotFound(),
    errors.OrganizationSuspended(),
    errors.OrganizationInactive(),
    errors.InsufficientScope(),
    errors.RateLimited(),
)
# Even an empty object can be too large; an operation's own example stands in place of this one.
_OF_BODIES = (errors.ValidationFailed({"body": [TOO_MANY_MEMBERS]}),)
UNKNOWN_PARAMETER = "Unknown parameter."
NO_PARAMETERS = frozenset[str]()
PAYMENTS = "payments"  # The scheme, in the document, of clients that act for no organization.

# A caller that acts for no organization gets none of its refusals and no rate limit.
_OF_NO_ORGANIZATION = (errors.Unauthorized(), errors.InsufficientScope())


def operation(  # noqa: PLR0913  # Each is one fact about an operation.
    *,
    scope: str,
    refusals: Sequence[Refused] = (),
    feature: Feature | None = None,
    resource: Resource | None = None,
    takes_body: bool = False,
    buys: bool = False,
    who: Callable[[str], Any] = authenticate,
) -> Callable[[View], View]:
    """Check token, organization, scope, feature and path, then that the body can be read.

    The view is called with the Caller, then with what `Blueprint.arguments` below it has loaded.
    `resource` finds what the path names, or raises NotFound before the input is read; the view gets
    its result in place of the path's parameters. `refusals` are examples for the document. `who`
    finds a caller of no organization. What `buys` refuses parameters of the query that it ignores.
    """

    def decorate(view: View) -> View:
        loads_first = _known_only(view) if buys else _limited(view)

        @wraps(view)
        def checked(*args: Any, **kwargs: Any) -> Response:
            request_context().parameters = getattr(view, PARAMETERS, NO_PARAMETERS)
            caller = _admitted(who, scope)
            if feature is not None:
                feature(caller)
            called = partial(loads_first, caller, *args, **kwargs)
            if resource is not None:
                called = partial(loads_first, caller, resource(caller, **kwargs), *args)
            if takes_body:
                check_body()
                return called()
            # With a resource the body comes first: reading a link may ask the network and append.
            return _answer(called, body_first=resource is not None)

        further = [*(_OF_BODIES if takes_body else ()), *refusals]
        return _documented(checked, _facts(scope, further, who))

    return decorate


def _admitted(who: Callable[[str], Any], scope: str) -> Any:
    """Return the caller; raise InstallationHeld if it asks a held copy to change something.

    Raises ClockOff first, because no token can be judged by a wrong clock.
    """
    container().clock_check.refuse()
    caller = who(scope)
    if current_request().method not in SAFE:
        container().hold.refuse()
    return caller


def _facts(scope: str, refusals: Sequence[Refused], who: Callable[[str], Any]) -> dict[str, Any]:
    for_organization = who is authenticate
    shared = _EVERYWHERE if for_organization else _OF_NO_ORGANIZATION
    security = [{"oauth2" if for_organization else PAYMENTS: [scope]}]
    return {"security": security, "responses": _responses([*shared, *refusals])}


def _known_only(view: View) -> View:
    """Make a view refuse what it does not know in the query: a misspelt `dry_run` must not buy."""

    def known_only(*args: Any, **kwargs: Any) -> Response:
        unknown = unknown_parameters(PROBLEMS_MAX)
        if unknown:
            raise errors.ValidationFailed({name: [UNKNOWN_PARAMETER] for name in unknown})
        return view(*args, **kwargs)

    return known_only


def _limited(view: View) -> View:
    """Make a view without input refuse a caller that is over its rate limit."""
    if getattr(view, LOADS, False):
        return view

    def limited(*args: Any, **kwargs: Any) -> Response:
        refuse_over_limit()
        return view(*args, **kwargs)

    return limited


def _answer(called: Callable[[], Response], *, body_first: bool) -> Response:
    """Answer, and refuse an unreadable body; unless `body_first`, errors of the view win."""
    if body_first:
        _check_unread()
        return called()
    response = called()
    _check_unread()
    return response


def _check_unread() -> None:
    """Refuse a body that cannot be read, though its content is ignored."""
    check_body()
    read_json()


def public(
    responses: Mapping[int, dict[str, Any]] = MappingProxyType(error_responses(OF_EVERY_REQUEST)),
    security: Sequence[dict[str, list[str]]] = (),
) -> Callable[[View], View]:
    """Document an operation that needs no token."""
    documentation = {"security": list(security), "responses": dict(responses)}
    return lambda view: _documented(view, documentation)


def _responses(refusals: Sequence[Refused]) -> dict[int, dict[str, Any]]:
    refused = [problem_of(each) for each in refusals]
    # Operations that take no body refuse one that cannot be read, too.
    return error_responses([WRONG_MEDIA_TYPE, *refused, *OF_EVERY_REQUEST])


def _documented(view: View, documentation: dict[str, Any]) -> View:
    facts = {"operationId": view.__name__, **deepcopy(documentation)}
    documented: View = Blueprint.doc(**facts)(view)
    return documented
