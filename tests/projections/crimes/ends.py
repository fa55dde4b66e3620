"""What breaks the invariants of links that end."""

from dataclasses import dataclass

from domain.accounts.wallet import Wallet
from domain.links.link import EndKind, Link
from domain.links.plan_change import PlanChange
from domain.log.aggregate import Event
from domain.personal import in_clear
from tests.projections.forgery import forged
from tests.projections.link_forgery import SOON, Crimes, LinkForger


@dataclass
class End:
    """All events of one commit that cancels a link with a top-up."""

    ended: Link.Ended
    returned: PlanChange.Returned
    refunds: list[Wallet.Refunded]

    @property
    def events(self) -> list[Event]:
        return [self.ended, self.returned, *self.refunds]


def an_open_end(forger: LinkForger, kind: EndKind = "cancel") -> tuple[Link, PlanChange]:
    """A link with a top-up, which is being ended."""
    link = forger.active()
    change = forger.changing(link, "0.02")
    forger.done(change, link)
    link.record(Link.EndRequested, forger.cause, kind=kind, until=forger.cause.at + SOON)
    forger.write(*link.collect_events())
    return link, change


def cancellation(forger: LinkForger, link: Link, change: PlanChange) -> End:
    topups = change.give_back(forger.cause)
    first, second = link.end(topups, forger.cause)
    taken, topup = link.requested.price, change.requested.additions[0].price
    refunds = [
        forged(forger.refund("activation", link.id, first, taken), reason="cancelled"),
        forged(forger.refund("topup", change.id, second, topup), reason="cancelled"),
    ]
    (ended,), (returned,) = link.collect_events(), change.collect_events()
    return End(ended, returned, refunds)


def a_cancelled_link(forger: LinkForger) -> End:
    return cancellation(forger, *an_open_end(forger))


def right_ends(forger: LinkForger) -> None:
    """Links that are cancelled, ended, kept, and renamed, each by the rules."""
    forger.write(*a_cancelled_link(forger).events)
    for ends in (True, False):
        link, _ = an_open_end(forger, "end")
        link.record(Link.EndKept, forger.cause)
        if ends:
            link.record(Link.EndRequested, forger.cause, kind="end", until=forger.cause.at + SOON)
            link.end([], forger.cause)
        link.rename(in_clear("Van 8"), forger.cause)
        forger.write(*link.collect_events())
    ended(forger)


def ended(forger: LinkForger) -> Link:
    link = forger.active("0")
    link.end([], forger.cause)
    forger.write(*link.collect_events())
    return link


CRIMES: Crimes = [
    (lambda f: f.write(a_cancelled_link(f).returned), "no event before it says so"),
    (lambda f: f.write(a_cancelled_link(f).refunds[0]), "no event before it says so"),
]
