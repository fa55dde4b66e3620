"""Other paths under which operations are found, and paths that lead nowhere.

PATH_PREFIX and TOKEN_PATHS let clients of another installation move over by changing only a host:
the first stands before every path, the second are more paths of the token operation.
"""

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit
from wsgiref.types import StartResponse, WSGIApplication

from app.http.edge.oauth_errors import TOKEN_PATH
from app.http.edge.request import current_request
from app.settings import Settings

NOWHERE = "/nowhere"  # No route has this path.
ENCODED = re.compile("%2f|%5c", re.IGNORECASE)


class Paths:
    """Turns the path of a request back into the application's own.

    A path with an encoded slash or backslash leads nowhere: decoded it could be the path of another
    operation than the client meant.
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
    """Return our URL as seen below `root`; it may contain the root already."""
    return url if not root or urlsplit(url).path.endswith(root) else url + root


def reached(url: str) -> str:
    """Return our URL as the client of this request reaches it."""
    return below(url, current_request().script_root)
