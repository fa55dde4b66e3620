"""Sinks, which bring checkpoints to others: a directory or mount, or an HTTP address."""

import http.client
import io
import os
import socket
import ssl
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from workers.checkpoints import NotAccepted, Sink

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

ANSWER_S = 10.0  # For the connection, for what is sent, and for the whole answer.


def sink_at(place: str) -> Sink | None:
    """Return the sink that CHECKPOINT_SINK names; None where it is empty."""
    if not place:
        return None
    return HttpSink(place) if "://" in place else DirectorySink(Path(place))


class DirectorySink:
    """A file for each checkpoint. The directory is not created: it may be a missing mount."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def put(self, name: str, note: str) -> None:
        """Write a file, complete or not at all."""
        draft, path = self._directory / f".{name}.draft", self._directory / name
        try:
            with draft.open("w", encoding="utf-8") as file:
                file.write(note)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        except OSError as error:
            message = f"CHECKPOINT_SINK: {self._directory}: {error.strerror}"
            raise NotAccepted(message) from error


class HttpSink:
    """An address below which each checkpoint is PUT; any answer of 2xx accepts it."""

    def __init__(self, url: str) -> None:
        self._url = urlsplit(url)

    def put(self, name: str, note: str) -> None:
        """Send a checkpoint; no redirect is followed, because it may lead to another server."""
        connection = self._connection()
        connection.response_class = _Answer
        place = self._url.netloc
        headers = {"Content-Type": "text/plain; charset=utf-8"}
        try:
            connection.request("PUT", f"{self._url.path}/{name}", note.encode(), headers)
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            message = f"CHECKPOINT_SINK: {place} cannot be reached: {type(error).__name__}"
            raise NotAccepted(message) from error
        finally:
            connection.close()
        if status // 100 != 2:  # noqa: PLR2004  # 2xx is success.
            message = f"CHECKPOINT_SINK: {place} answers {status}"
            raise NotAccepted(message)

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._url.hostname or "", self._url.port
        if self._url.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=ANSWER_S)
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(host, port, timeout=ANSWER_S, context=context)


class _Answer(http.client.HTTPResponse):
    """An answer with a time limit for the whole of it, however small its parts are."""

    def __init__(self, sock: socket.socket, *options: Any, **more: Any) -> None:
        super().__init__(sock, *options, **more)
        self.fp.close()
        self.fp = io.BufferedReader(_Parts(sock, time.monotonic() + ANSWER_S))


class _Parts(io.RawIOBase):
    def __init__(self, sock: socket.socket, until_s: float) -> None:
        self._sock = sock
        self._until_s = until_s

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        left_s = self._until_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        self._sock.settimeout(left_s)
        return self._sock.recv_into(buffer)
