"""Read models, their positions and the projector."""

from functools import cached_property

from app.container.storage import Storage
from app.freshness import Freshness
from app.persistence import ListeningWaker
from projections.api_clients import ApiClients
from projections.jobs import Jobs
from projections.link_spans import LinkSpans
from projections.links import Links
from projections.monthly_fees import FeeBook
from projections.open_slices import OpenSlices
from projections.organizations import Organizations
from projections.plans import Plans
from projections.positions import Positions
from projections.projector import Projector
from projections.read_model import ReadModel
from projections.timelines import Timelines
from projections.transactions import Transactions
from projections.unfinished import Unfinished
from projections.wallets import Wallets


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
