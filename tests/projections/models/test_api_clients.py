"""API clients as the token endpoint reads them."""

from domain.accounts.organization import FIRST_SCOPES, granted
from projections.models.api_clients import ApiClientRow
from tests.installation import Process, SetClock


def row(process: Process, client_id: str) -> ApiClientRow:
    process.projector.catch_up()
    with process.views.reading() as connection:
        every = process.clients.all(connection)
    [found] = [each for each in every if each.client_id == client_id]
    return found


def test_a_registered_client_is_read_back(process: Process) -> None:
    process.clock = clock = SetClock()
    organization_id = process.organization("")
    process.accounts.register_client(
        process.cause(),
        client_id="cl_1",
        secret_hash="first",
        organization_id=organization_id,
        scopes=["lookup", "wallet"],
    )
    assert row(process, "cl_1") == ApiClientRow(
        client_id="cl_1",
        organization_id=organization_id,
        scopes=["lookup", "wallet"],
        revoked=False,
        created_at=clock.now,
    )


def test_a_machine_to_machine_client_has_no_organization_and_all_scopes(process: Process) -> None:
    found = row(process, process.client(None))
    assert (found.organization_id, found.scopes) == (None, granted(FIRST_SCOPES))
    assert "webhooks" in found.scopes  # Which is not in what is stored.


def test_a_revoked_client_stays_and_says_so(process: Process) -> None:
    revoked, kept = process.client(None), process.client(None)
    process.accounts.change_client(revoked, lambda each: each.revoke(process.cause()))
    assert row(process, revoked).revoked
    assert not row(process, kept).revoked
