"""Secrets of clients and keys of operators: made, hashed and compared; nothing is stored here."""

import hmac
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Sequence
from uuid import UUID

RandomBytes = Callable[[int], bytes]

CLIENT_ID_PREFIX = "cl_"
CLIENT_ID_BYTES = 12
SECRET_PREFIX = "cls_"  # noqa: S105 - A public prefix by which scanners recognise a leaked secret.
SECRET_BYTES = 32
KEY_PREFIX = "opk_"
ACTIVE_SECRETS_MAX = 2  # A rotation keeps the older secret beside the newer one.

_KEY = re.compile(rf"{KEY_PREFIX}([0-9a-f]{{32}})_[\w-]{{43}}", re.ASCII)

# As long as a hash but never equal to one, because it is not hexadecimal.
_NO_HASH = "-" * 64


def new_client_id(random_bytes: RandomBytes) -> str:
    """Return `cl_` and 24 lowercase hexadecimal digits."""
    return CLIENT_ID_PREFIX + random_bytes(CLIENT_ID_BYTES).hex()


def new_client_secret(random_bytes: RandomBytes) -> str:
    """Return `cls_` and 256 random bits in base64url without padding (43 characters)."""
    return SECRET_PREFIX + _random_text(random_bytes)


def new_operator_key(operator_id: UUID, random_bytes: RandomBytes) -> str:
    """Return `opk_`, the digits of the operator's id, `_`, and 256 random bits as in a secret."""
    return f"{KEY_PREFIX}{operator_id.hex}_{_random_text(random_bytes)}"


def operator_of(key: str) -> UUID | None:
    """Return the operator that a key names; None if the text does not have the form of a key."""
    match = _KEY.fullmatch(key)
    return UUID(match[1]) if match else None


def _random_text(random_bytes: RandomBytes) -> str:
    return urlsafe_b64encode(random_bytes(SECRET_BYTES)).rstrip(b"=").decode()


class SecretHasher:
    """Hashes secrets of 256 random bits, for which a slow hash would only add load.

    The pepper may be a function, which is called when it is first needed. Raises ValueError for an
    empty pepper.
    """

    def __init__(self, pepper: bytes | Callable[[], bytes]) -> None:
        if not pepper:
            message = "the pepper is empty"
            raise ValueError(message)
        self._pepper = pepper

    def hash(self, secret: str) -> str:
        """Return the HMAC-SHA256 of the secret under the pepper, as 64 hexadecimal digits."""
        # A submitted secret may hold lone surrogates; then it is wrong, but must raise no error.
        pepper = self._pepper if isinstance(self._pepper, bytes) else self._pepper()
        return hmac.digest(pepper, secret.encode("utf-8", "surrogatepass"), "sha256").hex()

    def fingerprint(self) -> str:
        """Return a value that identifies the pepper without revealing it."""
        return self.hash("fingerprint")[:32]

    def matches(self, secret: str, hashes: Sequence[str]) -> bool:
        """Tell whether the secret has one of the hashes.

        An empty list, as for an unknown client, takes the same time as a wrong secret.
        """
        candidate = self.hash(secret)
        missing = ACTIVE_SECRETS_MAX - len(hashes)
        found = False
        for stored in (*hashes, *(_NO_HASH for _ in range(missing))):
            found |= hmac.compare_digest(candidate, stored)
        return found
