"""`client`: API clients."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from os import urandom
from typing import Any
from uuid import UUID

import click

from app.bootstrap.container import Container
from app.bootstrap.known_keys import note_pepper
from app.cli.installation import catch_up, cause_of, installation
from app.cli.output import as_json_option, show, show_list
from app.security.secrets import new_client_id, new_client_secret
from domain.accounts.organization import OLD_ENDS, SCOPES, ApiClient, api_client_id
from projections.models.api_clients import ApiClientRow

HOUR = timedelta(hours=1)
OLD_HOURS_MAX = 24 * 90  # A quarter; whoever needs longer has not rotated.
SHOWN_ONCE = "The secret is not kept and cannot be shown again."


@click.group(name="client")
def command() -> None:
    """API clients and their secrets."""


@command.command()
@click.option("--org", "organization_id", metavar="ID", type=click.UUID, help="Whose client it is.")
@click.option("--m2m", is_flag=True, help="An approved client that names an organization per call.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(SCOPES),
    help="One of many; none, or exactly the first four: all, also later ones.",
)
@as_json_option
def create(
    *, organization_id: UUID | None, m2m: bool, scopes: Sequence[str], as_json: bool
) -> None:
    """Create a client; its secret is printed only this once."""
    if (organization_id is not None) == m2m:
        message = "give either --org or --m2m"
        raise click.UsageError(message)
    secret = new_client_secret(urandom)
    with installation() as container:
        note_pepper(container)
        client = container.accounts.register_client(
            cause_of(container),
            client_id=new_client_id(urandom),
            secret_hash=container.secret_hasher.hash(secret),
            organization_id=organization_id,
            scopes=list(dict.fromkeys(scopes)),
        )
    show(_with_secret(client, secret), as_json=as_json)
    if not as_json:
        click.echo(SHOWN_ONCE)


@command.command(name="list")
@as_json_option
def list_all(*, as_json: bool) -> None:
    """List all clients, oldest first, including revoked ones."""
    with installation() as container:
        catch_up(container)
        with container.views.reading() as connection:
            found = container.clients.all(connection)
        rows = [
            {
                **_facts(row),
                "created_at": row.created_at,
                "old_secret_ends": _old_secret_ends(container, row.client_id),
            }
            for row in found
        ]
    show_list(rows, as_json=as_json)


@command.command()
@click.argument("client_id", metavar="ID")
@as_json_option
def revoke(*, client_id: str, as_json: bool) -> None:
    """Refuse the secrets and tokens of a client for ever."""
    with installation() as container:
        cause = cause_of(container)
        client = container.accounts.change_client(client_id, lambda held: held.revoke(cause))
    show(_facts(client), as_json=as_json)


@command.command()
@click.argument("client_id", metavar="ID")
@click.option(
    "--old-ends",
    "hours",
    type=click.IntRange(0, OLD_HOURS_MAX),
    default=OLD_ENDS // HOUR,
    show_default=True,
    metavar="HOURS",
    help="How long the secret before it stays good; 0: it ends at once.",
)
@as_json_option
def rotate_secret(*, client_id: str, hours: int, as_json: bool) -> None:
    """Give a client a new secret; the one before it stays good for a while.

    Any older one ends at once. Tokens that an ended secret has got end by themselves.
    """
    secret = new_client_secret(urandom)
    with installation() as container:
        note_pepper(container)
        cause = cause_of(container)
        secret_hash = container.secret_hasher.hash(secret)
        client = container.accounts.change_client(
            client_id, lambda held: held.rotate_secret(secret_hash, cause, hours * HOUR)
        )
    show(_with_secret(client, secret), as_json=as_json)
    if not as_json:
        click.echo(SHOWN_ONCE)
        ends = f"in {hours} h" if hours else "now"
        click.echo(f"The secret before it ends {ends}.")


def _old_secret_ends(container: Container, client_id: str) -> datetime | None:
    """Return when the secret before the newest ends, if there is one that still counts."""
    client = container.log.get(ApiClient, api_client_id(client_id))
    _, *old = client.hashes_at(container.clock(), container.endless_secrets_until)
    return (client.old_until or container.endless_secrets_until()) if old else None


def _with_secret(client: ApiClient, secret: str) -> dict[str, Any]:
    return {
        "client_id": client.client_id,
        "client_secret": secret,
        "organization": client.organization_id,
        "scopes": client.scopes,
    }


def _facts(client: ApiClient | ApiClientRow) -> dict[str, Any]:
    """`organization` is None for a machine-to-machine client."""
    return {
        "client_id": client.client_id,
        "organization": client.organization_id,
        "scopes": client.scopes,
        "revoked": client.revoked,
    }
