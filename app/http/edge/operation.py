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
from app.http.edge.input import LOADS, Blueprint, check_body, read_json
from app.http.edge.problem_docs import error_responses
from app.http.edge.problems import OF_EVERY_REQUEST, WRONG_MEDIA_TYPE, problem_of
from app.security.authorization import Caller
from domain import errors
from domain.errors import Refused

View = Callable[..., Response]
Feature = Callable[[Caller], None]
Resource = Callable[..., Any]

_EVERYWHERE = (
    errors.Unauthorized(),
    errors.OrganizationNotFound(),
    errors.OrganizationSuspended(),
    errors.OrganizationInactive(),
    errors.InsufficientScope(),
    errors.RateLimited(),
)
# A caller that acts for no organization gets none of its refusals and no rate limit.
_OF_NO_ORGANIZATION = (errors.Unauthorized(), errors.InsufficientScope())


def operation(  # noqa: PLR0913  # Each is one fact about an operation.
    *,
    scope: str,
    refusals: Sequence[Refused] = (),
    feature: Feature | None = None,
    resource: Resource | None = None,
    takes_body: bool = False,
    who: Callable[[str], Any] = authenticate,
) -> Callable[[View], View]:
    """Check token, organization, scope, feature and path, then that the body can be read.

    The view is called with the Caller, then with what `Blueprint.arguments` below it has loaded.
    `resource` finds what the path names, or raises NotFound before the input is read; the view gets
    its result in place of the path's parameters. `refusals` are examples for the documentation.
    `who` finds a caller that is not the client of an organization.
    """

    def decorate(view: View) -> View:
        loads_first = view if getattr(view, LOADS, False) else _limited(view)

        @wraps(view)
        def checked(*args: Any, **kwargs: Any) -> Response:
            caller = who(scope)
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

        shared = _EVERYWHERE if who is authenticate else _OF_NO_ORGANIZATION
        responses = _responses([*shared, *refusals])
        documentation = {"security": [{"oauth2": [scope]}], "responses": responses}
        return _documented(checked, documentation)

    return decorate


def _limited(view: View) -> View:
    """Make a view without input refuse a caller that is over its rate limit."""

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
