"""A group of operations: flask-smorest documents them, but stands not between request and view."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import flask_smorest
import msgspec
from marshmallow import Schema
from msgspec import Struct

from app.http.parser import Location, loader

SCHEMA_REF = "#/components/schemas/{name}"

Decorator = Callable[[Any], Any]


class Blueprint(flask_smorest.Blueprint):
    """The blueprint of flask-smorest; its decorators only document, and schemas are made once.

    `reply_types` are the structs of its replies, which the OpenAPI document describes.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.reply_types: set[type[Struct]] = set()

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

    def replies(
        self,
        status: int,
        reply: Struct | type[Struct],
        description: str = "",
        headers: Mapping[str, Any] | None = None,
    ) -> Decorator:
        """Document a reply by an example, or by its type where there is none.

        Without a description the docstring of its type says what it is.
        """
        kind = reply if isinstance(reply, type) else type(reply)
        self.reply_types.add(kind)
        content: dict[str, Any] = {"schema": {"$ref": SCHEMA_REF.format(name=kind.__name__)}}
        if not isinstance(reply, type):
            content["example"] = msgspec.to_builtins(reply)
        response = {
            "description": description or kind.__doc__,
            **({"headers": headers} if headers else {}),
            "content": {"application/json": content},
        }
        return self.doc(responses={status: response})

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
