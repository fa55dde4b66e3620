"""Sinks, which bring checkpoints to others: a directory or mount, or an HTTP address."""

import ssl
import time
from functools import partial
from http.client import HTTPException
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from app.adapters.remote.exchange import Origin, Request
from app.security.key_file import write_file
from workers.checkpoints import NotAccepted, Sink

ANSWER_S = 10.0  # For the name, the connection, for what is sent, and for the answer.


def sink_at(target: str) -> Sink | None:
    """Return what keeps checkpoints in a directory, or below an address; None for no target."""
    if not target:
        return None
    return partial(_send, urlsplit(target)) if "://" in target else partial(_write, Path(target))


def _write(directory: Path, name: str, note: str) -> None:
    """Write a file, which others read, complete or not at all; two at once may do so.

    The directory is not created: it may be a missing mount.
    """
    try:
        write_file(directory / name, note.encode(), 0o666, f".{name}.draft")
    except OSError as error:
        raise NotAccepted(f"CHECKPOINT_SINK: {directory}: {error.strerror}") from error


def _send(url: SplitResult, name: str, note: str) -> None:
    """PUT a checkpoint; no redirect is followed, because it may lead to another server."""
    # Loaded late, so that a process that sends nothing does not load the HTTP client.
    from urllib3.exceptions import HTTPError  # noqa: PLC0415  # As above.

    from app.adapters.remote.connection import NotConnected, exchange  # noqa: PLC0415  # As above.

    port = url.port or (443 if url.scheme == "https" else 80)
    origin = Origin(url.scheme, url.hostname or "", port)
    context = ssl.create_default_context() if url.scheme == "https" else None
    headers = {"Content-Type": "text/plain; charset=utf-8", "User-Agent": "carrier-links"}
    request = Request("PUT", f"{url.path}/{name}", note.encode(), headers)
    try:
        status = exchange(origin, request, time.monotonic() + ANSWER_S, context)
    except (OSError, HTTPException, HTTPError) as error:
        why = str(error) if isinstance(error, NotConnected) else type(error).__name__
        raise NotAccepted(f"CHECKPOINT_SINK: {url.netloc} cannot be reached: {why}") from error
    if status // 100 != 2:  # noqa: PLR2004  # 2xx is success.
        raise NotAccepted(f"CHECKPOINT_SINK: {url.netloc} answers {status}")
