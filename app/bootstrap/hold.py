"""Whether this installation is held: a copy that must not act on the world.

A copy that `restore` made would otherwise tell, call and charge whatever the living one does. The
mark is a note beside the log, so copies of a held copy are held, and a failover holds nobody.
"""

import logging

from domain.accounts.operator_acts import Act, OperatorAct
from domain.cause import Cause
from domain.errors import InstallationHeld
from domain.log.log import Log
from projections.stores.notes import Notes

HELD, RELEASED = "held", "released"
MEANING = (
    "this installation is held: it tells no webhook, calls no network, brings no checkpoint, "
    "closes no month and charges nothing until: python -m app installation release"
)

logger = logging.getLogger(__name__)


class Hold:
    """The mark as of the last look; the first question looks by itself."""

    def __init__(self, notes: Notes, log: Log) -> None:
        self._notes = notes
        self._log = log
        self.known: bool | None = None  # None: nobody has looked yet.

    @property
    def is_on(self) -> bool:
        """Tell whether the installation is held; raises while nobody could find out."""
        return self.look() if self.known is None else self.known

    def look(self) -> bool:
        """Read the mark; a change is logged, and so is the mark at the start of a process."""
        known, self.known = self.known, self._notes.value("hold") == HELD
        if self.known and not known:
            logger.warning("%s", MEANING)
        elif known and not self.known:
            logger.warning("this installation is released: it acts again")
        return self.known

    def refuse(self) -> None:
        """Raise InstallationHeld in a held installation."""
        if self.is_on:
            raise InstallationHeld

    def switch(self, cause: Cause, *, held: bool) -> bool:
        """Hold the installation or release it; False if it is so already.

        Before it acts again the log knows who has released it.
        """
        if self.look() == held:
            return False
        act: Act = "installation.held" if held else "installation.released"
        if held:
            self._notes.replace("hold", HELD, cause.at)
        self._log.append(OperatorAct.note(act, "installation", cause))
        if not held:
            self._notes.replace("hold", RELEASED, cause.at)
        self.look()
        return True
