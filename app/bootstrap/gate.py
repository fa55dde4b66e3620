"""Whether this process may act: by its clock, the hold of the installation, and drained providers.

A copy that `restore` made would tell, call and charge whatever the living one does, so it is held.
The mark is a note beside the log: copies of a held copy are held, and a failover holds nobody.
"""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from app.watch.clock_check import ClockCheck
from domain.accounts.operator_acts import Act, OperatorAct
from domain.accounts.providers import Provider, drained
from domain.cause import Cause
from domain.errors import InstallationHeld

if TYPE_CHECKING:
    from app.bootstrap.container import Container

HELD, RELEASED = "held", "released"
MEANING = (
    "this installation is held: it tells no webhook, calls no network, brings no checkpoint, "
    "closes no month and charges nothing until: python -m app installation hold --end"
)

logger = logging.getLogger(__name__)


class Gate(ClockCheck):
    """What one thread of the process looks at each second, and all who act read."""

    def __init__(self, parts: "Container") -> None:
        super().__init__(parts.clock, lambda: parts.views.server_time())  # noqa: PLW0108  # It opens a database.
        self._parts = parts
        self.held: bool | None = None  # None: nobody has looked yet.
        self.drained: Mapping[str, Provider.Drained] = {}

    def is_held(self) -> bool:
        """Tell whether the installation is held; raises while nobody could find out."""
        return self.refresh_hold() if self.held is None else self.held

    def is_shut(self) -> bool:
        """Tell whether to act on nothing; what only reads, or audits, asks `is_off`."""
        return self.is_off() or self.is_held()

    def refuse_held(self) -> None:
        """Raise InstallationHeld in a held installation."""
        if self.is_held():
            raise InstallationHeld

    def refuse(self) -> None:
        """Raise ClockOff or InstallationHeld if this process is to act on nothing."""
        self.now()
        self.refuse_held()

    def is_drained(self, provider: str) -> bool:
        """Tell whether a provider gets no new work, by an operator's word."""
        return provider in self.drained

    def spares(self, provider: str) -> bool:
        """Tell whether a provider is not to be called, as of the last look."""
        return bool(self.wrong) or provider in self.drained or self.is_held()

    def refresh(self, *, drains: bool = True) -> None:
        """Look at all of it; raises while the database does not answer."""
        self.check_if_due()
        self.refresh_hold()
        if drains:
            self.refresh_drains()

    def refresh_hold(self) -> bool:
        """Read the mark; a change is logged, and so is the mark at the start of a process."""
        known, self.held = self.held, self._parts.notes.value("hold") == HELD
        if self.held and not known:
            logger.warning("%s", MEANING)
        elif known and not self.held:
            logger.warning("this installation is released: it acts again")
        return self.held

    def refresh_drains(self) -> Mapping[str, Provider.Drained]:
        """Read which providers are drained, since when and by whom."""
        settings = self._parts.settings
        self.drained = drained(self._parts.log, [*settings.lookup_providers, *settings.networks])
        return self.drained

    def switch(self, cause: Cause, *, held: bool) -> bool:
        """Hold the installation or release it; False if it is so already.

        Before it acts again the log knows who has released it.
        """
        if self.refresh_hold() == held:
            return False
        act: Act = "installation.held" if held else "installation.released"
        if held:
            self._parts.notes.replace("hold", HELD, cause.at)
        self._parts.log.append(OperatorAct.of(act, "installation", cause))
        if not held:
            self._parts.notes.replace("hold", RELEASED, cause.at)
        return self.refresh_hold() == held
