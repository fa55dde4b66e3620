"""`serve`: a process that takes requests, and operators' commands beside it."""

import json
from collections.abc import Iterator
from uuid import UUID

import pytest

from tests.app.cli.serving import Serving, free_port
from tests.app.cli.shell import Shell
from tests.installation import wait_until


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    shell = Shell(tmp_path_factory.mktemp("serve"))
    started = Serving(shell.having(METRICS_PORT=str(free_port())))
    yield started
    assert started.stop() == 0


@pytest.fixture
def organization(serving: Serving) -> UUID:
    """A customer made by commands while the service runs."""
    made = serving.shell.new_organization()
    serving.shell.run("wallet", "deposit", made, "1", "--reference", "wire 1")
    return made


@pytest.fixture
def headers(serving: Serving, organization: UUID) -> dict[str, str]:
    client = serving.shell.json("client", "create", "--org", organization)
    return serving.authorized(client)


def test_a_new_signing_key_refuses_nobody(serving: Serving, headers: dict[str, str]) -> None:
    assert serving.shell.json("keys", "rotate")["state"] == "signing"
    assert serving.call("GET", "/v1/wallet", headers)[0] == 200


def test_read_models_are_rebuilt_and_audited_under_way(
    serving: Serving, headers: dict[str, str]
) -> None:
    rebuilt = serving.shell.json("projections", "rebuild", "--all")["data"]
    assert len(rebuilt) == len(serving.shell.container().models)
    assert serving.call("GET", "/v1/wallet", headers)[1]["data"]["balance"] == "1.00"
    assert serving.shell.json("audit", "verify")["ok"] is True
    assert serving.shell.json("migrate") == {"built": []}


def test_jobs_that_both_work_on_are_settled_once(
    serving: Serving, organization: UUID, headers: dict[str, str]
) -> None:
    numbers = ["+14155552671", "+15005550001", "+15005550002"]
    body = json.dumps({"phone_numbers": numbers}).encode()
    json_headers = headers | {"Content-Type": "application/json"}
    status, reply = serving.call("POST", "/number-lookup/bulk", json_headers, body)
    assert status == 202, reply
    job = f"/number-lookup/bulk/{reply['data']['job_id']}"
    serving.shell.run("jobs", "retry")
    wait_until(lambda: serving.call("GET", job, headers)[1]["data"]["status"] == "completed")
    assert serving.shell.json("wallet", "show", organization)["balance"] == "0.99"
    assert serving.shell.json("audit", "verify")["ok"] is True


def test_a_port_that_is_taken_is_named_and_the_demo_keeps_its_secret(serving: Serving) -> None:
    for _ in range(2):  # The second rotation would end the secret.
        status, out, errors = serving.shell.process("serve", "--demo", "--json")
        assert (status, out) == (1, "")
        assert f"PORT {serving.shell.changes['PORT']}" in errors.splitlines()[-1]
        assert "Traceback" not in errors
    assert serving.token(serving.demo)[0] == 200


def test_a_second_start_keeps_the_demo_and_its_credentials(nowhere: Shell) -> None:
    first = Serving(nowhere)
    assert first.stop() == 0
    second = Serving(nowhere)
    try:
        kept = ["organization", "client_id", "client_secret", "balance", "currency"]
        assert [first.demo[name] for name in kept] == [second.demo[name] for name in kept]
        assert second.token(second.demo)[0] == 200
        assert len(second.shell.json("org", "list")["data"]) == 1
    finally:
        assert second.stop() == 0
