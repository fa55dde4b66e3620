"""Read models, their positions and the projector."""

from functools import cached_property

from app.container.storage import Storage
from app.freshness import Freshness
from app.persistence import ListeningWaker
from projections.engine.positions import Positions
from projections.engine.projector import Projector
from projections.engine.read_model import ReadModel
from projections.models.api_clients import ApiClients
from projections.models.jobs import Jobs
from projections.models.link_spans import LinkSpans
from projections.models.links import Links
from projections.models.monthly_fees import FeeBook
from projections.models.open_slices import OpenSlices
from projections.models.organizations import Organizations
from projections.models.plans import Plans
from projections.models.timelines import Timelines
from projections.models.transactions import Transactions
from projections.models.unfinished import Unfinished
from projections.models.wallets import Wallets


class Reading(Storage):
    """What the log looks like when it is asked."""

    @cached_property
    def positions(self) -> Positions:
        """How far each follower has come."""
        return Positions()

    @cached_property
    def organizations(self) -> Organizations:
        """Organizations as read."""
        return Organizations()

    @cached_property
    def clients(self) -> ApiClients:
        """API clients as read."""
        return ApiClients()

    @cached_property
    def wallets(self) -> Wallets:
        """Balances as read."""
        return Wallets()

    @cached_property
    def transactions(self) -> Transactions:
        """The transaction stream as read."""
        return Transactions()

    @cached_property
    def jobs(self) -> Jobs:
        """Bulk jobs as read."""
        return Jobs()

    @cached_property
    def open_slices(self) -> OpenSlices:
        """Slices of bulk jobs whose work has not ended."""
        return OpenSlices()

    @cached_property
    def plans(self) -> Plans:
        """The catalogue as read."""
        return Plans()

    @cached_property
    def links(self) -> Links:
        """Links as listed."""
        return Links()

    @cached_property
    def link_spans(self) -> LinkSpans:
        """When links were active."""
        return LinkSpans()

    @cached_property
    def timelines(self) -> Timelines:
        """What has happened to links."""
        return Timelines()

    @cached_property
    def unfinished(self) -> Unfinished:
        """Links and plan changes whose work has not ended."""
        return Unfinished()

    @cached_property
    def fee_book(self) -> FeeBook:
        """Monthly fees as read."""
        return FeeBook()

    @property
    def models(self) -> list[ReadModel]:
        """Every read model."""
        return [
            self.organizations,
            self.clients,
            self.wallets,
            self.transactions,
            self.jobs,
            self.open_slices,
            self.plans,
            self.links,
            self.link_spans,
            self.timelines,
            self.unfinished,
            self.fee_book,
        ]

    @cached_property
    def waker(self) -> ListeningWaker:
        """What tells followers that the log has grown."""
        return self.persistence.waker(self.log.appended)

    @cached_property
    def freshness(self) -> Freshness:
        """How old the read models are."""
        return Freshness(self.log, self.views, self.positions, self.clock)

    @cached_property
    def projector(self) -> Projector:
        """What keeps the read models up."""
        return Projector(self.log, self.views, self.positions, self.models, self.clock)
