"""Handovers: an address by which a traveller installs a link, without a token.

The address is a bearer secret: the id of a stream and 128 random bits, stored as a hash. The newest
one of a link counts, until its end, while nothing is suspended.
"""

import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

from domain.cause import Cause
from domain.errors import KEY_ERASED, NotFound, refuse_other
from domain.links.link import Link
from domain.log.aggregate import Created, Root, itself, sets
from domain.log.log import Log
from domain.personal import Sealed, Vault, open_text, seal_text

SECRET_BYTES = 16
_ADDRESS = re.compile(r"hov_([\w-]{43})", re.ASCII)  # Log lines are searched for such a beginning.


class Handover(Root):
    """What one address shows and until when; its link names the one that counts.

    With an Idempotency-Key its id is derived, so the log itself refuses a twin.
    """

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


def address_of(stream_id: UUID, secret: bytes) -> str:
    return "hov_" + urlsafe_b64encode(stream_id.bytes + secret).rstrip(b"=").decode()


def load_handover(log: Log, address: str) -> Handover | None:
    """Return what an address stands for; None for a wrong one, whatever is wrong with it."""
    match = _ADDRESS.fullmatch(address)
    read = urlsafe_b64decode(f"{match[1]}=") if match else bytes(16 + SECRET_BYTES)
    found = log.find(Handover, UUID(bytes=read[:16]))
    stored = "" if found is None else found.made.secret_hash
    return found if hmac.compare_digest(stored, sha256(read[16:]).hexdigest()) else None


def hand_over(  # noqa: PLR0913  # What of, for whom, and all that was asked for.
    log: Log, vault: Vault, link: Link, stream_id: UUID, cause: Cause, secret: bytes, **wanted: Any
) -> tuple[Handover, bool]:
    """Make the address of a link that counts from now on; tell whether this is a replay.

    `wanted` is the body of the request. Raises LinkEnded, RateLimited, and IdempotencyKeyReused for
    another request with the key.
    """
    owner, lasts = link.organization_id, timedelta(seconds=wanted["expires_in"])
    facts = {name: wanted[name] for name in ("language", "picture")}

    def decide(newest: Link) -> tuple[Handover, bool]:
        if (earlier := log.find(Handover, stream_id)) is not None:
            made = earlier.made
            url = open_text(vault, owner, made.link_id, made.top_up_url)
            if url is None and made.top_up_url is not None:
                raise NotFound(KEY_ERASED)
            refuse_other(
                **{name: getattr(made, name) != value for name, value in facts.items()},
                expires_in=made.until - made.timestamp != lasts,
                top_up_url=url != wanted["top_up_url"],
                link=made.link_id != newest.id,
            )
            return earlier, True
        newest.require_live()
        its: dict[str, Any] = {"organization_id": owner, "link_id": newest.id, **facts}
        its |= {"secret_hash": sha256(secret).hexdigest(), "until": cause.at + lasts}
        its["top_up_url"] = seal_text(vault, owner, newest.id, wanted["top_up_url"], cause)
        new = Handover.begin(Handover.Made, cause, stream_id, **its)
        newest.hand_over(stream_id, cause)
        log.append(newest, new)
        return new, False

    return log.change(link, decide)
