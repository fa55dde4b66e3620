"""Creates the missing keys of an installation at its start, and warns if that affects clients.

The database notes the first key of each directory of keys. So new keys, or the directory of another
installation, are recognized as a change.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from app.bootstrap.container import Container
from app.security.key_file import SigningKeysError
from app.security.keys import SharedSecrets
from app.security.tokens import LEEWAY_S
from domain.accounts.organization import ApiClient
from domain.webhooks.endpoint import WebhookEndpoint
from projections.stores.notes import Note


def ensure_keys(container: Container) -> None:
    """Create signing keys, pepper and the key of webhooks if they are missing."""
    container.keys.ensure()
    container.webhook_key.ensure()
    container.pepper.ensure()


def record_keys(container: Container) -> list[str]:
    """Note the keys in use; return a line for each thing that clients have lost by a change."""
    recorded = {note.value for note in container.notes.all("signing_keys")}
    first = container.keys.first_kid()
    if not recorded or (first is not None and first not in recorded):
        kid = first or container.keys.newest().kid
        container.notes.add("signing_keys", kid, container.clock())
    record_pepper(container)
    container.notes.add("webhook_key", container.webhook_key.newest().id, container.clock())
    return lost_keys(container)


def record_pepper(container: Container) -> None:
    """Note the pepper before a secret is hashed with it; raises SigningKeysError if it is lost.

    The note has the time of the clock that stamps the secret. A note from a clock that is ahead
    would make the secret look older than the pepper.
    """
    container.notes.add("pepper", container.pepper.newest().id, container.gate.require())


def lost_keys(container: Container) -> list[str]:
    """Say which tokens and secrets are refused because keys have changed or were revoked."""
    keys = container.notes.all("signing_keys")
    lines = []
    lifetime = timedelta(seconds=container.settings.token_ttl_s + LEEWAY_S)
    if len(keys) > 1 and container.clock() - keys[-1].at < lifetime and active_clients(container):
        lines.append(
            f"SIGNING_KEYS: the signing keys were made anew at {keys[-1].at:%Y-%m-%d %H:%M} UTC; "
            "every token issued before is refused"
        )
    peppers = container.notes.all("pepper")
    if len(peppers) > 1 or (peppers and container.pepper.revoked()):  # The first replaced none.
        lines += _lost_secrets(
            container.pepper,
            [
                each.secret_hashes[0].rpartition(":")[0] or _at(peppers, _given_at(container, each))
                for each in active_clients(container)
            ],
            "the pepper is not that of before: the secrets of {} clients are refused",
            "the secrets of {} clients ended with a revoked pepper: rotate each",
        )
    keys = container.notes.all("webhook_key")
    if len(keys) > 1 or (keys and container.webhook_key.revoked()):
        lines += _lost_secrets(
            container.webhook_key,
            [
                each.secrets[-1].key_id or _at(keys, each.secret_since)
                for each in active_endpoints(container)
            ],
            "the key of webhooks is not that of before: receivers refuse what {} endpoints are "
            "told",
            "{} endpoints are told nothing: their secrets are of a revoked key",
        )
    return lines


def _lost_secrets(
    store: SharedSecrets, used: Sequence[str], lost: str, revoked: str
) -> Iterator[str]:
    """Say how many secrets were made with a key that is gone or revoked, of these ids."""
    if dead := sum(each not in store.current() and each not in store.revoked() for each in used):
        how = "restore the directory from its backup, or rotate each secret"
        yield f"SIGNING_KEYS: {lost.format(dead)}; {how}"
    if ended := sum(each in store.revoked() for each in used):
        yield revoked.format(ended)


def active_clients(container: Container) -> list[ApiClient]:
    """Return the clients that are not revoked, oldest first, with what the log says of them."""
    rows = [row for row in container.views.read(container.clients.all) if not row.revoked]
    return [container.log.get(ApiClient, ApiClient.id_of(row.client_id)) for row in rows]


def active_endpoints(container: Container) -> list[WebhookEndpoint]:
    """Return the endpoints of webhooks that are not deleted, oldest first."""
    ids = [row.id for row in container.views.read(container.webhook_endpoints.all)]
    return [container.log.get(WebhookEndpoint, each) for each in ids]


def _given_at(container: Container, client: ApiClient) -> datetime:
    kinds = (ApiClient.Registered, ApiClient.SecretRotated)
    history = container.log.history(client.id)
    return [event.timestamp for event in history if isinstance(event, kinds)][-1]


def _at(notes: Sequence[Note], moment: datetime) -> str:
    """Return the value that was noted at a moment; before the first note, that of the first."""
    before = [value for at, value in notes if at <= moment]
    return before[-1] if before else notes[0].value


def missing_keys(container: Container) -> str | None:
    """Say why tokens can be neither signed nor verified; None when they can."""
    try:
        container.keys.newest()
    except SigningKeysError as error:
        return str(error)
    return None
