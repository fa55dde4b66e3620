"""The one place that constructs: settings in, the parts of one installation out, each lazily.

Nothing is opened before it is used, so a process holds only what it needs, and after its fork.
Each file adds a layer to the one before: storage, reading, commands, work, access.
"""

from app.container.access import Access


class Container(Access):
    """The parts of one installation in one process."""

    def close(self) -> None:
        """Commit what waits and let go of the databases."""
        held = self.__dict__
        if "circuit" in held:
            self.circuit.close()
        if "committer" in held:
            self.committer.close()
        if "log" in held:
            self.log.close()
        for database in (self.views, self.stores, self.vault.database):
            database.engine.dispose()
