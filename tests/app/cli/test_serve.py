"""`serve`: a process that takes requests, and operators' commands beside it."""

import json
from collections.abc import Iterator
from urllib.request import urlopen
from uuid import UUID

import pytest

from tests.app.cli.serving import NUMBER, Serving, free_port
from tests.app.cli.shell import Shell
from tests.installation import wait_until

HOLDS_WITHIN_S = 1


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


def test_the_demo_needs_nothing_but_what_is_printed(serving: Serving) -> None:
    assert [*serving.demo] == [
        "url",
        "organization",
        "client_id",
        "client_secret",
        "balance",
        "currency",
    ]
    assert serving.demo["url"] == serving.url
    status, reply = serving.call("POST", NUMBER, serving.authorized(serving.demo))
    assert (status, reply["meta"]["charge"]["amount"]) == (200, "0.005")
    shown = serving.shell.json("wallet", "show", serving.demo["organization"])
    assert shown["balance"] == "99.995"


def test_a_change_holds_in_the_running_service_at_once(
    serving: Serving, organization: UUID, headers: dict[str, str]
) -> None:
    def code() -> str:
        return str(serving.call("POST", NUMBER, headers)[1].get("error", {}).get("code"))

    assert code() == "None"
    serving.shell.run("org", "set", organization, "--lookup", "off")
    wait_until(lambda: code() == "NUMBER_LOOKUP_DISABLED", HOLDS_WITHIN_S)
    serving.shell.run("org", "suspend", organization)
    wait_until(lambda: code() == "ORGANIZATION_SUSPENDED", HOLDS_WITHIN_S)


def test_a_revoked_client_is_refused_within_a_second(serving: Serving, organization: UUID) -> None:
    client = serving.shell.json("client", "create", "--org", organization)
    headers = serving.authorized(client)
    serving.shell.run("client", "revoke", client["client_id"])
    wait_until(lambda: serving.call("GET", "/v1/wallet", headers)[0] == 401, HOLDS_WITHIN_S)
    assert serving.token(client)[0] == 401


def test_both_secrets_of_a_rotation_are_good(serving: Serving, organization: UUID) -> None:
    first = serving.shell.json("client", "create", "--org", organization)
    second = serving.shell.json("client", "rotate-secret", first["client_id"])
    wait_until(lambda: serving.token(second)[0] == 200, HOLDS_WITHIN_S)
    assert serving.token(first)[0] == 200


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


@pytest.mark.parametrize(
    ("name", "value"), [("HOST", "300.1.1.1"), ("MCC_MNC_FILE", "requirements.lock")]
)
def test_a_setting_that_only_serving_can_judge_is_named_in_one_line(
    nowhere: Shell, name: str, value: str
) -> None:
    status, out, errors = nowhere.having(**{name: value}).process("serve")
    assert (status, out) == (1, "")
    assert name in errors.splitlines()[-1]
    assert "Traceback" not in errors


def test_metrics_are_served_on_a_port_of_their_own(serving: Serving, nowhere: Shell) -> None:
    port = serving.shell.changes["METRICS_PORT"]
    assert serving.call("GET", "/livez", {})[0] == 200
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as reply:  # Ours.
        shown = reply.read().decode()
    assert 'http_requests_total{method="GET",route="/livez",status="200"} 1.0' in shown
    assert 'follower_failed{name="wallets"} 0.0' in shown
    status, _, errors = nowhere.having(METRICS_PORT=port).process("serve")
    assert (status, f"METRICS_PORT {port}" in errors.splitlines()[-1]) == (1, True)
