"""A group of operations: flask-smorest documents them, but stands not between request and view."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import flask_smorest
from marshmallow import Schema

from app.http.parser import Location, loader

Decorator = Callable[[Any], Any]


class Blueprint(flask_smorest.Blueprint):
    """The blueprint of flask-smorest; its decorators only document, and schemas are made once."""

    def arguments(
        self,
        schema: type[Schema],
        *,
        location: Location,
        needed: Callable[[], bool] | None = None,
        **options: Any,
    ) -> Decorator:
        """Load a part of the request behind the arguments of a view; see `loader` for `needed`."""
        made = schema()
        load = loader(made, location, needed)
        documented = _documentation(super().arguments(made, location=location, **options))

        def decorate(view: Any) -> Any:
            @wraps(documented(view))
            def loaded(*args: Any, **kwargs: Any) -> Any:
                return view(*args, load(), **kwargs)

            return loaded

        return decorate

    def alt_response(self, *args: Any, **options: Any) -> Decorator:
        """Document a reply."""
        return _documentation(super().alt_response(*args, **options))

    @staticmethod
    def doc(**facts: Any) -> Decorator:
        """Document whatever else there is."""
        return _documentation(flask_smorest.Blueprint.doc(**facts))


def _documentation(decorator: Decorator) -> Decorator:
    """Keep what a decorator documents, without the call that it would put around each request."""

    def decorate(view: Any) -> Any:
        view._apidoc = decorator(view)._apidoc  # noqa: SLF001  # Where flask-smorest keeps it.
        return view

    return decorate
