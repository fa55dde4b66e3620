"""`webhooks`: the endpoints of partners, what they were told, and telling it again."""

from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import click

from app.bootstrap.container import Container
from app.cli.installation import catch_up, cause_of, installation, require_organization
from app.cli.output import as_json_option, show, show_list
from domain.errors import NotFound
from domain.webhooks.commands import Changes
from domain.webhooks.endpoint import WebhookEndpoint
from domain.webhooks.ports import Delivery, Sums
from projections.models.webhook_endpoints import WebhookEndpointRow

READ_AT_ONCE = 1_000


@click.group(name="webhooks")
def command() -> None:
    """Webhooks: where partners are told what happens, and what they were told."""


@command.command(name="list")
@click.option("--org", "organization_id", metavar="ID", type=click.UUID, help="Of this one only.")
@click.option("--failing", is_flag=True, help="Only what fails now, or was disabled for it.")
@click.option("--endpoint", "endpoint_id", metavar="ID", type=click.UUID, help="Its deliveries.")
@as_json_option
def list_all(
    *, organization_id: UUID | None, failing: bool, endpoint_id: UUID | None, as_json: bool
) -> None:
    """List endpoints, oldest first; with --endpoint its deliveries of 30 days, newest first."""
    with installation() as container:
        require_organization(container, organization_id)
        catch_up(container)
        if endpoint_id is not None:
            found = _deliveries(container, _endpoint(container, endpoint_id))
            rows = [_delivery(each) for each in found if not failing or _fails(each)]
        else:
            rows = _endpoints(container, organization_id, failing=failing)
    show_list(rows, as_json=as_json)


@command.command()
@click.argument("endpoint_id", metavar="ENDPOINT", type=click.UUID)
@click.argument("delivery_id", metavar="[DELIVERY]", type=click.UUID, required=False)
@as_json_option
def redeliver(*, endpoint_id: UUID, delivery_id: UUID | None, as_json: bool) -> None:
    """Tell an endpoint one delivery again, or all that have failed.

    With the same id and body, so that its receiver knows what it has worked on.
    """
    with installation() as container:
        endpoint, cause = _endpoint(container, endpoint_id), cause_of(container)
        owner, store = endpoint.organization_id, container.webhook_deliveries
        wanted = [delivery_id] if delivery_id else store.failed(owner, endpoint_id)
        if delivery_id is not None and store.get(owner, endpoint_id, delivery_id) is None:
            message = f"there is no delivery {delivery_id} of this endpoint"
            raise NotFound(message)
        for each in wanted:
            container.webhooks.redeliver(owner, endpoint.id, each, None, cause)
    show({"endpoint": endpoint_id, "asked": len(wanted)}, as_json=as_json)


@command.command()
@click.argument("endpoint_id", metavar="ENDPOINT", type=click.UUID)
@as_json_option
def disable(*, endpoint_id: UUID, as_json: bool) -> None:
    """Tell an endpoint nothing from now on; its partner can enable it again."""
    with installation() as container:
        cause, endpoint = cause_of(container), _endpoint(container, endpoint_id)
        changes = Changes(enabled=False)
        container.webhooks.change(endpoint.organization_id, endpoint.id, changes, cause)
        disabled = _endpoint(container, endpoint_id).disabled
    show(
        {"endpoint": endpoint_id, "disabled_reason": disabled and disabled.reason}, as_json=as_json
    )


def _endpoint(container: Container, endpoint_id: UUID) -> WebhookEndpoint:
    return container.log.get(WebhookEndpoint, endpoint_id, f"endpoint {endpoint_id}")


def _endpoints(
    container: Container, organization_id: UUID | None, *, failing: bool
) -> list[dict[str, Any]]:
    with container.views.reading() as connection:
        rows = container.webhook_endpoints.all(connection, organization_id)
    known = container.webhook_deliveries.sums()
    told = []
    for row in rows:
        sums = known.get(row.id)
        fails = row.disabled in {"failing", "gone"} or bool(sums and sums.failures)
        if fails or not failing:
            told.append(_facts(container, row, sums))
    return told


def _facts(container: Container, row: WebhookEndpointRow, sums: Sums | None) -> dict[str, Any]:
    """Only the host of the URL is shown, because the rest may hold a secret of the partner."""
    address = container.webhooks.address(_endpoint(container, row.id))
    sums = sums or Sums(0, 0, 0, None)
    return {
        "id": row.id,
        "organization": row.organization_id,
        "host": None if address is None else urlsplit(address.url).hostname,
        "events": row.events,
        "enabled": row.disabled is None,
        "disabled_reason": row.disabled,
        "pending": sums.pending,
        "failed": sums.failed,
        "failures_in_a_row": sums.failures,
        "failing_since": sums.failing_since,
        "created_at": row.created_at,
    }


def _deliveries(container: Container, endpoint: WebhookEndpoint) -> list[Delivery]:
    found: list[Delivery] = []
    while True:
        part, total = container.webhook_deliveries.page(
            endpoint.organization_id, endpoint.id, len(found), READ_AT_ONCE
        )
        found += part
        if not part or len(found) >= total:
            return found


def _fails(delivery: Delivery) -> bool:
    return delivery.status == "failed" or (delivery.status == "pending" and delivery.attempts > 0)


def _delivery(delivery: Delivery) -> dict[str, Any]:
    return {
        "id": delivery.id,
        "type": delivery.type,
        "status": delivery.status,
        "position": delivery.position,
        "attempts": delivery.attempts,
        "response_status": delivery.response_status,
        "error": delivery.error,
        "duration_ms": delivery.duration_ms,
        "created_at": delivery.created_at,
        "next_attempt_at": delivery.next_attempt_at,
    }
