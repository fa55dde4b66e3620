"""`keys`: the keys that sign tokens and checkpoints."""

from dataclasses import asdict
from typing import Any

import click

from app.bootstrap.container import Container
from app.cli.installation import installation
from app.cli.output import as_json_option, show, show_list
from app.cli.rights import authorize
from app.processes.migrate import is_migrated
from app.security.key_file import SigningKeysError
from projections.audit.checkpoint import key_id_of, verifier_key


@click.group(name="keys")
def command() -> None:
    """The keys that sign tokens and checkpoints."""


@command.command()
@click.option("--checkpoints", is_flag=True, help="The key that signs checkpoints instead.")
@as_json_option
def rotate(*, checkpoints: bool, as_json: bool) -> None:
    """Sign with a new key from now on; older keys verify until their last token has expired.

    An older key of checkpoints verifies for ever. Tell those who keep checkpoints of the new one.
    """
    with installation(migrated=False) as container:
        if container.persistence.exists() and is_migrated(container):
            authorize(container)
        if checkpoints:
            container.checkpoint_keys.rotate()
            made = _checkpoint_keys(container)[-1]
        else:
            kid = container.keys.rotate()
            made = next(row for row in _token_keys(container) if row["kid"] == kid)
    show(made, as_json=as_json)


@command.command(name="list")
@as_json_option
def list_all(*, as_json: bool) -> None:
    """List the keys of tokens, oldest first, then those of checkpoints.

    `verifier` is what tools of signed notes take to verify a checkpoint: give it to its keepers.
    """
    with installation(migrated=False) as container:
        keys = _checkpoint_keys(container)
        try:
            keys = [*_token_keys(container), *keys]
        except SigningKeysError as error:  # Before the first start there are no token keys.
            if not keys:
                raise
            click.echo(f"Warning: {error}", err=True)
    show_list(keys, as_json=as_json)


def _token_keys(container: Container) -> list[dict[str, Any]]:
    return [{**asdict(key), "verifier": None} for key in container.keys.list()]


def _checkpoint_keys(container: Container) -> list[dict[str, Any]]:
    has_log = container.persistence.exists() and is_migrated(container)
    name = container.checkpoints.origin() if has_log else container.settings.checkpoint_origin
    keys = container.checkpoint_keys.list()
    return [
        {
            "kid": key_id_of(name, key.public_key).hex(),
            "algorithm": "Ed25519",
            "created_at": key.created_at,
            "state": "signing" if key is keys[-1] else "verifying",
            "verifier": verifier_key(name, key.public_key),
        }
        for key in keys
    ]
