"""What breaks the invariants of links that end."""

from dataclasses import dataclass

from domain.accounts.wallet import Wallet
from domain.links.link import EndKind, Link
from domain.links.plan_change import PlanChange
from domain.log.aggregate import Event
from tests.projections.forgery import forged
from tests.projections.link_forgery import SOON, Crime, LinkForger


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
    link.request_end(kind, forger.cause.at + SOON, forger.cause)
    forger.write(*link.collect_events())
    return link, change


def cancellation(forger: LinkForger, link: Link, change: PlanChange) -> End:
    topups = change.give_back(forger.cause)
    first, second = link.end(topups, forger.cause)
    price, addition = link.requested.price, change.requested.additions[0]
    assert price is not None
    assert addition.price is not None
    refunds = [
        forged(forger.refund("activation", link.id, first, price), reason="cancelled"),
        forged(forger.refund("topup", change.id, second, addition.price), reason="cancelled"),
    ]
    (ended,), (returned,) = link.collect_events(), change.collect_events()
    assert isinstance(ended, Link.Ended)
    assert isinstance(returned, PlanChange.Returned)
    return End(ended, returned, refunds)


def a_cancelled_link(forger: LinkForger) -> End:
    return cancellation(forger, *an_open_end(forger))


def right_ends(forger: LinkForger) -> None:
    """Links that are cancelled, ended, kept, and renamed, each by the rules."""
    forger.write(*a_cancelled_link(forger).events)
    for ends in (True, False):
        link, _ = an_open_end(forger, "end")
        link.keep(forger.cause)
        if ends:
            link.request_end("end", forger.cause.at + SOON, forger.cause)
            link.end([], forger.cause)
        link.rename("Van 8", forger.cause)
        forger.write(*link.collect_events())
    link = forger.active("0")
    link.end([], forger.cause)
    forger.write(*link.collect_events())


def a_return_without_an_end(forger: LinkForger) -> int:
    return forger.write(a_cancelled_link(forger).returned)


def a_refund_that_no_end_announces(forger: LinkForger) -> int:
    return forger.write(a_cancelled_link(forger).refunds[0])


def an_end_with_money_back_that_is_no_cancellation(forger: LinkForger) -> int:
    end = cancellation(forger, *an_open_end(forger, "cancel"))
    return forger.write(forged(end.ended, reason="ended"))


def a_second_end(forger: LinkForger) -> int:
    link = forger.active("0")
    link.end([], forger.cause)
    forger.write(*link.collect_events())
    return forger.write(forger.fact(link, Link.Ended, reason="ended", refunds=[]))


def a_plan_change_of_an_ended_link(forger: LinkForger) -> int:
    link = forger.active("0")
    link.end([], forger.cause)
    forger.write(*link.collect_events())
    _, requested = forger.ask_for_change(link, "0")
    opened = forger.fact(link, Link.ChangeOpened, change_id=requested.originator_id)
    return forger.write(requested, opened)


def a_plan_change_beside_an_open_end(forger: LinkForger) -> int:
    link, _ = an_open_end(forger)
    _, requested = forger.ask_for_change(link, "0")
    opened = forger.fact(link, Link.ChangeOpened, change_id=requested.originator_id)
    return forger.write(requested, opened)


def an_end_beside_a_plan_change(forger: LinkForger) -> int:
    link = forger.active()
    forger.changing(link, "0.02")
    facts = {"kind": "end", "until": forger.cause.at}
    return forger.write(forger.fact(link, Link.EndRequested, **facts))


def an_end_beside_another(forger: LinkForger) -> int:
    link, _ = an_open_end(forger)
    facts = {"kind": "end", "until": forger.cause.at}
    return forger.write(forger.fact(link, Link.EndRequested, **facts))


def a_link_that_is_kept_for_nothing(forger: LinkForger) -> int:
    return forger.write(forger.fact(forger.active(), Link.EndKept))


CRIMES: dict[Crime, str] = {
    a_return_without_an_end: "gives back what no end of its link says",
    a_refund_that_no_end_announces: "has no failure that names it",
    an_end_with_money_back_that_is_no_cancellation: "for another reason than was intended",
    a_second_end: "while it is over",
    a_plan_change_of_an_ended_link: "while it is over",
    a_plan_change_beside_an_open_end: "while it is being ended",
    an_end_beside_a_plan_change: "is ended beside a plan change",
    an_end_beside_another: "is ended while it is being ended",
    a_link_that_is_kept_for_nothing: "is kept that nobody would end",
}
