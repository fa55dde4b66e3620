"""Sends replies of a kilobyte and more as gzip (RFC 1952) to clients that accept it."""

import zlib
from collections.abc import Iterable, Iterator
from functools import cached_property
from hashlib import blake2b
from http import HTTPStatus
from secrets import randbelow
from struct import pack
from typing import cast

from flask import Request, Response

from app.http.edge.media import accepted

BYTES_MIN = 1024  # A smaller reply fits into one packet uncompressed.
COMPRESSED = {"image/png"}  # Types that are compressed already.
LEVEL = 1  # For a job of 1000 numbers, 6 saves a quarter more bytes and takes three times as long.
# Random padding hides the exact length of a reply. By it, an eavesdropper who can choose a name in
# the reply could guess a secret code beside it (BREACH).
PADDING_BYTES = 64
TAG_BYTES = 16
HEADER = b"\x1f\x8b\x08\x08\0\0\0\0\0\xff"  # Deflate, a file name follows, no time, any system.


class Kept(bytes):
    """What is the same for everybody: it is compressed once, which takes some more memory."""

    @cached_property
    def packed(self) -> bytes:
        """The same as gzip. It holds no secret, so its length may be known."""
        return zlib.compress(self, wbits=zlib.MAX_WBITS + 16)

    @cached_property
    def tag(self) -> str:
        """An ETag; a weak one, because it stands for the compressed bytes as well."""
        return blake2b(self, digest_size=TAG_BYTES).hexdigest()


def encode(response: Response, request: Request) -> None:
    """Compress a reply if that saves bytes and the client accepts gzip; `Vary` tells caches."""
    blocks = cast("Iterable[bytes]", response.response)
    if response.is_sequence and sum(map(len, blocks)) < BYTES_MIN:
        return
    if response.status_code == HTTPStatus.NOT_MODIFIED or response.mimetype in COMPRESSED:
        return
    response.vary.add("Accept-Encoding")
    if not takes_gzip(request.headers.get("Accept-Encoding", "")):
        return
    response.headers["Content-Encoding"] = "gzip"
    if response.is_sequence:  # The server sends it without holding a thread.
        whole, *_ = blocks
        response.set_data(whole.packed if isinstance(whole, Kept) else b"".join(gzip(blocks)))
    else:
        response.response = gzip(blocks)


def takes_gzip(header: str) -> bool:
    """Tell whether a client accepts gzip and does not prefer plain bytes (RFC 9110 §12.5.3)."""
    wanted = accepted(header)
    others = wanted.get("*", 0.0)
    quality = wanted.get("gzip", wanted.get("x-gzip", others))
    return quality > 0 and quality >= wanted.get("identity", others)


def gzip(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Compress blocks; each can be read before the next one comes."""
    yield HEADER + b"-" * randbelow(PADDING_BYTES) + b"\0"
    deflate = zlib.compressobj(LEVEL, wbits=-zlib.MAX_WBITS)
    checksum = size = 0
    for each in blocks:
        checksum = zlib.crc32(each, checksum)
        size += len(each)
        yield deflate.compress(each) + deflate.flush(zlib.Z_SYNC_FLUSH)
    yield deflate.flush() + pack("<II", checksum, size % 2**32)
