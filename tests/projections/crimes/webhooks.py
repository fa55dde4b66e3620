"""What breaks the rule that each webhook endpoint is in the list of its organization."""

from uuid import uuid4

from domain.webhooks.endpoint import WebhookEndpoint, WebhookList
from tests.projections.forgery import SEALED
from tests.projections.link_forgery import Crimes, LinkForger


def endpoint(forger: LinkForger) -> WebhookEndpoint:
    facts = {"organization_id": forger.organization_id, "personal": SEALED}
    facts |= {"events": None, "key_id": "k"}
    return WebhookEndpoint.begin(WebhookEndpoint.Registered, forger.cause, uuid4(), **facts)


def listing(forger: LinkForger) -> WebhookList:
    owner, event = forger.organization_id, WebhookList.Opened
    list_id = WebhookList.id_of(owner)
    return WebhookList.begin(event, forger.cause, list_id, organization_id=owner)


def listed(forger: LinkForger, count: int) -> tuple[WebhookEndpoint, int]:
    its = listing(forger)
    for _ in range(count):
        made = endpoint(forger)
        its.record(WebhookList.Added, forger.cause, endpoint_id=made.id)
        position = forger.write(*made.collect_events(), *its.collect_events())
    return made, position


def a_deletion_that_leaves_the_list(forger: LinkForger) -> int:
    made, _ = listed(forger, 1)
    made.record(WebhookEndpoint.Deleted, forger.cause)
    return forger.write(*made.collect_events())


def a_list_that_changes_alone(forger: LinkForger) -> int:
    its = listing(forger)
    its.add(uuid4(), forger.cause)
    return forger.write(*its.collect_events())


CRIMES: Crimes = [
    (lambda f: f.write(*endpoint(f).collect_events()), "webhook_list.added, which never comes"),
    (a_deletion_that_leaves_the_list, "it announces webhook_list.removed, which never comes"),
    (a_list_that_changes_alone, "no event before it says so"),
    (lambda f: listed(f, 11)[1], "has more than 10 webhook endpoints"),
]
