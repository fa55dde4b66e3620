"""What apps have alike is made once: their document, and how the path of a rule is built.

To make either takes longer than most tests.
"""

from collections.abc import Callable, Sequence
from typing import Any

from flask import Flask
from werkzeug.routing import Rule

from app.http.edge import openapi
from app.http.edge.compression import Cached
from app.http.edge.operation import Group
from app.settings import Settings

Documents = dict[str, Cached]
Register = Callable[[Flask, Any, Sequence[Group]], Documents]


class Noting:
    """Settings that note what is read of them."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.read: dict[str, object] = {}

    def __getattr__(self, name: str) -> object:
        self.read[name] = getattr(self.settings, name)
        return self.read[name]


def remembered(register: Register) -> Register:
    """Return what registers blueprints likewise, but makes no document that it has made before."""
    made: list[tuple[list[str], dict[str, object], Documents]] = []

    def again(app: Flask, settings: Settings, blueprints: Sequence[Group]) -> Documents:
        names = [each.name for each in blueprints]  # A sandbox has more.
        for known, read, documents in made:
            if known == names and all(
                getattr(settings, name) == value for name, value in read.items()
            ):
                api = openapi.DocumentedApi(app, spec_kwargs=openapi.FACTS)
                for each in blueprints:  # As `openapi.register` does, which makes the document.
                    app.extensions["flask-smorest"]["blp_name_to_api"][each.name] = api
                    app.register_blueprint(each)
                return documents
        noting = Noting(settings)
        made.append((names, noting.read, register(app, noting, blueprints)))
        return made[-1][2]

    return again


def build_paths_once() -> None:
    """Let rules of equal paths share what werkzeug compiles of them, which knows no rule."""
    compiled, make = dict[object, Any](), Rule._compile_builder  # noqa: SLF001  # It has no option for it.

    def known(rule: Rule, append_unknown: bool) -> Any:  # noqa: FBT001  # As werkzeug calls it.
        key = (*rule._trace, *(rule.defaults or {}).items(), append_unknown)  # noqa: SLF001  # All it is made of.
        return compiled.get(key) or compiled.setdefault(key, make(rule, append_unknown))

    Rule._compile_builder = known  # type: ignore[method-assign]  # noqa: SLF001  # As above.
