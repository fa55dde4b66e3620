"""Waits for an installation, because processes may start in any order and before `migrate`."""

import logging
from collections.abc import Callable
from threading import Event

from eventsourcing.persistence import PersistenceError
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from app.bootstrap.container import Container
from app.bootstrap.schema import NewerSchema
from app.processes.migrate import lost_events, missing_tables
from app.processes.stopping import ALIVE, notify
from app.settings import WrongSetting
from app.watch.trouble import trouble_of
from domain.cause import Cause
from domain.errors import ServiceUnavailable
from domain.money import format_amount
from projections.engine.positions import models_to_rebuild
from projections.engine.shape import amount_of

POLL_S = 1.0  # Between two looks at a database that is not ready.
SAY_EVERY = 15  # One line for this many looks.

logger = logging.getLogger(__name__)


def wait_until_ready(container: Container, stop: Event, *, sets_price: bool = False) -> bool:
    """Wait for the database, its tables and a right clock; False when told to end before that.

    Who `sets_price`, the last follower that an upgrade replaces (older ones stop there), makes it
    that of the log. Raises WrongSetting or WrongCurrency if the log has another one.
    """
    check = container.gate.check
    is_ready = _wait(lambda: what_is_missing(container) or check(), stop)
    if is_ready:
        container.currency.check()
        container.shared_settings.agree(container.clock())
        micros = container.settings.price_per_lookup_micros if sets_price else None
        if micros is not None and not container.gate.is_held():  # Its log stays as it is.
            container.prices.set(micros, Cause(container.clock(), "start"), only_first=True)
        if (wrong := wrong_price(container)) is not None:
            raise WrongSetting(wrong)
    return is_ready


def wrong_price(container: Container) -> str | None:
    """Say that PRICE_PER_LOOKUP is set to another price than the log has; None if it is not."""
    set_micros, known = container.settings.price_per_lookup_micros, container.prices.refresh()
    if set_micros is None or known is None or known.amount_micros == set_micros:
        return None
    price, now = format_amount(set_micros), amount_of(known.amount_micros)
    return (
        f"PRICE_PER_LOOKUP is {price}, but the price of a lookup is {now} in the log: unset it, or "
        f"run `prices lookup {price}`"
    )


def wait_until_reached(container: Container, stop: Event) -> bool:
    """Wait for the database and a right clock, as `migrate` does; False when told to end before."""
    check = container.gate.check
    return _wait(lambda: _what_fails(container, lambda: _reach(container)) or check(), stop)


def what_is_missing(container: Container) -> str | None:
    """Say why this process cannot work yet; None when it can."""
    return _what_fails(container, lambda: _what_is_old(container))


def _wait(missing: Callable[[], str | None], stop: Event) -> bool:
    attempts = 0
    while not stop.is_set():
        reason = missing()
        if reason is None:
            return True
        if attempts % SAY_EVERY == 0:
            logger.warning("waiting: %s", reason)
        attempts += 1
        notify(ALIVE)
        stop.wait(POLL_S)
    return False


def _what_fails(container: Container, check: Callable[[], str | None]) -> str | None:
    driver = container.persistence.error
    try:
        return check()
    except NewerSchema as error:
        return f"a later release has been here: {error}"
    except (ServiceUnavailable, SQLAlchemyError, PersistenceError, driver) as error:
        return trouble_of(error, container.persistence.location)


def _reach(container: Container) -> str | None:
    """Say why this database cannot be used; look for a pooler before any session is used."""
    fault = container.persistence.fault()
    # Whether the files are missing is found out next.
    if fault is None and container.persistence.has_all_files():
        container.views.all(select(1))
    return fault


def _what_is_old(container: Container) -> str | None:
    if fault := _reach(container):  # Tables that cannot be read must not be reported as old.
        return fault
    if missing := missing_tables(container):
        return missing
    if names := [it.name for it in models_to_rebuild(container.source, container.models)]:
        old = f"read models of another release; run: python -m app migrate ({names[0]}, …)"
        lost = lost_events(container)
        return f"{lost}, and then run: python -m app migrate" if lost else old
    return container.log.fault()
