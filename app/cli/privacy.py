"""`privacy`: erases personal data."""

from datetime import datetime
from uuid import UUID

import click

from app.bootstrap.container import Container
from app.cli.arguments import Month
from app.cli.installation import installation, require_organization
from app.cli.output import as_json_option, show
from app.cli.rights import authorize
from domain.errors import NotPossible, ServiceUnavailable
from domain.months import month_of
from projections.engine.database import KEPT_BY_A_READER


@click.group(name="privacy")
def command() -> None:
    """Personal data and its end."""


@command.command()
@click.option("--before", required=True, type=Month(), help="The first month that is kept.")
@click.option(
    "--org", "organization_id", metavar="ID", type=click.UUID, help="Of this organization only."
)
@as_json_option
def erase(*, before: datetime, organization_id: UUID | None, as_json: bool) -> None:
    """Make numbers, results and LPA strings of earlier months unreadable for ever.

    Jobs and lookups of those months then answer 404; money stays. This cannot be undone, except
    from a backup of the keys or of the lookup cache.
    """
    with installation() as container:
        authorize(container)
        _check(container, before, organization_id)
        answers = container.lookup_cache.forget(before, organization_id)
        container.readings.forget(before, organization_id)  # They hold phone numbers (MSISDNs).
        container.leases.forget_lapsed()
        wiped = container.stores.wipe()
        keys = container.vault.erase(month_of(before), organization_id)
        if not wiped:
            raise ServiceUnavailable(KEPT_BY_A_READER)
    facts = {
        "before": month_of(before),
        "organization": organization_id,
        "erased_keys": keys,
        "forgotten_answers": answers,
    }
    show(facts, as_json=as_json)


def _check(container: Container, before: datetime, organization_id: UUID | None) -> None:
    if before > container.clock():
        message = f"--before {month_of(before)} is in the future: this month is still being written"
        raise NotPossible(message)
    require_organization(container, organization_id)
