"""Whether this process rests: the installation is a held copy, or the machine's clock is wrong.

Whatever acts on the world asks here. What a held copy still does, such as reads and audits, asks
only the `ClockCheck`.
"""

from app.bootstrap.hold import Hold
from app.watch.clock_check import ClockCheck


class Rest:
    """One gate for both reasons."""

    def __init__(self, hold: Hold, clock_check: ClockCheck) -> None:
        self._hold = hold
        self._clock_check = clock_check

    @property
    def is_on(self) -> bool:
        """Tell whether to rest; raises while nobody could find out whether the copy is held."""
        return self._clock_check.is_off() or self._hold.is_on

    def refuse(self) -> None:
        """Raise ClockOff or InstallationHeld if this process rests."""
        self._clock_check.refuse()
        self._hold.refuse()
