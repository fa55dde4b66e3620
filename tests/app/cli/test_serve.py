"""`serve`: a process that takes requests, and operators' commands beside it."""

from uuid import UUID

import pytest

from tests.house.partner import Partner
from tests.house.running import Served
from tests.installation import wait_until


@pytest.fixture
def organization(serving: Served) -> UUID:
    """A customer made by commands while the service runs."""
    made = serving.shell.new_organization()
    serving.shell.run("wallet", "deposit", made, "1", "--reference", "wire 1")
    return made


@pytest.fixture
def partner(serving: Served, organization: UUID) -> Partner:
    return serving.partner(serving.shell.json("client", "create", "--org", organization))


def test_a_new_signing_key_refuses_nobody(serving: Served, partner: Partner) -> None:
    assert serving.shell.json("keys", "rotate")["state"] == "signing"
    assert partner.ask("GET", "/v1/wallet").status == 200


def test_read_models_are_rebuilt_and_audited_under_way(serving: Served, partner: Partner) -> None:
    rebuilt = serving.shell.json("projections", "rebuild", "--all")["data"]
    assert len(rebuilt) == len(serving.shell.container().models)
    assert partner.ask("GET", "/v1/wallet").data["balance"] == "1.00"
    assert serving.shell.json("audit", "verify")["ok"] is True
    assert serving.shell.json("migrate") == {"built": []}


def test_jobs_that_both_work_on_are_settled_once(
    serving: Served, organization: UUID, partner: Partner
) -> None:
    numbers = ["+14155552671", "+15005550001", "+15005550002"]
    made = partner.ask("POST", "/number-lookup/bulk", {"phone_numbers": numbers})
    assert made.status == 202, made
    serving.shell.run("work", "retry")
    wait_until(lambda: partner.has_ended(made.data["job_id"]))
    assert serving.shell.json("wallet", "show", organization)["balance"] == "0.99"
    assert serving.shell.json("audit", "verify")["ok"] is True


def test_a_port_that_is_taken_is_named_and_the_demo_keeps_its_secret(serving: Served) -> None:
    for _ in range(2):  # The second rotation would end the secret.
        status, out, errors = serving.shell.process("serve", "--demo", "--json")
        assert (status, out) == (1, "")
        assert f"PORT {serving.shell.changes['PORT']}" in errors.splitlines()[-1]
        assert "Traceback" not in errors
    serving.partner()
