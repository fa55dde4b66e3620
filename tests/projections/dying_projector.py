"""A process that dies in the midst of a projector's transaction: rows are in, the position is not.

Called with the DATABASE_URL of an installation, by the tests of the projector.
"""

import os
import sys

from sqlalchemy import Connection

from app.settings import Settings
from projections.engine.read_model import Batch
from projections.models.jobs import Jobs
from tests.installation import Process
from tests.projections.looking import projector_of


class Deadly(Jobs):
    def follow(self, connection: Connection, batch: Batch) -> None:
        super().follow(connection, batch)
        sys.stdout.write("rows are written\n")
        sys.stdout.flush()
        os._exit(9)


if __name__ == "__main__":
    process = Process(Settings.from_env({"DATABASE_URL": sys.argv[1]}))
    projector_of(process, *process.models[:-1], Deadly()).step()
