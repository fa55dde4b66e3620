"""The login at an API whose calls carry a token."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from threading import Lock
from typing import Any

from app.adapters.remote.exchange import Reply
from domain.provider_errors import NotAnswered, Unavailable

# The pause after a refused login, because accounts can get locked.
LOGIN_PAUSE_S = 60.0


class LoginRefused(Unavailable):
    """Raised when an API has answered that it does not accept our credentials."""


def bearer(token: str) -> dict[str, str]:
    """Return the header of a bearer token (RFC 6750)."""
    return {"Authorization": f"Bearer {token}"}


@dataclass(eq=False)
class Login:
    """A token that all threads of a process share; one thread at a time logs in.

    `fetch` logs in within the given seconds and returns the token, or raises LoginRefused; a call
    carries it in `headers`. Every method may raise Unavailable.
    """

    name: str
    fetch: Callable[[float], str]
    headers: Callable[[str], Mapping[str, str]]
    is_refused: Callable[[Reply], bool]
    _token: str = field(default="", init=False)
    _lock: Lock = field(default_factory=Lock, init=False)
    _refusal: tuple[float, str] = field(default=(-inf, ""), init=False)  # When, and why.

    def call(self, send: Callable[..., Reply], left_s: Callable[[], float], **parts: Any) -> Reply:
        """Send a call with a token and the rest of its time; once more if the token is refused.

        A call with a refused token has done nothing, so a change is repeated too. The second reply
        may be a refusal again. `send` and its `parts` are those of a `RemoteApi`.
        """
        token = self._token or self._renew("", left_s)
        reply = send(**parts, headers=self.headers(token), timeout_s=left_s())
        if self.is_refused(reply):
            token = self._renew(token, left_s)
            reply = send(**parts, headers=self.headers(token), timeout_s=left_s())
        return reply

    def pause(self, refusal: str) -> None:
        """Raise Unavailable with this text for `LOGIN_PAUSE_S` instead of logging in."""
        self._refusal = time.monotonic(), refusal

    def _renew(self, old: str, left_s: Callable[[], float]) -> str:
        """Return a token other than the `old` one; another thread may have fetched it."""
        if not self._lock.acquire(timeout=left_s()):
            raise Unavailable(f"the login at {self.name} takes too long")
        try:
            if self._token == old:
                refused_s, refusal = self._refusal
                if time.monotonic() - refused_s < LOGIN_PAUSE_S:
                    raise Unavailable(refusal)
                self._token = self.fetch(left_s())
        except LoginRefused as error:
            self.pause(str(error))
            raise
        except NotAnswered as error:  # No odd record of one eSIM: without a token nobody is served.
            message = str(error)
        else:
            return self._token
        finally:
            self._lock.release()
        raise Unavailable(message)
