"""Statements that the processes of tests share: each process would compile the same ones anew."""

from copy import copy
from functools import cache, partial
from typing import Any

from sqlalchemy import Engine, create_engine
from sqlalchemy.util import LRUCache

from app.adapters.networks.simulated import network
from app.adapters.networks.simulated.identifiers import Identifiers
from app.adapters.networks.simulated.inventory import Inventory
from app.adapters.postgres import database as postgres
from app.adapters.sqlite import database as sqlite
from app.bootstrap import container
from projections.engine.database import Database
from projections.engine.positions import Positions
from projections.stores.faults import Faults
from projections.stores.readings import SqlReadings

STATEMENTS_MAX = 2_000


class Compiled(LRUCache[Any, Any]):
    """What engines have compiled, whichever of them it was; all of a kind write the same text."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(_of_its_kind(key), default)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(_of_its_kind(key), value)


_compiled = Compiled(STATEMENTS_MAX)


def _of_its_kind(key: Any) -> Any:
    dialect, *statement = key
    return type(dialect), *statement


def _engine(*args: Any, **options: Any) -> Engine:
    engine = create_engine(*args, **options)
    engine._compiled_cache = _compiled  # noqa: SLF001  # SQLAlchemy has no option for it.
    return engine


@cache
def _inventory(seed: str, name: str) -> Inventory:
    return Inventory(Identifiers(seed), name)


def _known_inventory(identifiers: Identifiers, name: str) -> Inventory:
    return _inventory(identifiers._seed, name)  # noqa: SLF001  # By which two of them differ.


_readings: dict[str, SqlReadings] = {}


def _known_readings(database: Database, faults: Faults) -> SqlReadings:
    kind = database.engine.dialect.name
    known = copy(_readings.get(kind) or _readings.setdefault(kind, SqlReadings(database, faults)))
    known._database, known._faults = database, faults  # noqa: SLF001  # All else is statements.
    return known


def share() -> None:
    """Let all processes of this interpreter share their statements from now on."""
    sqlite.create_engine = postgres.create_engine = _engine
    network.Inventory = _known_inventory
    container.SqlReadings = _known_readings
    container.Positions = partial(copy, Positions())
