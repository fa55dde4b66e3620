"""Waiting for an installation: processes may start in any order, before `migrate` has run."""

import logging
from threading import Event

from sqlalchemy.exc import SQLAlchemyError

from app.container import Container
from app.migrate import is_migrated
from domain.errors import ServiceUnavailable
from projections.health import strangers

LOOK_S = 1.0  # Between two looks at a database that is not ready.
SAY_EVERY = 15  # Looks without a line in between.

logger = logging.getLogger(__name__)


def wait_until_ready(container: Container, stop: Event) -> bool:
    """Wait for the database and its tables; False when told to end before that."""
    looks = 0
    while not stop.is_set():
        missing = what_is_missing(container)
        if missing is None:
            return True
        if looks % SAY_EVERY == 0:
            logger.warning("waiting: %s", missing)
        looks += 1
        stop.wait(LOOK_S)
    return False


def what_is_missing(container: Container) -> str | None:
    """Say why this process cannot work yet; None when it can."""
    try:
        if not container.persistence.exists() or not is_migrated(container):
            return "the tables are not up to date; run: python -m app migrate"
        parts = (container.log, container.views, container.positions, container.models)
        if names := [model.name for model in strangers(*parts)]:
            return f"read models of another release; run: python -m app migrate ({names[0]}, …)"
    except (ServiceUnavailable, SQLAlchemyError, container.persistence.error) as error:
        return f"the database cannot be reached ({type(error).__name__})"
    return None
