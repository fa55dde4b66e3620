"""A process that dies in the midst of a projector's transaction: rows are in, the position is not.

Called with the DATABASE_URL of an installation, by the tests of the projector.
"""

import os
import sys
from collections.abc import Sequence

from sqlalchemy import Connection

from app.settings import Settings
from domain.application import Recorded
from projections.jobs import Jobs
from tests.installation import Process
from tests.projections.looking import projector_of


class Deadly(Jobs):
    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        super().project(connection, batch)
        sys.stdout.write("rows are written\n")
        sys.stdout.flush()
        os._exit(9)


if __name__ == "__main__":
    process = Process(Settings.from_env({"DATABASE_URL": sys.argv[1]}))
    projector_of(process, *process.models[:-1], Deadly()).step()
