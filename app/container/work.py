"""The queues, what fills them and what works on them."""

from functools import cached_property

from app.broker import InProcessBroker
from app.container.commands import Commands
from workers import actors
from workers.bulk_lookup import BulkLookup
from workers.dispatcher import Dispatcher
from workers.publisher import DramatiqPublisher
from workers.sweep import Sweep


class Work(Commands):
    """What happens after the answer."""

    @cached_property
    def broker(self) -> InProcessBroker:
        """The queues, with every actor declared."""
        broker = InProcessBroker()
        actors.register(broker, self.bulk_lookup)
        return broker

    @cached_property
    def publisher(self) -> DramatiqPublisher:
        """What puts messages into queues."""
        return DramatiqPublisher(self.broker)

    @cached_property
    def sweep(self) -> Sweep:
        """What asks again for idle work."""
        return Sweep(self.log, self.views, self.jobs, self.publisher, self.clock)

    @cached_property
    def bulk_lookup(self) -> BulkLookup:
        """The work of bulk jobs."""
        return BulkLookup(self.log, self.committer, self.vault, self.answers, self.clock)

    @cached_property
    def dispatcher(self) -> Dispatcher:
        """What turns events into messages."""
        return Dispatcher(
            self.log, self.views, self.positions, self.publisher, self.sweep.run, self.clock
        )
