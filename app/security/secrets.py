"""Secrets of clients and keys of operators: made, hashed and compared; nothing is stored here."""

import hmac
import re
from collections.abc import Sequence
from secrets import token_hex, token_urlsafe
from uuid import UUID

from app.security.keys import SharedSecret, SharedSecrets

CLIENT_ID_PREFIX = "cl_"
CLIENT_ID_BYTES = 12
SECRET_PREFIX = "cls_"  # noqa: S105 - A public prefix by which scanners recognise a leaked secret.
SECRET_BYTES = 32
KEY_PREFIX = "opk_"
ACTIVE_SECRETS_MAX = 2  # A rotation keeps the older secret beside the newer one.

_KEY = re.compile(rf"{KEY_PREFIX}([0-9a-f]{{32}})_[\w-]{{43}}", re.ASCII)

# As long as a hash but never equal to one, because it is not hexadecimal.
_NO_HASH = "-" * 64


def new_client_id() -> str:
    """Return `cl_` and 24 lowercase hexadecimal digits."""
    return CLIENT_ID_PREFIX + token_hex(CLIENT_ID_BYTES)


def new_client_secret() -> str:
    """Return `cls_` and 256 random bits in base64url without padding (43 characters)."""
    return SECRET_PREFIX + token_urlsafe(SECRET_BYTES)


def new_operator_key(operator_id: UUID) -> str:
    """Return `opk_`, the digits of the operator's id, `_`, and 256 random bits as in a secret."""
    return f"{KEY_PREFIX}{operator_id.hex}_{token_urlsafe(SECRET_BYTES)}"


def operator_of(key: str) -> UUID | None:
    """Return the operator that a key names; None if the text does not have the form of a key."""
    match = _KEY.fullmatch(key)
    return UUID(match[1]) if match else None


class SecretHasher:
    """Hashes secrets of 256 random bits, for which a slow hash would only add load.

    A hash is an HMAC-SHA256; before it stand the id of its pepper and a colon, if that is not the
    first one. Older hashes name no pepper.
    """

    def __init__(self, peppers: SharedSecrets) -> None:
        self._peppers = peppers

    def hash(self, secret: str) -> str:
        pepper = self._peppers.newest()
        digest = _digest(pepper, secret)
        return digest if pepper.is_first else f"{pepper.id}:{digest}"

    def matches(self, secret: str, hashes: Sequence[str]) -> str | None:
        """Return which of the hashes the secret has, under a pepper that is not revoked.

        An empty list, as for an unknown client, takes the same time as a wrong secret.
        """
        missing = ACTIVE_SECRETS_MAX - len(hashes)
        found = None
        for stored in (*hashes, *(_NO_HASH for _ in range(missing))):
            pepper = self._pepper_of(stored) or self._peppers.newest()
            if hmac.compare_digest(_digest(pepper, secret), stored.rpartition(":")[2]):
                found = stored
        return found

    def is_outdated(self, stored: str) -> bool:
        """Tell whether a newer pepper should keep this secret from now on."""
        return self.pepper_id(stored) != self._peppers.newest().id

    def pepper_id(self, stored: str) -> str | None:
        """Return the id of the pepper of a hash; None if it is revoked or gone."""
        pepper = self._pepper_of(stored)
        return None if pepper is None else pepper.id

    def _pepper_of(self, stored: str) -> SharedSecret | None:
        return self._peppers.get(stored.rpartition(":")[0] or None)


def _digest(pepper: SharedSecret, secret: str) -> str:
    # A submitted secret may hold lone surrogates; then it is wrong, but must raise no error.
    return hmac.digest(pepper.value, secret.encode("utf-8", "surrogatepass"), "sha256").hex()
