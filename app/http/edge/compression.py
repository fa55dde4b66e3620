"""Sends replies of a kilobyte and more as gzip (RFC 1952) to clients that accept it."""

import zlib
from collections.abc import Iterable, Iterator
from functools import cached_property
from hashlib import blake2b
from secrets import randbelow
from typing import cast

from flask import Request, Response

from app.http.edge.media import PNG, accepted

BYTES_MIN = 1024  # A smaller reply fits into one packet uncompressed.
LEVEL = 1  # For a job of 1000 numbers, 6 saves a quarter more bytes and takes three times as long.
GZIP = zlib.MAX_WBITS + 16  # Has zlib write head and checksum of gzip.
# Of the name of a file in our own head, which hides the exact length of a reply. By it, an
# eavesdropper who can choose a name in the reply could guess a secret code beside it (BREACH).
PADDING_BYTES = 64
HEADER = b"\x1f\x8b\x08\x08\0\0\0\0\0\xff"  # Deflate, a file name follows, no time, any system.


class Cached(bytes):
    """What is the same for everybody: it is compressed once, which takes some more memory."""

    @cached_property
    def packed(self) -> bytes:
        """The same as gzip. It holds no secret, so its length may be known."""
        return zlib.compress(self, wbits=GZIP)

    @cached_property
    def tag(self) -> str:
        """An ETag; a weak one, because it stands for the compressed bytes as well."""
        return blake2b(self, digest_size=16).hexdigest()


def encode(response: Response, request: Request) -> None:
    """Compress a reply of BYTES_MIN or more if the client accepts gzip; `Vary` tells caches."""
    if response.mimetype == PNG:  # Which is compressed already.
        return
    response.vary.add("Accept-Encoding")
    wanted = accepted(request.headers.get("Accept-Encoding", ""))
    others = wanted.get("*", 0.0)
    quality = wanted.get("gzip", wanted.get("x-gzip", others))
    if not quality or quality < wanted.get("identity", others):  # RFC 9110 §12.5.3.
        return
    response.headers["Content-Encoding"] = "gzip"
    blocks = cast("list[bytes]", response.response)
    if not response.is_sequence:
        response.response = gzip(blocks)
    elif isinstance(blocks[0], Cached):
        response.set_data(blocks[0].packed)
    else:  # The server sends it without holding a thread.
        response.set_data(b"".join(gzip(blocks)))


def gzip(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Compress blocks; each can be read before the next one comes."""
    yield HEADER + b"-" * randbelow(PADDING_BYTES) + b"\0"
    deflate = zlib.compressobj(LEVEL, wbits=GZIP)
    deflate.compress(b"")  # Its own head.
    for each in blocks:
        yield deflate.compress(each) + deflate.flush(zlib.Z_SYNC_FLUSH)
    yield deflate.flush()
