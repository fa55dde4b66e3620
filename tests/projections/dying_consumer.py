"""A process that is killed in the midst of a transaction: rows are in, nothing is committed.

Called with the DATABASE_URL of an installation and the name of a mode, by the tests of consumers.
"""

import os
import signal
import sys
from typing import Any

from app.settings import Settings
from projections.engine.read_model import Batch
from tests.installation import Process
from tests.projections.engine.consumers import MODES

if __name__ == "__main__":
    url, mode = sys.argv[1:]
    (kind,) = (each for each in MODES if each.name == mode)
    consumer = kind(Process(Settings.from_env({"DATABASE_URL": url})))
    follow = consumer.follow

    def deadly(connection: Any, batch: Batch) -> None:
        follow(connection, batch)
        sys.stdout.write("rows are written\n")
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGKILL)

    consumer.follow = deadly  # type: ignore[method-assign]  # Of this one.
    consumer.step()
