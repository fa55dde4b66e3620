"""`providers check` and `providers smoke` at a network of a stock: BICS, over real sockets."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.adapters.networks.bics.bics_lab import environment_of
from tests.app.cli.shell import Shell
from tests.plan_files import plan
from tests.support.providers import bics
from tests.support.providers.bics import BicsServer
from tests.support.providers.server import FaultKind


@pytest.fixture
def far() -> Iterator[BicsServer]:
    with BicsServer(20) as server:
        yield server


@pytest.fixture
def sold(shell: Shell, far: BicsServer, tmp_path: Path) -> Shell:
    sold = shell.having(**environment_of(far))
    file = tmp_path / "plans.json"
    terms = plan() | {"provider_plan_id": "eu-1", "network": "bics", "cost": "2.00"}
    file.write_text(json.dumps({"plans": [terms]}))
    sold.json("plans", "import", file)
    return sold


def test_check_reads_only(sold: Shell, far: BicsServer) -> None:
    (row,) = sold.json("providers", "check", "bics")["data"]
    assert (row["up"], row["balance"]) == (True, None)
    assert {each.route for each in far.requests} == {"log in", "sims"}


@pytest.mark.parametrize("fault", [None, FaultKind.RESET_AFTER])
def test_smoke_buys_reads_and_gives_back(
    sold: Shell, far: BicsServer, tmp_path: Path, fault: FaultKind | None
) -> None:
    if fault is not None:
        far.fault(fault, on="create")
    command = ("providers", "smoke", "bics", "--transcripts", tmp_path, "--spend-max", "2")
    done = sold.json(*command, status=0 if fault is None else 1)
    failed = [each["step"] for each in done["steps"] if not each["ok"]]
    assert failed == ([] if fault is None else ["create endpoint"])
    assert (done["spent"], done["given_back"]) == ("2.00", True)
    assert len(far.bought) == 1
    assert (far.unpaid(), far.endpoints) == ([], {})
    kept = Path(done["transcript"]).read_text("utf-8")
    secrets = [bics.PASSWORD, bics.USERNAME, "eyJ.token", "LPA:1$", *far.sims]
    secrets += [sim.matching_id for sim in far.sims.values()]
    assert not [secret for secret in secrets if secret in kept]
