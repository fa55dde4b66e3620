"""The QR code of an activation code (ISO/IEC 18004), as an image that is as large as was asked."""

import io
import zlib
from collections.abc import Iterator
from struct import pack

import segno

QUIET = 4  # Modules around the symbol that stay white, so that a scanner finds it.
PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
GREY_OF_ONE_BIT = b"\x01\0\0\0\0"  # Bits, kind of colour, compression, filter, not interlaced.


def as_svg(text: str, size: int) -> bytes:
    """Draw a text as SVG, which is `size` wide and high and can be made larger without loss."""
    code, image = _encode(text), io.BytesIO()
    scale = size / (len(code.matrix) + 2 * QUIET)
    # With a white ground, because scanners read no symbol on a dark page.
    code.save(image, kind="svg", scale=scale, border=QUIET, light="#fff", xmldecl=False)
    return image.getvalue()


def as_png(text: str, size: int) -> bytes:
    """Draw a text as PNG of `size` pixels; modules have whole pixels, the rest is white."""
    code = _encode(text)
    scale = max(1, size // (len(code.matrix) + 2 * QUIET))
    lines = zlib.compress(b"".join(b"\0" + line for line in _lines(code, scale, size)), 9)
    header = pack(">II", size, size) + GREY_OF_ONE_BIT
    chunks = ((b"IHDR", header), (b"IDAT", lines), (b"IEND", b""))
    return PNG_MAGIC + b"".join(
        pack(">I", len(data)) + name + data + pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )


def _encode(text: str) -> segno.QRCode:
    return segno.make_qr(text, error="m")


def _lines(code: segno.QRCode, scale: int, size: int) -> Iterator[bytes]:
    """Yield the lines of an image, a bit for each pixel; 1 is white."""
    before = (size - len(code.matrix) * scale) // 2
    white = (1 << size) - 1
    lines = [white] * size
    for row, modules in enumerate(code.matrix):
        dark = 0
        for column, module in enumerate(modules):
            if module:
                dark |= ((1 << scale) - 1) << (size - before - (column + 1) * scale)
        first = before + row * scale
        lines[first : first + scale] = [white ^ dark] * scale
    padding = -size % 8
    yield from ((line << padding).to_bytes((size + padding) // 8) for line in lines)
