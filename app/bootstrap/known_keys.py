"""Creates the missing keys of an installation at its start, and warns if that affects clients.

The database notes the first key of each directory of keys. So new keys, or the directory of another
installation, are recognized as a change.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from app.adapters.stores.notes import Note
from app.bootstrap.container import Container
from app.security.key_file import SigningKeysError
from app.security.keys import load_or_make_pepper
from app.security.secrets import SecretHasher
from app.security.tokens import LEEWAY_S
from domain.accounts.organization import ApiClient, api_client_id
from domain.webhooks.endpoint import WebhookEndpoint
from projections.models.api_clients import ApiClientRow


def ensure_keys(container: Container) -> None:
    """Create signing keys, pepper and the key of webhooks if they are missing."""
    container.keys.ensure()
    container.webhook_key.ensure()
    if not container.settings.secret_pepper:
        load_or_make_pepper(container.settings.signing_keys)


def note_keys(container: Container) -> list[str]:
    """Note the keys in use; return a line for each thing that clients have lost by a change."""
    noted = {note.value for note in container.notes.all("signing_keys")}
    first = container.keys.first_kid()
    if not noted or (first is not None and first not in noted):
        kid = first or container.keys.signing_key().kid
        container.notes.add("signing_keys", kid, container.clock())
    note_pepper(container)
    told = SecretHasher(container.webhook_key).fingerprint()
    container.notes.add("webhook_key", told, container.clock())
    return lost_keys(container)


def note_pepper(container: Container) -> None:
    """Note the pepper before a secret is hashed with it; raises SigningKeysError if it is lost.

    The note has the time of the clock that stamps the secret. A note from a clock that is ahead
    would make the secret look older than the pepper.
    """
    container.database_clock.measure()
    container.notes.add("pepper", container.secret_hasher.fingerprint(), container.clock())


def lost_keys(container: Container) -> list[str]:
    """Say which tokens and secrets are refused because keys or the pepper have changed."""
    keys, peppers = container.notes.all("signing_keys"), container.notes.all("pepper")
    told = _lost_secrets(container)
    if len(keys) < 2 and len(peppers) < 2:  # noqa: PLR2004  # The first ones replace none.
        return told
    with container.views.reading() as connection:
        clients = [row for row in container.clients.all(connection) if not row.revoked]
    lifetime = timedelta(seconds=container.settings.token_ttl_s + LEEWAY_S)
    if clients and len(keys) > 1 and container.clock() - keys[-1].at < lifetime:
        told.append(
            f"SIGNING_KEYS: the signing keys were made anew at {keys[-1].at:%Y-%m-%d %H:%M} UTC; "
            "every token issued before is refused"
        )
    if dead := sum(_is_dead(container, client, peppers) for client in clients):
        told.append(
            f"SIGNING_KEYS: the pepper is not that of before: the secrets of {dead} clients are "
            "refused; restore the directory from its backup, or rotate each secret"
        )
    return told


def _lost_secrets(container: Container) -> list[str]:
    """Say how many endpoints have a webhook secret that was derived from another key."""
    keys = container.notes.all("webhook_key")
    if len(keys) < 2:  # noqa: PLR2004  # The first one replaces none.
        return []
    with container.views.reading() as connection:
        ids = [row.id for row in container.webhook_endpoints.all(connection)]
    given = [container.log.get(WebhookEndpoint, each).secret_since for each in ids]
    dead = sum(_at(keys, each) != keys[-1].value for each in given)
    told = (
        f"SIGNING_KEYS: the key of webhooks is not that of before: receivers refuse what {dead} "
        "endpoints are told; restore the directory from its backup, or rotate each secret"
    )
    return [told] if dead else []


def _is_dead(container: Container, client: ApiClientRow, peppers: Sequence[Note]) -> bool:
    """Tell whether the newest secret of a client was hashed with another pepper."""
    given = (ApiClient.Registered, ApiClient.SecretRotated)
    history = container.log.history(api_client_id(client.client_id))
    newest = [event.timestamp for event in history if isinstance(event, given)]
    return bool(newest) and _at(peppers, newest[-1]) != peppers[-1].value


def _at(notes: Sequence[Note], moment: datetime) -> str:
    """Return the value that was noted at a moment; before the first note, that of the first."""
    before = [value for at, value in notes if at <= moment]
    return before[-1] if before else notes[0].value


def missing_keys(container: Container) -> str | None:
    """Say why tokens can be neither signed nor verified; None when they can."""
    try:
        container.keys.signing_key()
    except SigningKeysError as error:
        return str(error)
    return None
