"""The QR code of a link: scanned back it is the activation code, in either form and any size."""

import re
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
import zxingcpp
from werkzeug.test import TestResponse

from app.http.links import qr
from domain.links.link import Link
from domain.provider_errors import Unavailable
from tests.app.http.buying import FREE, LINKS, Buyer
from tests.app.http.service import code_of
from tests.installation import wait_until
from workers.links import CreateEndpoint

SVG, PNG = "image/svg+xml", "image/png"
SIZES = (128, 129, 256, 2048)
CODES = ("LPA:1$rsp.example$JQ-XK2F", "LPA:1$" + "h" * 120 + "$" + "M" * 128)


def image(shop: Buyer, link: dict[str, Any], accept: str = PNG, **query: object) -> TestResponse:
    path = f"{LINKS}/{link['id']}/qr"
    return shop.get(path, query_string=query, headers={"Accept": accept})


def scan(pixels: bytes, width: int) -> str:
    """Return the text of the QR code in an image of a byte for each pixel."""
    (found,) = zxingcpp.read_barcodes(memoryview(pixels).cast("B", (len(pixels) // width, width)))
    text: str = found.text
    return text


def of_png(png: bytes) -> tuple[bytes, int]:
    """Return the pixels of a PNG of one bit a pixel, and how many make a line."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    chunks, at = {}, 8
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        name, data = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        assert struct.unpack(">I", png[at + 8 + length : at + 12 + length])[0] == zlib.crc32(
            name + data
        )
        chunks[name], at = data, at + 12 + length
    assert [*chunks] == [b"IHDR", b"IDAT", b"IEND"]
    width, height, bits, *kind = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (bits, kind) == (1, [0, 0, 0, 0])
    lines, step = zlib.decompress(chunks[b"IDAT"]), 1 + -(-width // 8)
    assert len(lines) == height * step
    pixels = bytearray()
    for start in range(0, len(lines), step):
        assert lines[start] == 0, "a filter"
        line = f"{int.from_bytes(lines[start + 1 : start + step]):0{8 * (step - 1)}b}"
        pixels += bytes(255 if bit == "1" else 0 for bit in line[:width])
    return bytes(pixels), width


def of_svg(svg: bytes) -> tuple[bytes, int, float]:
    """Return the modules of an SVG as pixels, how many make a line, and how wide it is."""
    text = svg.decode()
    told = re.search(r'<svg [^>]*width="([0-9.]+)" height="\1"', text)
    path = re.search(r'd="(M4 4\.5[^"]*)"', text)
    dark, x, y, most = set[tuple[int, int]](), 4, 4, 0
    for step in re.findall(r"(h-?\d+|m-?\d+ -?\d+)", path[1]):
        if step[0] == "m":
            right, down = map(int, step[1:].split())
            x, y = x + right, y + down
        else:
            dark |= {(column, y) for column in range(x, x + int(step[1:]))}
            x += int(step[1:])
            most = max(most, x)
    width = most + 4
    each = range(4 * width)  # Four pixels for each module.
    pixels = bytes(0 if (c // 4, r // 4) in dark else 255 for r in each for c in each)
    return pixels, len(each), float(told[1])


@pytest.mark.parametrize("code", CODES, ids=["short", "longest"])
def test_what_is_drawn_is_what_is_scanned(code: str) -> None:
    for size in SIZES:
        pixels, width = of_png(qr.as_png(code, size))
        assert (width, scan(pixels, width)) == (size, code)
        pixels, line, told = of_svg(qr.as_svg(code, size))
        assert told == pytest.approx(size)
        assert scan(pixels, line) == code


def test_a_png_is_private_and_not_packed_again(acme: Buyer) -> None:
    link = acme.link(FREE)
    path = f"{LINKS}/{link['iccid']}/qr?size=2048"
    reply = acme.get(path, headers={"Accept": PNG, "Accept-Encoding": "gzip"})
    assert (reply.status_code, reply.content_type) == (200, PNG)
    assert reply.headers["Cache-Control"] == "private"
    assert "Content-Encoding" not in reply.headers
    assert {"Accept", "Authorization"} <= set(reply.headers["Vary"].split(", "))
    pixels, width = of_png(reply.data)
    assert (width, scan(pixels, width)) == (2048, link["lpa_profile"])
    packed = acme.get(path, headers={"Accept": SVG, "Accept-Encoding": "gzip"})
    assert packed.headers["Content-Encoding"] == "gzip"


def test_a_picture_waits_for_the_one_before(shop: Buyer) -> None:
    link, pictures = shop.link(FREE), shop.service.container.pictures
    with ThreadPoolExecutor(1) as pool:
        with pictures.slot(shop.id):
            asked = pool.submit(image, shop, link)
            wait_until(lambda: pictures._waiting == 1)  # noqa: SLF001  # The test looks in.
        assert asked.result().status_code == 200


def test_a_code_that_is_not_stored_is_asked_for(
    acme: Buyer, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, network = acme.service.container.log, acme.service.container.bare_network

    def down(*_: object, **__: object) -> str:
        raise Unavailable

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(CreateEndpoint, "lpa", lambda *_: None)  # As in earlier releases.
        meanwhile.setattr(network, "lpa", down)
        link = acme.link(FREE)
        reply = image(acme, link)
        assert (reply.status_code, code_of(reply)) == (503, "NETWORK_UNAVAILABLE")
    assert log.get(Link, UUID(link["id"])).lpa is None
    pixels, width = of_png(image(acme, link).data)
    assert log.get(Link, UUID(link["id"])).lpa is not None  # It is stored from then on.
    assert scan(pixels, width) == acme.read(link).json["data"]["lpa_profile"]


def test_a_code_that_was_erased_is_not_found(acme: Buyer, monkeypatch: pytest.MonkeyPatch) -> None:
    link = acme.create(FREE, key="k-1").json["data"]
    monkeypatch.setattr(acme.service.container.vault, "open", lambda *_: None)
    again = acme.create(FREE, key="k-1")
    assert (again.status_code, again.json["data"]["lpa_profile"]) == (201, "")
    reply = image(acme, link)
    assert (reply.status_code, code_of(reply)) == (404, "NOT_FOUND")
    assert "erased" in reply.json["error"]["message"]
