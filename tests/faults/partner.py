"""A partner's HTTP client: it sends a request again, under its key, until it is answered."""

import http.client
import json
import time
from dataclasses import dataclass
from threading import Event
from typing import Any

from tests.faults.ledger import Ledger

REPLY_S_MAX = 40.0
PAUSE_S = 0.2  # Before a request is sent again.
ANSWERED_S_MAX = 600.0  # Longer than `web` may die again and again before it has answered.
# The request has had its outcome; the first two are refunded.
FINAL = {"PROVISIONING_ERROR", "PROVISIONING_FAILED", "JOB_FINISHED"}


@dataclass(frozen=True)
class Reply:
    """What a client saw."""

    status: int
    body: Any
    replayed: bool


class Partner:
    """Talks to one port with one token; threads may share it."""

    def __init__(self, port: int, token: str, ledger: Ledger) -> None:
        self._port = port
        self._token = token
        self._ledger = ledger

    def ask(self, method: str, path: str, body: Any = None, key: str | None = None) -> Reply:
        """Return the answer; outages, lost replies and running twins are borne with patience."""
        pause, until_s = Event(), time.monotonic() + ANSWERED_S_MAX
        while time.monotonic() < until_s:
            reply = self.once(method, path, body, key)
            if reply is not None and not self._is_outage(reply):
                self._look_at(reply, f"{method} {path.partition('?')[0]}")
                return reply
            pause.wait(PAUSE_S)
        message = f"{method} {path.partition('?')[0]} was not answered"
        raise AssertionError(message)

    def once(
        self, method: str, path: str, body: Any = None, key: str | None = None
    ) -> Reply | None:
        """Send once; None when no reply came."""
        headers = {"Authorization": f"Bearer {self._token}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if key is not None:
            headers["Idempotency-Key"] = key
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=REPLY_S_MAX)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            reply = connection.getresponse()
            replayed = reply.getheader("Idempotency-Replayed") == "true"
            return Reply(reply.status, json.loads(reply.read()), replayed)
        except (OSError, http.client.HTTPException, json.JSONDecodeError):
            self._ledger.refused("no reply")
            return None
        finally:
            connection.close()

    def _is_outage(self, reply: Reply) -> bool:
        if reply.status not in {409, 429, 500, 503} or code_of(reply) in FINAL:
            return False
        self._ledger.refused(f"{reply.status} {code_of(reply)}")
        if reply.status == 500:
            self._ledger.surprise(f"500 {code_of(reply)} {reply.body.get('meta')}")
        return True

    def _look_at(self, reply: Reply, asked: str) -> None:
        if reply.status >= 400 and code_of(reply) not in FINAL:
            self._ledger.surprise(f"{asked}: {reply.status} {code_of(reply)}")
        elif reply.status >= 400:
            self._ledger.refused(f"{reply.status} {code_of(reply)}")


def code_of(reply: Reply) -> str:
    return str((reply.body.get("error") or {}).get("code", ""))
