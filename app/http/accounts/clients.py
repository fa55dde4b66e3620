"""The API clients of your organization. Only a client with the scope `clients` sees them.

It may renew the secret of each, and so act as each: give the scope to what manages keys, and to
nothing else.
"""

from datetime import timedelta
from os import urandom
from typing import Annotated, Any, ClassVar, Final

from marshmallow import Schema
from msgspec import UNSET, Struct, UnsetType

from app.http.accounts.account import Client, show_client
from app.http.edge.input import CLIENT_ID, JsonNumber, described
from app.http.edge.operation import Group, Shown, link_to
from app.http.edge.replies import Answer, example, replay_headers, wait_for
from app.http.edge.request import Given
from app.security.authorization import Caller
from app.security.secrets import new_client_secret
from domain.accounts.commands import ROTATED
from domain.accounts.organization import (
    OF_KEYS,
    OLD_ENDS,
    OLD_ENDS_MAX,
    ApiClient,
    api_client_id,
)
from domain.cause import Cause
from domain.errors import NotFound, RateLimited
from projections.engine.shape import format_time, means

SECOND: Final = timedelta(seconds=1)


class ClientWithSecret(Client, kw_only=True):
    """A client with its new secret."""

    client_secret: Annotated[
        str | UnsetType,
        means(
            "The new secret. It is shown only now: a repeat with the same key lacks it.",
            example="cls_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwAAAAAAAAAAA",
        ),
    ] = UNSET


class Deleted(Struct):
    """What is no more."""

    id: Annotated[str, means("The `client_id`.", example=CLIENT_ID)]
    deleted: Annotated[bool, means(enum=[True])] = True


class RotateBody(Schema):
    """What becomes of the secret before the new one."""

    example: ClassVar = {"old_ends_in": 3600}

    old_ends_in = JsonNumber(
        OLD_ENDS_MAX // SECOND,
        lowest=0,
        metadata=described(
            "For how many seconds the present secret stays good, without it 86400; 0: it ends at "
            "once. One that it has replaced itself ends at once in any case."
        ),
    )


blueprint = Group("Clients", __name__, OF_KEYS, description=__doc__)


def load_any_client(caller: Caller, given: Given[Any], client_id: str) -> ApiClient:
    """Return a client of the caller's organization, also a deleted one."""
    client = given.parts.log.find(ApiClient, api_client_id(client_id))
    if client is None or client.organization_id != caller.organization_id:
        raise NotFound
    return client


def load_client(caller: Caller, given: Given[Any], client_id: str) -> ApiClient:
    client = load_any_client(caller, given, client_id)
    if client.revoked:
        raise NotFound
    return client


@blueprint.operation(
    "GET /v1/account/clients",
    reply=Shown(
        example("All clients, oldest first.", list[Client], "ClientListReply"),
        leads_to=link_to("rotate_client_secret delete_client", client_id="/data/0/id"),
    ),
)
def list_clients(caller: Caller, given: Given[None]) -> list[Client]:
    """List the clients of your organization, oldest first.

    All that are not deleted, this one too, and never a secret.
    """
    parts, now = given.parts, given.parts.clock()
    wait_for(parts, parts.clients.name)
    with parts.views.reading() as connection:
        found = parts.clients.of_organization(connection, caller.organization_id)
    return [show_client(Client, each, now) for each in found]


@blueprint.operation(
    "POST /v1/account/clients/<client_id>/rotate-secret",
    resource=load_client,
    body=RotateBody,
    key=True,
    reply=example("The client with its new secret.", ClientWithSecret),
    examples=[RateLimited(ROTATED, retry_after_s=3_600)],
)
def rotate_client_secret(caller: Caller, given: Given[ApiClient]) -> Answer:
    """Give a client a new secret.

    It may be your own. The secret is shown only here and is kept nowhere: a repeat with the same
    `Idempotency-Key` is 200 without `client_secret`, and then you rotate again. Tokens stay good
    until they expire.
    """
    secret = new_client_secret(urandom)
    parts, cause, old_ends_s = (
        given.parts,
        _cause(caller, given),
        given.body.get("old_ends_in", OLD_ENDS // SECOND),
    )
    client, replayed = parts.accounts.rotate_own_secret(
        given.found, parts.secret_hasher.hash(secret), old_ends_s, given.key, cause
    )
    shown = show_client(
        ClientWithSecret,
        client,
        cause.at,
        created_at=format_time(client.created_on),
        client_secret=UNSET if replayed else secret,
    )
    return Answer(shown, headers=replay_headers(replayed))


@blueprint.operation(
    "DELETE /v1/account/clients/<client_id>",
    resource=load_any_client,
    reply=example("It gets no token any more, and those that it has are refused.", Deleted),
    errors="LAST_CLIENT",
)
def delete_client(caller: Caller, given: Given[ApiClient]) -> Deleted:
    """Delete a client.

    Its secrets and its tokens are refused, within a second everywhere. The last client with the
    scope `clients` stays. Deleting one again changes nothing.
    """
    cause = _cause(caller, given)
    given.parts.accounts.revoke_client(given.found.client_id, cause, keeps_one=True)
    return Deleted(given.found.client_id)


def _cause(caller: Caller, given: Given[Any]) -> Cause:
    """Return the cause, with the client that asks: nobody else may do this but operators."""
    return Cause(given.at, given.request_id, f"client:{caller.client_id}")
