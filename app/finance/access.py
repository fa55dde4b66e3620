"""Access to the pages: the one-time address gives the cookie that every other page needs.

The pages have no login of their own. They are served on the loopback interface alone, and only
under its names, so that a website whose name resolves to this machine (DNS rebinding) cannot read
them.
"""

import re
from hmac import compare_digest
from secrets import token_urlsafe
from threading import Lock

SECRET_BYTES = 32
# The part of `Host` before the port. The port is not looked at, because ssh may forward another.
LOOPBACK = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)


class Access:
    """The one-time token and the cookie of one run of the server."""

    def __init__(self, port: int) -> None:
        # Browsers send the cookies of a host to each of its ports, so the name contains ours.
        self.cookie_name = f"finance-{port}"
        self.cookie = token_urlsafe(SECRET_BYTES)
        self.token = token_urlsafe(SECRET_BYTES)
        self._spent = False
        self._lock = Lock()

    def spend(self, token: str) -> bool:
        """Tell whether this is the token and it is used for the first time."""
        if not compare_digest(token.encode(), self.token.encode()):
            return False
        with self._lock:
            first, self._spent = not self._spent, True
        return first

    def lets_in(self, cookie: str | None) -> bool:
        return cookie is not None and compare_digest(cookie.encode(), self.cookie.encode())


def is_loopback(host: str | None) -> bool:
    """Tell whether a `Host` header names the loopback interface."""
    return host is not None and LOOPBACK.fullmatch(host) is not None
