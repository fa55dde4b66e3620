"""While the signing keys cannot be read no token is judged: 503, and one line that says so."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, Tenant, code_of


def remove(keys: Path) -> None:
    keys.rename(keys.with_name("away"))


def empty(keys: Path) -> None:
    for file in keys.glob("*.pem"):
        file.rename(keys.parent / file.name)


def spoil(keys: Path) -> None:
    for file in keys.glob("*.pem"):
        file.write_bytes(b"no key")


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    said = [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR]
    return [each for each in said if "SIGNING_KEYS" in each]


@pytest.mark.parametrize("harm", [remove, empty, spoil])
def test_every_token_is_answered_503_and_the_log_says_why(
    make_service: MakeService, harm: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    service = make_service()
    tenant = service.tenant()
    keys = service.container.settings.signing_keys
    harm(keys)
    for name in ("keys", "verifier", "issuer"):  # As a process has them that was just started.
        service.container.__dict__.pop(name, None)
    for _ in range(3):
        reply = tenant.get("/v1/wallet")
        assert (reply.status_code, code_of(reply)) == (503, "SERVICE_UNAVAILABLE")
        assert reply.json["error"]["details"] == {"retryable": True}
    assert _told(service, tenant) == (503, "server_error")
    assert service.client.get("/.well-known/jwks.json").status_code == 503
    ready = service.client.get("/readyz")
    assert (ready.status_code, ready.json["signing_keys"]) == (503, False)
    assert service.client.get("/livez").status_code == 200
    assert len(errors(caplog)) == 1


def test_a_pepper_that_is_gone_is_not_made_anew(
    make_service: MakeService, caplog: pytest.LogCaptureFixture
) -> None:
    service = make_service()
    tenant = service.tenant()
    parts = service.container
    parts.notes.add("pepper", parts.pepper.newest().id, parts.clock())
    pepper = parts.settings.signing_keys / "pepper"
    kept = pepper.rename(pepper.parents[1] / "pepper")
    for name in ("pepper", "secret_hasher"):
        del parts.__dict__[name]
    for _ in range(2):
        assert _told(service, tenant) == (503, "server_error")
    assert not pepper.exists()
    assert len(errors(caplog)) == 1
    kept.rename(pepper)
    assert _told(service, tenant) == (200, None)


def _told(service: Service, tenant: Tenant) -> tuple[int, str | None]:
    reply = service.ask_for_token(tenant.client_id)
    return reply.status_code, reply.json.get("error")
