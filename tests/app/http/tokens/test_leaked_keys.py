"""A key that leaked is renewed and revoked by commands while the service runs."""

from collections.abc import Callable
from time import monotonic

import pytest

from tests.app.cli.shell import Shell
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service

NOTICED_WITHIN_S = 5  # In every process.
WEBHOOKS = "/v1/webhooks"


def soon(service: Service, holds: Callable[[], bool]) -> None:
    began = monotonic()
    service.until(holds)
    assert monotonic() - began < NOTICED_WITHIN_S


def key_of(shell: Shell, kind: str) -> str:
    """Return the key of a kind that is in use."""
    listed = [each for each in shell.json("keys", "list")["data"] if each["kind"] == kind]
    assert {"kind", "kid", "created_at", "state"} <= listed[-1].keys()
    live = [each["kid"] for each in listed if each["state"] != "revoked"]
    return str(live[-1])


def status_of(service: Service, client_id: str) -> int:
    return service.ask_for_token(client_id).status_code


def kids(service: Service) -> list[str]:
    return [each["kid"] for each in service.client.get("/.well-known/jwks.json").json["keys"]]


@pytest.mark.parametrize("renewed", [True, False])
def test_tokens_of_a_revoked_signing_key_are_refused_soon_and_say_why(
    make_service: MakeService, *, renewed: bool
) -> None:
    service = make_service()
    tenant, shell = service.tenant(), service.shell()
    leaked = key_of(shell, "signing")
    if renewed:
        shell.run("keys", "rotate")
    assert tenant.get("/v1/wallet").status_code == 200, "a renewal refuses no token"
    done = shell.json("keys", "revoke", leaked, "--yes")
    assert (done["kind"], done["kid"], done["state"]) == ("signing", leaked, "revoked")
    soon(service, lambda: tenant.get("/v1/wallet").status_code == 401)
    assert "revoked" in tenant.get("/v1/wallet").json["error"]["message"]
    assert leaked not in kids(service)
    assert len(kids(service)) == 1
    again = {"Authorization": f"Bearer {service.token(tenant.client_id)}"}
    assert tenant.get("/v1/wallet", headers=again).status_code == 200


@pytest.mark.parametrize("setting", ["", "a pepper by setting"])
def test_a_secret_that_was_used_since_the_renewal_outlives_a_revoked_pepper(
    make_service: MakeService, setting: str
) -> None:
    service = make_service(SECRET_PEPPER=setting)
    shell = service.shell()
    used, idle = (service.register_client(None) for _ in range(2))
    for client_id in (used, idle):
        assert status_of(service, client_id) == 200
    leaked = key_of(shell, "pepper")
    shell.run("keys", "rotate", "pepper")
    newest = key_of(shell, "pepper")
    assert newest != leaked
    soon(service, lambda: service.container.pepper.newest().id == newest)
    for _ in range(2):
        assert status_of(service, used) == 200
    done = shell.json("keys", "revoke", leaked, "--yes")
    assert done["clients"] == [idle]
    soon(service, lambda: leaked in service.container.pepper.revoked())
    assert (status_of(service, idle), status_of(service, used)) == (401, 200)
    assert leaked not in [*service.container.pepper.current()]
    late = shell.json("client", "rotate-secret", idle)
    assert service.ask_for_token(idle, late["client_secret"]).status_code == 200


def test_a_secret_of_a_revoked_webhook_key_signs_nothing_until_it_is_rotated(
    make_service: MakeService,
) -> None:
    service = make_service().start()
    tenant, shell = service.tenant(), service.shell()
    webhook_id = tenant.webhook()
    leaked = key_of(shell, "webhooks")
    shell.run("keys", "rotate", "webhooks")
    first = tenant.test_delivery(webhook_id)
    service.until(lambda: tenant.deliveries(webhook_id)[0]["status"] == "delivered")
    done = shell.json("keys", "revoke", leaked, "--yes")
    assert done["endpoints"] == [webhook_id]
    soon(service, lambda: leaked in service.container.webhook_key.revoked())
    second = tenant.test_delivery(webhook_id)
    service.until(lambda: tenant.deliveries(webhook_id)[0]["error"] == "secret_revoked")
    waiting = tenant.deliveries(webhook_id)[0]
    assert (waiting["id"], waiting["status"], waiting["attempts"]) == (second, "pending", 0)
    told = service.sender.to("https://hooks.example/")
    assert [each.headers["webhook-id"] for each in told] == [first]
    assert tenant.post(f"{WEBHOOKS}/{webhook_id}/rotate-secret").status_code == 200
    with service.container.views.writing() as connection:  # As if the pause had passed.
        states = service.container.webhook_deliveries.metadata.tables["webhook_health"]
        connection.execute(states.update().values(paused_until=None))
    service.until(lambda: tenant.deliveries(webhook_id)[0]["status"] == "delivered")
