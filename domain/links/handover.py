"""Handovers: an address by which a traveller installs a link, without a token.

The address is a bearer secret: it holds the id of a stream and 128 random bits, of which only a
hash is stored. The newest one of a link counts, until its end, while the link is not suspended.
"""

import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

from domain.cause import Cause
from domain.errors import KEY_ERASED, NotFound, refuse_other
from domain.ids import derive_id
from domain.links.link import Link
from domain.log.aggregate import Created, Root, itself, sets
from domain.log.log import Log
from domain.personal import Sealed, Vault, open_text, seal_text

SECRET_BYTES = 16
PREFIX = "hov_"  # Log lines are searched for it, and so can those of others be.
_ADDRESS = re.compile(rf"{PREFIX}([\w-]{{43}})", re.ASCII)


class Handover(Root):
    """What one address shows and until when; its link names the one that counts."""

    TOPIC = "handover"

    class Made(Created):
        """`language` None is that of the reader; `picture`: the QR code has an own address.

        `top_up_url` is sealed for the link, so it is erased together with the activation code.
        """

        TOPIC = "handover.made"
        SETS = sets(made=itself)

        organization_id: UUID
        link_id: UUID
        secret_hash: str
        until: datetime
        language: str | None
        picture: bool
        top_up_url: Sealed | None

    made: Made


def handover_id(organization_id: UUID, key: str) -> UUID:
    """Return the stream of the request with an Idempotency-Key."""
    return derive_id("handover", organization_id, key)


def address_of(stream_id: UUID, secret: bytes) -> str:
    return PREFIX + urlsafe_b64encode(stream_id.bytes + secret).rstrip(b"=").decode()


def hash_of(secret: bytes) -> str:
    """Return what is stored of a secret; without a pepper, because nobody can guess 128 bits."""
    return sha256(secret).hexdigest()


def find(log: Log, address: str) -> Handover | None:
    """Return what an address stands for; None for a wrong one, whatever is wrong with it."""
    match = _ADDRESS.fullmatch(address)
    read = urlsafe_b64decode(match[1] + "=") if match else bytes(16 + SECRET_BYTES)
    found = log.find(Handover, UUID(bytes=read[:16]))
    stored = found.made.secret_hash if found is not None else hash_of(b"")
    return found if hmac.compare_digest(stored, hash_of(read[16:])) else None


def hand_over(  # noqa: PLR0913  # An event is whole: each argument is one of its facts.
    log: Log,
    vault: Vault,
    link: Link,
    stream_id: UUID,
    cause: Cause,
    *,
    secret: bytes,
    lasts: timedelta,
    top_up_url: str | None,
    **facts: object,
) -> tuple[Handover, bool]:
    """Make the address of a link that counts from now on; tell whether this is a replay.

    `facts` are its `language` and whether it has a `picture`. Raises LinkEnded, RateLimited, and
    IdempotencyKeyReused for another request with the key.
    """

    def decide(newest: Link) -> tuple[Handover, bool]:
        owner = newest.organization_id
        if (earlier := log.find(Handover, stream_id)) is not None:
            _require_same(vault, earlier.made, newest, lasts, {**facts, "top_up_url": top_up_url})
            return earlier, True
        newest.require_live()
        its: dict[str, Any] = {"organization_id": owner, "link_id": newest.id, **facts}
        its |= {"secret_hash": hash_of(secret), "until": cause.at + lasts}
        its["top_up_url"] = seal_text(vault, owner, newest.id, top_up_url, cause)
        new = Handover.begin(Handover.Made, cause, stream_id, **its)
        newest.hand_over(stream_id, cause)
        log.append(newest, new)
        return new, False

    return log.change(link, decide)


def _require_same(
    vault: Vault, made: Handover.Made, link: Link, lasts: timedelta, facts: Mapping[str, object]
) -> None:
    """Refuse a request with a key that has made another address."""
    url = open_text(vault, made.organization_id, made.link_id, made.top_up_url)
    if url is None and made.top_up_url is not None:
        raise NotFound(KEY_ERASED)
    known = {**vars(made), "top_up_url": url}
    refuse_other(
        link=made.link_id != link.id,
        expires_in=made.until - made.timestamp != lasts,
        **{name: known[name] != value for name, value in facts.items()},
    )
