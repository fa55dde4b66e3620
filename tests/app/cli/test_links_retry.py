"""`links retry`: what a killed process left behind is brought to its end at once."""

from contextlib import closing
from datetime import timedelta
from uuid import UUID, uuid4

from domain.cause import Cause, utc_now
from domain.links.bought_plan import BoughtPlan
from domain.links.link import Link, Stage
from tests.app.cli.shell import Shell


def left_behind(shell: Shell, organization_id: UUID) -> UUID:
    """Ask for a link as a process does that dies right after it."""
    link = Link.request(
        uuid4(),
        Cause(utc_now(), "request-1"),
        organization_id=organization_id,
        name=None,
        plan=BoughtPlan(uuid4(), "eu-1", "Europe 1 GB", 4_000_000, 1_000, 7, ["FR"]),
        sponsor_profiles=[],
        currency="USD",
        deadline=utc_now() + timedelta(minutes=5),
    )
    with closing(shell.container()) as container:
        container.log.append(link)
    return link.id


def test_a_link_that_was_left_behind_is_made_once(shell: Shell) -> None:
    shell = shell.having(NETWORK_BASE_PLAN="base-1")
    organization = shell.new_organization()
    shell.run("wallet", "deposit", organization, "10", "--reference", "r")
    link_id = left_behind(shell, organization)

    assert shell.json("links", "retry") == {"sent": 1, "unfinished": 0}

    with closing(shell.container()) as container:
        assert container.log.get(Link, link_id).stage is Stage.ACTIVE
    assert shell.json("wallet", "show", organization)["balance"] == "6.00"
    assert shell.json("links", "retry") == {"sent": 0, "unfinished": 0}
