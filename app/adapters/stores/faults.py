"""What stores raise that others can do without: said once per outage, and counted each time."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy.exc import SQLAlchemyError

from app.watch.trouble import trouble_of

logger = logging.getLogger(__name__)


class Faults:
    """The errors of one store at a place; `count` hears its name for each."""

    def __init__(self, store: str, place: str, count: Callable[[str], None]) -> None:
        self._store = store
        self._place = place
        self._count = count
        self._failing: set[str] = set()

    @contextmanager
    def swallowed(self, use: str) -> Iterator[None]:
        """Go on behind the block when its database fails.

        It is over when each use that failed works: a full disk may still be read.
        """
        try:
            yield
        except SQLAlchemyError as error:
            self._count(self._store)
            first = not self._failing
            self._failing.add(use)
            if first:
                logger.error("%s is done without: %s", self._store, trouble_of(error, self._place))  # noqa: TRY400  # The reason says it all.
        else:
            if use in self._failing:
                self._failing.discard(use)
                if not self._failing:
                    logger.warning("%s works again", self._store)
