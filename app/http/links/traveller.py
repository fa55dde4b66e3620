"""The traveller's page of a link, which its address opens. It shows what is stored and asks nobody.

Each language is a file in `languages`. The page loads nothing and runs no script.
"""

import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

from flask import Blueprint, Response

from app.http.edge.errors import reply_of
from app.http.edge.media import HTML, PNG, TEMPLATES, accepted, policy
from app.http.edge.request import CURRENT, caller_address
from app.http.links import qr
from app.http.links.replies import ANDROID, APPLE
from domain.accounts.organization import Organization
from domain.errors import NotFound, RateLimited
from domain.links.handover import Handover, load_handover
from domain.links.link import Link
from domain.links.network import ActivationCode, NetworkReading
from domain.links.readings import plans_of
from domain.personal import open_text

PATH, PICTURE_PIXELS, QR_PIXELS = "/e/", 512, 240
# Of a colour to which black and white have the same contrast; and up to where sRGB is linear.
EVEN_LUMINANCE, LINEAR_MAX = 0.179, 0.04045
PER_MINUTE = 60  # Requests of one address, whoever sends them.
ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "languages").glob("*.json"))
WORDS: Mapping[str, Any] = {file.stem: json.loads(file.read_text("utf-8")) for file in FILES}
LANGUAGES, USUAL = (*WORDS,), "en"
STYLE = (ROOT / "static" / "handover.css").read_text("utf-8")
PICTURES = "img-src data:; "  # Those within the page.
BRAND = "@media screen {{ :root {{ --brand: {}; --on-brand: {}; }} }}\n"


HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": policy(STYLE, PICTURES),
    "Referrer-Policy": "no-referrer",
    "Vary": "Accept-Language, User-Agent",
    "X-Robots-Tag": "noindex, nofollow",
}

Opened = tuple[Handover, Link, Organization, ActivationCode]

pages = Blueprint("traveller", __name__)


@pages.get(f"{PATH}<path:address>")  # Mail programs add to an address what it has not.
def page(address: str) -> Response:
    return _answered(address, _page)


@pages.get(f"{PATH}<address>/qr.png")
def picture(address: str) -> Response:
    return _answered(address, _picture)


def _answered(address: str, show: Callable[[Opened], Response]) -> Response:
    """Answer who opens an address; whatever is wrong with it, he is told the same."""
    try:
        response = show(_open(address))
    except Exception as error:  # noqa: BLE001  # There is an answer to every error.
        _, status, more = reply_of(error)
        response = _html(None, "note.html", about="gone" if status == NotFound.status else "later")
        response.status_code = status
        response.headers.update(more)
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def _open(address: str) -> Opened:
    """Return what an address opens. Raises NotFound, and RateLimited beyond its own limit."""
    parts = CURRENT.get().parts
    now, found = parts.gate.now(), load_handover(parts.log, address)
    if found is None:
        # For who sends it, as wrong secrets of all clients count.
        sender = caller_address(CURRENT.get().environ, parts.settings.trusted_proxies)
        counted = [sha256(f"{PATH}\0{sender}".encode()).hexdigest()] * 2
        if wait_s := parts.throttle.wait_s(*counted):
            raise RateLimited(retry_after_s=wait_s)
        parts.throttle.failed(*counted)
        raise NotFound
    admission = parts.handover_limits.admit(found.id, PER_MINUTE)
    if admission.is_over:
        raise RateLimited(retry_after_s=admission.resets_s)
    link = parts.log.get(Link, found.made.link_id)
    organization = parts.log.get(Organization, link.organization_id)
    code = parts.link_readings.open_code(link.organization_id, link.id, link.lpa)
    counts = found.id == link.handover and now < found.made.until
    is_open = link.is_live and link.status != "suspended" and organization.status == "active"
    if not counts or not is_open or code is None:
        raise NotFound
    return found, link, organization, code


def _picture(opened: Opened) -> Response:
    found, link, _, code = opened
    if not found.made.picture:
        raise NotFound
    with CURRENT.get().parts.pictures.slot(link.organization_id):
        return Response(qr.as_png(code.lpa, PICTURE_PIXELS), content_type=PNG)


def _page(opened: Opened) -> Response:
    found, link, organization, code = opened
    made, parts, carddata = found.made, CURRENT.get().parts, quote(code.lpa, safe="")
    usage = parts.readings.load([link.id]).get(link.id, NetworkReading()).usage
    with parts.pictures.slot(link.organization_id):
        symbol = qr.as_svg(code.lpa, QR_PIXELS).decode()
    ways = [("iphone", APPLE + carddata), ("android", ANDROID + carddata)]
    is_android = "Android" in CURRENT.get().environ.get("HTTP_USER_AGENT", "")
    _, server, matching_id, *_ = [*code.lpa.split("$"), "", ""]
    return _html(
        made.language,
        "traveller.html",
        brand=organization.name,
        colour=organization.brand_colour,
        logo=organization.brand_logo,
        symbol=symbol,
        ways=ways[::-1] if is_android else ways,
        codes={"server": server, "code": matching_id, "confirmation": code.confirmation_code},
        installed_at=link.installed_at,
        plans=[e for e in plans_of(link, usage, parts.clock()) if not e.is_expired],
        as_of=usage and usage.as_of,
        until=made.until,
        shop=open_text(parts.vault, link.organization_id, link.id, made.top_up_url),
    )


def _html(
    language: str | None, template: str, *, colour: str | None = None, **facts: Any
) -> Response:
    """Return a page in a language, or in the one of ours that its reader's browser likes best."""
    wanted = accepted(CURRENT.get().environ.get("HTTP_ACCEPT_LANGUAGE", ""))
    liked = sorted(filter(wanted.get, wanted), key=wanted.__getitem__, reverse=True)
    best = next((it for each in liked if (it := each.partition("-")[0]) in WORDS), USUAL)
    style = STYLE + (BRAND.format(colour, ink_on(colour)) if colour else "")
    facts |= {"language": language or best, "words": WORDS[language or best], "style": style}
    made = TEMPLATES.get_template(template).render(**facts)
    headers = {"Content-Security-Policy": policy(style, PICTURES)}
    return Response(made, content_type=f"{HTML}; charset=utf-8", headers=headers)


def ink_on(colour: str) -> str:
    """Return black or white, whichever has the greater contrast to a colour (WCAG 2.2, 1.4.3)."""
    parts = (each / 255 for each in bytes.fromhex(colour[1:]))
    red, green, blue = (
        each / 12.92 if each <= LINEAR_MAX else ((each + 0.055) / 1.055) ** 2.4 for each in parts
    )
    is_light = 0.2126 * red + 0.7152 * green + 0.0722 * blue > EVEN_LUMINANCE
    return "#000" if is_light else "#fff"
