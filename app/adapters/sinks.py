"""Sinks, which bring checkpoints to others: a directory or mount, or an HTTP address."""

import ssl
import time
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlsplit

from app.adapters.remote.exchange import Origin, Request
from app.security.key_file import write_file
from workers.checkpoints import NotAccepted, Sink

ANSWER_S = 10.0  # For the name, the connection, for what is sent, and for the answer.


def sink_at(target: str) -> Sink | None:
    if not target:
        return None
    return HttpSink(target) if "://" in target else DirectorySink(Path(target))


class DirectorySink:
    """A file for each checkpoint. The directory is not created: it may be a missing mount."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def put(self, name: str, note: str) -> None:
        """Write a file, which others read, complete or not at all; two at once may do so."""
        try:
            write_file(self._directory / name, note.encode(), 0o666, f".{name}.draft")
        except OSError as error:
            raise NotAccepted(f"CHECKPOINT_SINK: {self._directory}: {error.strerror}") from error


class HttpSink:
    """An address below which each checkpoint is PUT; any answer of 2xx accepts it."""

    def __init__(self, url: str) -> None:
        self._url = urlsplit(url)

    def put(self, name: str, note: str) -> None:
        """Send a checkpoint; no redirect is followed, because it may lead to another server."""
        # Loaded late, so that a process that sends nothing does not load the HTTP client.
        from urllib3.exceptions import HTTPError  # noqa: PLC0415  # As above.

        from app.adapters.remote.connection import NotConnected, exchange  # noqa: PLC0415  # As above.

        scheme, netloc = self._url.scheme, self._url.netloc
        port = self._url.port or (443 if scheme == "https" else 80)
        origin = Origin(scheme, self._url.hostname or "", port)
        context = ssl.create_default_context() if scheme == "https" else None
        headers = {"Content-Type": "text/plain; charset=utf-8", "User-Agent": "carrier-links"}
        request = Request("PUT", f"{self._url.path}/{name}", note.encode(), headers)
        try:
            status = exchange(origin, request, time.monotonic() + ANSWER_S, context)
        except (OSError, HTTPException, HTTPError) as error:
            why = str(error) if isinstance(error, NotConnected) else type(error).__name__
            raise NotAccepted(f"CHECKPOINT_SINK: {netloc} cannot be reached: {why}") from error
        if status // 100 != 2:  # noqa: PLR2004  # 2xx is success.
            raise NotAccepted(f"CHECKPOINT_SINK: {netloc} answers {status}")
