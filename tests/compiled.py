"""What the processes of tests share: each would define, compile and compare the same anew."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cache, partial
from threading import Lock
from types import BuiltinFunctionType
from typing import Any

from sqlalchemy import ClauseElement, Engine, MetaData, create_engine
from sqlalchemy.util import LRUCache

from app import settings
from app.adapters.networks.simulated import network
from app.adapters.networks.simulated.identifiers import Identifiers
from app.adapters.networks.simulated.inventory import Inventory
from app.adapters.postgres import database as postgres
from app.adapters.sqlite import database as sqlite
from app.bootstrap.container import Container
from projections.engine.hot_reads import HotStatement
from projections.stores.counters import LEASES, PACES, RATES

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


# What each process has of its own in its stores. All else in them is tables and statements, which
# take longer to define and to compile than most tests run.
_OWN: Mapping[str, Callable[[Container], Mapping[str, Any]]] = {
    "positions": lambda _: {},
    "vault": lambda c: {"database": c.databases.keys, "_cache": {}},
    "notes": lambda c: {"_database": c.databases.keys},
    "webhook_deliveries": lambda c: {"_database": c.views},
    "reading_schedule": lambda c: {"_database": c.stores},
    "lookup_cache": lambda c: {"_database": c.stores, "_faults": c.faults_of("lookup_cache")},
    "readings": lambda c: {"_database": c.stores, "_faults": c.faults_of("network_readings")},
    "counters": lambda c: {
        "_database": c.stores,
        "_clock": c.clock,
        "_faults": {name: c.faults_of(name) for name in (LEASES, RATES, PACES)},
        "_one_at_a_time": Lock(),
    },
}
_SHARED = MetaData, ClauseElement, HotStatement, BuiltinFunctionType
_first: dict[tuple[str, str], Any] = {}


def _like_the_first(name: str, make: Callable[[Container], Any], container: Container) -> Any:
    """Copy the part that was made first on a kind of database, with what is the container's own."""
    key, own = (name, container.settings.database_url.partition(":")[0]), _OWN[name](container)
    if key not in _first:
        made = make(container)
        owned = [each for each in vars(made).keys() - own if not _is_shared(vars(made)[each])]
        assert not owned, f"{name} has more of its own, say so in _OWN: {owned}"
        _first[key] = made
    made = copy(_first[key])
    vars(made).update(own)
    return made


def _is_shared(value: Any) -> bool:
    several = [*value.values()] if isinstance(value, dict) else value
    several = several if isinstance(several, list) else [several]
    return bool(several) and all(isinstance(each, _SHARED) for each in several)


_compare = settings._refuse_misspelt  # noqa: SLF001  # It takes longer than all else of a start.


@cache
def _refuse_misspelt(names: Sequence[str], given: frozenset[str]) -> None:
    _compare([*names], dict.fromkeys(given, ""))


def share() -> None:
    """Let all processes of this interpreter share their statements from now on."""
    settings._refuse_misspelt = lambda names, its: _refuse_misspelt((*names,), frozenset(its))  # noqa: SLF001  # As above.
    sqlite.create_engine = postgres.create_engine = _engine
    network.Inventory = _known_inventory
    for name in _OWN:
        stored = vars(Container)[name]
        stored.func = partial(_like_the_first, name, stored.func)
