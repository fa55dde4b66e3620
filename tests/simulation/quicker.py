"""What makes a run cheap: statements are compiled once for all runs, not once per process."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import Dialect, Engine, create_engine
from sqlalchemy.util import LRUCache

from app.bootstrap.container import Container
from projections.engine.read_model import ReadModel

# Parts of a container that are tables and statements only: any number of processes may share them.
SHARED_PARTS = (
    "organizations",
    "clients",
    "wallets",
    "transactions",
    "jobs",
    "plans",
    "links",
    "link_spans",
    "timelines",
    "unfinished",
    "fee_book",
)
STATEMENTS_MAX = 5_000

_compiled: "LRUCache[Any, Any]" = LRUCache(STATEMENTS_MAX)
_parts: dict[str, ReadModel] = {}


@contextmanager
def quicker() -> Iterator[None]:
    """Share what is compiled, and the tables of rebuilds: within a run their name is the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.adapters.sqlite.database.create_engine", _engine)
        patch.setattr(ReadModel, "of", _of)
        patch.setattr("projections.engine.rebuild.token_hex", lambda _: "")
        patch.setattr("projections.engine.rebuild.time", SimpleNamespace(time=lambda: 0))
        yield


def share_parts(container: Container) -> None:
    """Give a container the parts that all of them can share."""
    for name in SHARED_PARTS:
        if name not in _parts:
            _parts[name] = type(getattr(container, name))()
        container.__dict__[name] = _parts[name]


@cache
def _of(model: ReadModel, generation: str) -> ReadModel:
    return type(model)(generation)


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
