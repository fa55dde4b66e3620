"""`keys`: the keys of an installation, renewed and revoked while its processes run."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import click

from app.bootstrap.container import Container
from app.bootstrap.known_keys import active_clients, active_endpoints
from app.cli.installation import catch_up, cause_of, installation
from app.cli.output import as_json_option, show, show_list
from app.processes.migrate import is_migrated
from app.security.key_file import KINDS, Kind, SigningKeysError
from app.security.ring import ListedKey, Ring
from domain.accounts.operator_acts import OperatorAct
from domain.cause import Cause
from domain.errors import NotFound, NotPossible
from projections.audit.checkpoint import key_id_of, verifier_key

Row = dict[str, Any]
SAID: Mapping[Kind, str] = {
    "signing": "Every token that it has signed is refused: {clients} clients need new tokens.",
    "pepper": "What was not used since the last renewal ends: secrets of {clients} clients, keys "
    "of {operators} operators.",
    "webhooks": "{endpoints} endpoints are told nothing until their secrets are rotated; what they "
    "would be told waits.",
    "checkpoints": "Its notes prove nothing any more, except what others kept before it leaked.",
}


@click.group(name="keys")
def command() -> None:
    """The keys that sign tokens and checkpoints, peppers, and keys of webhooks."""


@command.command()
@click.argument("kind", metavar="[KIND]", type=click.Choice(KINDS), default="signing")
@click.option("--checkpoints", is_flag=True, help="The same as: keys rotate checkpoints.")
@as_json_option
def rotate(*, kind: Kind, checkpoints: bool, as_json: bool) -> None:
    """Use a new key from now on: signing, pepper, webhooks or checkpoints.

    The keys before it go on with what they were used for: an older signing key verifies until its
    last token has expired, a pepper until each secret was used once more, a key of webhooks until
    each secret was rotated, a key of checkpoints for ever. Tell those who keep checkpoints of the
    new one.
    """
    kind = "checkpoints" if checkpoints else kind
    with installation(migrated=False) as container:
        has_log = container.persistence.exists() and is_migrated(container)
        made = _renew(container, kind, cause_of(container) if has_log else None)
    show(made, as_json=as_json)


@command.command()
@click.argument("key", metavar="KEY")
@click.option("--yes", is_flag=True, help="Do not ask again.")
@as_json_option
def revoke(*, key: str, yes: bool, as_json: bool) -> None:
    """End a key that has leaked, for all processes within seconds; KEY is its id in `keys list`.

    What ends with it is said before. If it is the newest of its kind, a new one is made first.
    """
    with installation() as container:
        cause = cause_of(container)
        catch_up(container)
        ring, key_id, row = _find(container, key)
        kind, kid = row["kind"], row["kid"]
        ends = _ends(container, kind, kid, cause.actor)
        if not yes:
            said = SAID[kind].format(**{name: len(each) for name, each in ends.items()})
            click.echo(f"Key {kid} ({kind}). {said}", err=True)
            if not click.confirm("Revoke it?", err=True):
                message = "nothing was revoked"
                raise NotPossible(message)
        if row["state"] in {"signing", "newest"}:
            _renew(container, kind, cause)
        # Authorized again, so that the key of whoever does this is under the newest pepper.
        cause = cause_of(container)
        ring.revoke(key_id)
        container.log.append(OperatorAct.note("key.revoked", f"{kind} {kid}", cause))
    show({**row, "state": "revoked", **ends}, as_json=as_json)


@command.command(name="list")
@as_json_option
def list_all(*, as_json: bool) -> None:
    """List the keys by kind, the revoked ones first, then the others, oldest first.

    `verifier` is what tools of signed notes take to verify a checkpoint: give it to its keepers.
    """
    with installation(migrated=False) as container:
        if not container.settings.signing_keys.is_dir():
            raise SigningKeysError(container.settings.signing_keys, "is no directory")
        rows = [_row(container, each) for ring in container.rings.values() for each in ring.list()]
    show_list(rows, as_json=as_json)


def _renew(container: Container, kind: Kind, cause: Cause | None) -> Row:
    """Make a new key; without a log nobody keeps who did it."""
    made = container.rings[kind].rotate()
    row = next(_row(container, each) for each in container.rings[kind].list() if each.kid == made)
    if cause is not None:
        container.log.append(OperatorAct.note("key.renewed", f"{kind} {row['kid']}", cause))
    return row


def _row(container: Container, key: ListedKey) -> Row:
    row = {**asdict(key), "verifier": None}
    if key.kind == "checkpoints":  # Its id depends on the name under which it signs.
        has_log = container.persistence.exists() and is_migrated(container)
        origin = container.checkpoints.origin() if has_log else container.settings.checkpoint_origin
        public_key = bytes.fromhex(key.kid)
        row["kid"] = key_id_of(origin, public_key).hex()
        row["verifier"] = verifier_key(origin, public_key)
    return row


def _find(container: Container, kid: str) -> tuple[Ring[Any], str, Row]:
    """Return a key that is not revoked: its ring, its id there, and its row."""
    for ring in container.rings.values():
        for each in ring.list():
            row = _row(container, each)
            if row["kid"] == kid and each.state != "revoked":
                return ring, each.kid, row
    message = f"there is no key {kid}, or it is revoked; see: python -m app keys list"
    raise NotFound(message)


def _ends(container: Container, kind: Kind, kid: str, actor: str | None) -> dict[str, list[str]]:
    """Return what ends with a key; the actor's own key is kept under another pepper."""
    if kind == "signing":
        return {"clients": [each.client_id for each in active_clients(container)]}
    if kind == "pepper":
        pepper_id, operators = container.secret_hasher.pepper_id, container.operators.all()
        now, endless = container.clock(), container.endless_secrets_until
        return {
            "clients": [
                each.client_id
                for each in active_clients(container)
                if kid in map(pepper_id, each.hashes_at(now, endless))
            ],
            "operators": [
                each.name
                for each in operators
                if not each.revoked and each.actor != actor and pepper_id(each.key_hash) == kid
            ],
        }
    if kind == "webhooks":
        found = container.webhook_key.find
        keys = [(each, found(each.secrets[-1].key_id)) for each in active_endpoints(container)]
        return {"endpoints": [str(each.id) for each, key in keys if key and key.id == kid]}
    return {}
