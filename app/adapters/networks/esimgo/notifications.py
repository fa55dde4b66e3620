"""What eSIM Go sends by itself (callbacks, version 3): verified, and read for its ICCID alone.

A notification has neither a number nor a time, so one that somebody has recorded can be sent again
for ever. Therefore nothing that it says of usage is believed: it only says where to look.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping

import msgspec

from app.adapters.networks.esimgo.wire import ICCID
from domain.links.network import Forged

SIGNATURE = "x-signature-sha256"


class Notification(msgspec.Struct):
    """A callback; those about our account have no ICCID. An example has it as a number."""

    iccid: str | int | None = None


def iccid_of(headers: Mapping[str, str], body: bytes, key: str) -> str | None:
    """Return the ICCID that a notification is about, None if it is about none.

    Its signature is HMAC-SHA256 of the body under the API key. The guide writes it in hexadecimal,
    the reference in base64, so both are taken. Raises Forged for any other, and for none.
    """
    digest = hmac.new(key.encode(), body, hashlib.sha256).digest()
    told = headers.get(SIGNATURE, "").strip().encode("utf-8", "replace")
    good = (digest.hex().encode(), base64.b64encode(digest))
    if not key or not any([hmac.compare_digest(told, each) for each in good]):  # noqa: C419  # Both are compared, whatever the first says.
        raise Forged
    try:
        iccid = msgspec.json.decode(body, type=Notification).iccid
    except msgspec.MsgspecError:
        return None
    return str(iccid) if iccid is not None and ICCID.fullmatch(str(iccid)) else None
