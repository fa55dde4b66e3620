"""The one place that constructs: settings in, the parts of one installation out, each lazily.

Nothing is opened before it is used, so a process holds only what it needs, and after its fork.
Each file adds a layer to the one before: storage, reading, commands, work, access.
"""

from functools import cached_property

from app.container.access import Access


class Container(Access):
    """The parts of one installation in one process."""

    def complete(self) -> None:
        """Construct every part that is still missing, before threads could race to do so."""
        for name in dir(type(self)):
            if isinstance(getattr(type(self), name), cached_property):
                getattr(self, name)

    def close(self) -> None:
        """Commit what waits and let go of the databases."""
        held = self.__dict__
        if "circuit" in held:
            self.circuit.close()
        if "broker" in held:
            self.broker.close()
        if "committer" in held:
            self.committer.close()
        if "lookup_cache" in held:
            self.lookup_cache.close()
        if "waker" in held:
            self.waker.close()
        if "log" in held:
            self.log.close()
        for database in held.get("databases", ()):
            database.close()
