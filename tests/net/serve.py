"""`python -m app …` by a clock that the tests move: the only place that starts the service.

The file that NET_CLOCK names holds by how many seconds its clock is ahead; SIGUSR1 has it read anew.
"""

import os
import signal
import sys
import time
from pathlib import Path

import time_machine


def run() -> int:
    """Run one command of the service; the arguments are those of `python -m app`."""
    file = Path(os.environ.pop("NET_CLOCK"))
    clock = time_machine.travel(time.time()).start()

    def follow(*_: object) -> None:
        clock.move_to(time_machine.escape_hatch.time.time() + float(file.read_text()))

    follow()
    signal.signal(signal.SIGUSR1, follow)
    from app.cli.root import main  # noqa: PLC0415  # By the clock that is set now.

    return main()


if __name__ == "__main__":
    sys.exit(run())
