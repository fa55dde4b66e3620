"""The simulation's time, which only the simulation moves."""

from datetime import datetime

from tests.installation import SetClock


class SimulatedClock(SetClock):
    """The wall clock of all processes, the time that never jumps, and the network's own clock."""

    def __init__(self) -> None:
        super().__init__()
        self.elapsed_s = 0.0
        self.network = SetClock()

    def forward(self, **by: float) -> datetime:
        """Let time pass, for everybody."""
        before = self.now
        after = super().forward(**by)
        self.elapsed_s += (after - before).total_seconds()
        self.network.forward(**by)
        return after

    def jump(self, seconds: float) -> None:
        """Set the wall clock of the processes, as an operator does: no time passes."""
        super().forward(seconds=seconds)

    def monotonic(self) -> float:
        """Tell the time as `time.monotonic` does, in seconds."""
        return self.elapsed_s
