"""The page by which a traveller installs a link: its address, made and revoked by partners.

Who has the address needs no token, so it is a secret: no log line, span or metric has it.
"""

import re
from contextlib import suppress
from datetime import timedelta
from os import urandom
from typing import Annotated, ClassVar
from urllib.parse import urlsplit

from marshmallow import Schema, ValidationError, fields, validate
from msgspec import Struct

from app.http.edge.input import Flag, JsonNumber, described
from app.http.edge.operation import Group, Shown
from app.http.edge.replies import Answer, example, replay_headers, time_or_null
from app.http.edge.request import Given, reached
from app.http.links.finding import load_link
from app.http.links.traveller import LANGUAGES, PATH, PICTURE
from app.security.authorization import Caller
from domain.errors import NetworkUnavailable, RateLimited
from domain.links.handover import SECRET_BYTES, address_of, hand_over, handover_id
from domain.links.link import HANDED_OVER, Link
from projections.engine.shape import Moment, means, one_of

HOUR_S, DAY_S = 3_600, 86_400
LASTS_MIN_S, LASTS_S, LASTS_MAX_S = 5 * 60, 30 * DAY_S, 366 * DAY_S
URL_CHARS_MAX = 2048
# RFC 3986 without user and with nothing that a page or a mail could read otherwise; a name that is
# not in ASCII comes as xn--….
URL_PATTERN = r"^https://[A-Za-z0-9]([A-Za-z0-9.-]{0,252})(:[0-9]{1,5})?([/?#][!#-;=?-Z_a-z~]*)?$"
NOT_A_URL = "Must be an https URL of a host on the internet, escaped to plain ASCII, without user."


class Handover(Struct, kw_only=True):
    """The address of a traveller's page, and what it shows."""

    url: Annotated[
        str | None,
        means(
            "Give it to the traveller alone: whoever has it can install the eSIM. Null: there is "
            "none, or this is a replay, for it is not stored and is told once.",
            example="https://api.partner.test/e/hov_dGhpcyBpcyBub3QgYSBzZWNyZXQsIG9ubHkgdGV4dA",
        ),
    ]
    picture_url: Annotated[
        str | None, means("The QR code as PNG, for an e-mail; null: it was not asked for.")
    ]
    expires_at: Annotated[Moment | None, means("When it ends; null: there is none (UTC).")]
    language: Annotated[
        str | None, means("That of the page; null: that of its reader.", example="fr")
    ]


def _check_url(url: str) -> None:
    with suppress(ValueError):  # Of a port that no host has.
        parts = urlsplit(url) if re.fullmatch(URL_PATTERN, url) else urlsplit("")
        labels = (parts.hostname or "").split(".")
        if len(labels) > 1 and all(labels) and not labels[-1].isdigit() and parts.port != 0:
            return
    raise ValidationError(NOT_A_URL)


class HandoverBody(Schema):
    """How long the address lasts, and what the page says besides."""

    example: ClassVar = {"expires_in": 7 * DAY_S, "top_up_url": "https://shop.example/top-up"}

    expires_in = JsonNumber(
        LASTS_MAX_S,
        lowest=LASTS_MIN_S,
        load_default=LASTS_S,
        metadata=described("How many seconds it lasts."),
    )
    language = fields.String(
        allow_none=True,
        load_default=None,
        validate=validate.OneOf(LANGUAGES),
        metadata=described(
            "The language of the page; null: that of its reader.",
            type="string",
            **one_of("PageLanguage", LANGUAGES, {"type": "null"}),
        ),
    )
    top_up_url = fields.String(
        allow_none=True,
        load_default=None,
        validate=[validate.Length(max=URL_CHARS_MAX), _check_url],
        metadata=described(
            "Where the traveller buys more from you; null: the page leads nowhere.",
            format="uri",
            pattern=URL_PATTERN,
        ),
    )
    picture = Flag(
        load_default=False,
        metadata=described(
            "Whether the QR code has an address of its own, for an e-mail. Servers of mailboxes "
            "fetch such pictures and keep them."
        ),
    )


blueprint = Group("Handover", __name__, "links", description=__doc__)


@blueprint.operation(
    "POST /v1/links/<identifier>/handover",
    resource=load_link,
    body=HandoverBody,
    key=True,
    reply=Shown(example("The address.", Handover, picture_url=None), 201),
    errors="LINK_ENDED NETWORK_UNAVAILABLE",
    invalid={"top_up_url": NOT_A_URL},
    examples=[RateLimited(HANDED_OVER, retry_after_s=HOUR_S)],
)
def hand_over_link(_: Caller, given: Given[Link]) -> Answer:
    """Make a page for the traveller of a link.

    It installs the eSIM on a phone and tells what is left of its plans, as last seen. It takes the
    place of the one before. It opens until its end, while the link and your organization are active
    and nothing was erased. Its `url` is told once: a replay has none, and if the reply was lost ask
    again with another key.
    """
    parts, link, cause = given.parts, given.found, given.cause()
    if link.is_live:
        parts.link_readings.activation_code(link, cause)
        link = link if link.lpa is not None else parts.log.get(Link, link.id)
        if link.lpa is None:  # It could not be stored now, and nobody asks when the page is opened.
            raise NetworkUnavailable
    owner, secret = link.organization_id, urandom(SECRET_BYTES)
    stream_id = handover_id(owner, given.key) if given.key is not None else parts.new_id()
    lasts = timedelta(seconds=given.body["expires_in"])
    wanted = {name: given.body[name] for name in ("language", "picture", "top_up_url")}
    made, replayed = hand_over(
        parts.log, parts.vault, link, stream_id, cause, secret=secret, lasts=lasts, **wanted
    )
    base = reached(parts.settings.base)
    url = None if replayed else f"{base}{PATH}{address_of(made.id, secret)}"
    shown = Handover(
        url=url,
        picture_url=url and f"{url}{PICTURE}" if made.made.picture else None,
        expires_at=time_or_null(made.made.until),
        language=made.made.language,
    )
    headers = {"Location": f"{base}/v1/links/{link.id}", **replay_headers(replayed)}
    return Answer(shown, 201, headers)


@blueprint.operation(
    "DELETE /v1/links/<identifier>/handover",
    resource=load_link,
    reply=example(
        "There is no address.",
        Handover,
        "RevokedHandoverReply",
        url=None,
        picture_url=None,
        expires_at=None,
        language=None,
    ),
)
def revoke_handover(_: Caller, given: Given[Link]) -> Handover:
    """Revoke the address of a traveller's page.

    At once: who opens it is told that there is nothing. To revoke it again changes nothing.
    """
    cause = given.cause()
    given.parts.log.update(given.found, lambda newest: newest.hand_over(None, cause))
    return Handover(url=None, picture_url=None, expires_at=None, language=None)
