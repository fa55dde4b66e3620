"""Where operations are found besides their own paths, and paths that name nothing.

Clients of another installation move by changing a host: PATH_PREFIX stands before all paths, and
TOKEN_PATHS are further names of the token operation.
"""

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit
from wsgiref.types import StartResponse, WSGIApplication

from app.http.edge.oauth_errors import TOKEN_PATH
from app.http.edge.request import current_request
from app.settings import Settings

NOWHERE = "//"  # No route is like it.
ENCODED = re.compile("%2f|%5c", re.IGNORECASE)


class Paths:
    """Brings the paths of a WSGI application back to its own.

    An encoded slash or backslash would be decoded into another path than the client has written,
    that of another operation: such a path is nowhere.
    """

    def __init__(self, app: WSGIApplication, settings: Settings) -> None:
        self._app = app
        self._prefix = settings.path_prefix
        self._token_paths = set(settings.further_token_paths)

    def __call__(self, environ: dict[str, Any], start: StartResponse) -> Iterable[bytes]:
        """Answer a request."""
        path = environ["PATH_INFO"]
        if ENCODED.search(environ.get("REQUEST_URI", "").partition("?")[0]):
            environ["PATH_INFO"] = NOWHERE
        elif path in self._token_paths:
            environ["PATH_INFO"] = TOKEN_PATH
        elif self._prefix and path.startswith(f"{self._prefix}/"):
            below = path.removeprefix(self._prefix)
            environ["SCRIPT_NAME"] = self._prefix
            environ["PATH_INFO"] = TOKEN_PATH if below in self._token_paths else below
        return self._app(environ, start)


def token_paths(settings: Settings) -> set[str]:
    """Return every path of the token operation."""
    known = {TOKEN_PATH, *settings.further_token_paths}
    return known | {settings.path_prefix + path for path in known}


def below(url: str, root: str) -> str:
    """Return a URL of ours for a client that reached us below a path; one may hold it already."""
    return url if not root or urlsplit(url).path.endswith(root) else url + root


def reached(url: str) -> str:
    """Return a URL of ours as the client of this request reaches it."""
    return below(url, current_request().script_root)
