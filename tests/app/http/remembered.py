"""The OpenAPI document is made once for equal settings: it takes longer than most tests."""

from collections.abc import Callable, Sequence
from typing import Any

from flask import Flask

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
