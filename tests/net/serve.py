"""`python -m app …` by a clock that the tests move: the only place that starts the service.

The file that NET_CLOCK names says how many seconds its clock is ahead; SIGUSR1 has it read anew.
"""

import os
import signal
import sys
import time
from pathlib import Path

import time_machine


def follow() -> None:
    """Live by the clock of the tests from now on."""
    file = Path(os.environ["NET_CLOCK"])
    clock = time_machine.travel(time.time()).start()

    def read(*_: object) -> None:
        clock.move_to(time_machine.escape_hatch.time.time() + float(file.read_text()))

    read()
    signal.signal(signal.SIGUSR1, read)


if __name__ == "__main__":
    follow()
    from app.cli.root import main  # By the clock that is set now.

    sys.exit(main())
