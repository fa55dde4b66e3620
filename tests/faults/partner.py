"""A partner's HTTP client: it sends a request again, under its key, until it is answered."""

import time
from threading import Event
from typing import Any

from tests.faults.ledger import Ledger
from tests.house import partner as scenarios
from tests.house.partner import Reply

PAUSE_S = 0.2  # Before a request is sent again.
ANSWERED_S_MAX = 600.0  # Longer than `web` may die again and again before it has answered.
# The request has had its outcome; the first two are refunded.
FINAL = {"PROVISIONING_ERROR", "PROVISIONING_FAILED", "JOB_FINISHED"}


class Partner(scenarios.Partner):
    """Talks to one port with one token; threads may share it."""

    reply_s = 40.0

    def __init__(self, port: int, token: str, ledger: Ledger) -> None:
        super().__init__(f"http://127.0.0.1:{port}", "", "")
        self._token, self._ledger = token, ledger

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
        reply = super().ask(method, path, body, {} if key is None else {"Idempotency-Key": key})
        if reply.status:
            return reply
        self._ledger.refused(reply.code)
        return None

    def _is_outage(self, reply: Reply) -> bool:
        if reply.status not in {409, 429, 500, 503} or reply.code in FINAL:
            return False
        self._ledger.refused(f"{reply.status} {reply.code}")
        if reply.status == 500:
            self._ledger.surprise(f"500 {reply.code} {reply.json.get('meta')}")
        return True

    def _look_at(self, reply: Reply, asked: str) -> None:
        if reply.status >= 400 and reply.code not in FINAL:
            self._ledger.surprise(f"{asked}: {reply.status} {reply.code}")
        elif reply.status >= 400:
            self._ledger.refused(f"{reply.status} {reply.code}")
