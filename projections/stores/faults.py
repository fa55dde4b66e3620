"""Errors of stores that requests do not depend on: logged once per outage, counted each time."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlalchemy.exc import SQLAlchemyError

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class Faults:
    """The errors of one store; `count` is called with the store's name for each."""

    store: str
    describe: Callable[[Exception], str]
    count: Callable[[str], None]
    _failing: set[str] = field(default_factory=set, init=False)

    @contextmanager
    def swallowed(self, use: str) -> Iterator[None]:
        """Swallow an error of the database in the block.

        The outage ends when each kind of use that failed has worked again, because a full disk can
        still be read.
        """
        try:
            yield
        except SQLAlchemyError as error:
            self.count(self.store)
            first = not self._failing
            self._failing.add(use)
            if first:
                logger.error(  # noqa: TRY400  # The message holds the reason.
                    "%s does not work, requests go on without it: %s",
                    self.store,
                    self.describe(error),
                )
        else:
            if use in self._failing:
                self._failing.discard(use)
                if not self._failing:
                    logger.warning("%s works again", self.store)
