"""The traveller's page of a link, which its address opens. It shows what is stored and asks nobody.

Each language is a file in `languages`. The page loads nothing but from here, and runs no script.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

from flask import Blueprint, Response

from app.http.edge.errors import reply_of
from app.http.edge.media import HTML, PNG, TEMPLATES, accepted
from app.http.edge.request import CURRENT, Given, caller_address, current_request
from app.http.links import qr
from app.http.links.replies import ANDROID, APPLE
from domain.accounts.organization import Organization
from domain.errors import NotFound, RateLimited
from domain.links import handover
from domain.links.handover import Handover
from domain.links.link import Link
from domain.links.network import ActivationCode, NetworkReading
from domain.links.readings import plans_of

PATH, PICTURE, PICTURE_PIXELS, QR_PIXELS = "/e/", "/qr.png", 512, 240
PER_MINUTE = 60  # Requests of one address, whoever sends them.
ROOT = Path(__file__).parents[1]
WORDS: Mapping[str, Mapping[str, str]] = {
    file.stem: json.loads(file.read_text("utf-8"))
    for file in sorted((ROOT / "languages").glob("*.json"))
}
LANGUAGES, USUAL = (*WORDS,), "en"
STYLE = (ROOT / "static" / "handover.css").read_text("utf-8")
POLICY = (
    "default-src 'none'; style-src 'sha256-{}'; img-src 'self' data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex, nofollow",
    "Vary": "Accept-Language, User-Agent",
}
GB = 1_000  # In MB.

Opened = tuple[Handover, Link, Organization, ActivationCode]

pages = Blueprint("traveller", __name__)


@pages.get(f"{PATH}<address>")
def page(address: str) -> Response:
    return _answered(address, _page)


@pages.get(f"{PATH}<address>{PICTURE}")
def picture(address: str) -> Response:
    return _answered(address, _picture)


def _answered(address: str, show: Callable[[Opened], Response]) -> Response:
    """Answer who opens an address; whatever is wrong with it, he is told the same."""
    try:
        response = show(_open(CURRENT.get(), address))
    except Exception as error:  # noqa: BLE001  # There is an answer to every error.
        _, status, more = reply_of(error)
        response = _html(None, "note.html", about="gone" if status == NotFound.status else "later")
        response.status_code = status
        response.headers.update(more)
    response.headers.update(HEADERS)
    return response


def _open(given: Given[Any], address: str) -> Opened:
    """Return what an address opens. Raises NotFound, and RateLimited beyond its own limit."""
    parts, now = given.parts, given.parts.gate.now()
    found = handover.find(parts.log, address)
    if found is None:
        _count_wrong(given)
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


def _count_wrong(given: Given[Any]) -> None:
    """Count an address that is none, for who sends it, as wrong secrets of all clients count."""
    parts = given.parts
    sender = f"{PATH}\0{caller_address(given.environ, parts.settings.trusted_proxies)}"
    counted = sha256(sender.encode()).hexdigest()
    if wait_s := parts.throttle.wait_s(counted, counted):
        raise RateLimited(retry_after_s=wait_s)
    parts.throttle.failed(counted, counted)


def _picture(opened: Opened) -> Response:
    found, _, _, code = opened
    if not found.made.picture:
        raise NotFound
    with CURRENT.get().parts.pictures.slot(found.id):
        return Response(qr.as_png(code.lpa, PICTURE_PIXELS), content_type=PNG)


def _page(opened: Opened) -> Response:
    found, link, organization, code = opened
    parts = CURRENT.get().parts
    usage = parts.readings.load([link.id]).get(link.id, NetworkReading()).usage
    plans = [each for each in plans_of(link, usage, parts.clock()) if not each.is_expired]
    with parts.pictures.slot(found.id):
        symbol = qr.as_svg(code.lpa, QR_PIXELS).decode()
    carddata = quote(code.lpa, safe="")
    ways = [("iphone", APPLE + carddata), ("android", ANDROID + carddata)]
    _, server, matching_id, *_ = [*code.lpa.split("$"), "", ""]
    return _html(
        found.made.language,
        "traveller.html",
        brand=organization.name,
        symbol=symbol,
        ways=ways[::-1] if "Android" in current_request().user_agent.string else ways,
        codes={"server": server, "code": matching_id, "confirmation": code.confirmation_code},
        installed_at=link.installed_at,
        plans=plans,
        notices=[*dict.fromkeys(it for e in plans for it in e.activation.plan.notices or ())],
        as_of=usage.as_of if usage is not None else None,
        until=found.made.until,
        top_up_url=parts.link_readings.open_text(
            link.organization_id, link.id, found.made.top_up_url
        ),
    )


def _html(language: str | None, template: str, **facts: Any) -> Response:
    """Return a page in a language, or else in that of its reader."""
    language = language or _reader_language()
    words = WORDS[language]
    style = f":root {{ --brand: #1a4fa0; --on-brand: #fff }}\n{STYLE}"
    made = TEMPLATES.get_template(template).render(
        language=language, words=words, style=style, size=_size(words["decimal"]), **facts
    )
    response = Response(made, content_type=f"{HTML}; charset=utf-8")
    digest = b64encode(sha256(style.encode()).digest()).decode()
    response.headers["Content-Security-Policy"] = POLICY.format(digest)
    return response


def _reader_language() -> str:
    """Return the language of ours that a browser likes best, whatever its region."""
    wanted = accepted(CURRENT.get().environ.get("HTTP_ACCEPT_LANGUAGE", ""))
    liked = sorted(filter(wanted.get, wanted), key=wanted.__getitem__, reverse=True)
    return next((it for each in liked if (it := each.partition("-")[0]) in WORDS), USUAL)


def _size(decimal: str) -> Callable[[float], str]:
    """Return what writes an amount of data with this sign before its decimals."""

    def size(megabytes: float) -> str:
        if megabytes < GB:
            return f"{megabytes:.0f} MB"
        return f"{megabytes / GB:.2f}".rstrip("0").rstrip(".").replace(".", decimal) + " GB"

    return size
