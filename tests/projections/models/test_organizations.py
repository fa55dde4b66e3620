"""Organizations as read: the newest word of each kind counts."""

from uuid import uuid4

from domain.accounts.organization import Organization
from tests.installation import Process, SetClock


def test_all_organizations_come_oldest_first(process: Process, clock: SetClock) -> None:
    made = []
    for _ in range(5):
        organization = Organization.register(uuid4(), process.cause(), name="Acme")
        made.append(organization.id)
        clock.forward(seconds=-1)
        process.log.append(organization)
    assert [each.id for each in process.ask(process.organizations.all)] == made[::-1]
