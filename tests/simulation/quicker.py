"""What makes a run cheap: statements are compiled once for all runs, not once per process."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import Dialect, Engine, create_engine
from sqlalchemy.util import LRUCache

from projections.engine.read_model import ReadModel

STATEMENTS_MAX = 5_000

_compiled: "LRUCache[Any, Any]" = LRUCache(STATEMENTS_MAX)


@contextmanager
def quicker() -> Iterator[None]:
    """Share what is compiled, and the tables of rebuilds: within a run their name is the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.adapters.sqlite.database.create_engine", _engine)
        patch.setattr(ReadModel, "of", _of)
        patch.setattr("projections.engine.rebuild.token_hex", lambda _: "")
        patch.setattr("projections.engine.rebuild.time", SimpleNamespace(time=lambda: 0))
        yield


def _of(model: ReadModel, generation: str) -> ReadModel:
    fresh = copy(_made(type(model), generation))
    fresh.vault, fresh.log = model.vault, model.log
    return fresh


@cache
def _made(kind: type[ReadModel], generation: str) -> ReadModel:
    return kind(generation)


@cache
def _dialect() -> Dialect:
    """Return one that has seen a connection, as every engine's has before its first statement."""
    engine = create_engine("sqlite://")
    with engine.connect():
        pass
    engine.dispose()
    return engine.dialect


def _engine(*args: Any, **options: Any) -> Engine:
    engine = create_engine(*args, **options)
    engine.dialect = _dialect()
    engine._compiled_cache = _compiled  # noqa: SLF001  # Its key is the statement and the dialect.
    return engine
