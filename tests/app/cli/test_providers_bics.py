"""`providers check` and `providers smoke` at a network of a stock: BICS, over real sockets."""

import json
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from domain.cause import Cause, utc_now
from domain.links.esim import Esim
from tests.app.cli.shell import Shell
from tests.plan_files import plan
from tests.support.providers import bics
from tests.support.providers.bics import BicsServer
from tests.support.providers.server import Answer, FaultKind, Request


@pytest.fixture
def far() -> Iterator[BicsServer]:
    with BicsServer(20) as server:
        yield server


@pytest.fixture
def sold(shell: Shell, far: BicsServer, tmp_path: Path) -> Shell:
    sold = shell.having(**far.settings)
    file = tmp_path / "plans.json"
    terms = plan() | {"provider_plan_id": "eu-1", "network": "bics", "cost": "2.00"}
    file.write_text(json.dumps({"plans": [terms]}))
    sold.json("plans", "import", file)
    return sold


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


def test_smoke_leaves_alone_what_belongs_to_others(
    sold: Shell, far: BicsServer, tmp_path: Path
) -> None:
    ours, theirs, *_ = far.sims
    container = sold.container()
    held = Esim.register("bics", ours, Cause(utc_now(), "r"))
    held.reserve(UUID(int=1), Cause(utc_now(), "r"))
    container.log.append(held)
    container.close()
    create = far.handler_of("create")

    def taken_meanwhile(request: Request) -> Answer:
        far.take_by_hand(theirs, "another link")
        return create(request)

    far.route_first("create", "POST", "/CreateEndPoint", taken_meanwhile)
    command = ("providers", "smoke", "bics", "--transcripts", tmp_path, "--spend-max", "2")
    done = sold.json(*command, status=1)
    steps = [(each["step"], each["ok"]) for each in done["steps"]]
    assert steps == [("list free eSIMs", True), ("create endpoint", False), ("find endpoint", True)]
    assert [each.name for each in far.endpoints.values()] == ["another link"]
    assert (done["spent"], done["given_back"]) == (None, None)


def test_smoke_tells_what_it_bought_when_its_own_code_fails(
    sold: Shell, far: BicsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lpa(*_: object, **__: object) -> None:
        raise KeyError(far.bought[0].name)

    monkeypatch.setattr("app.adapters.networks.bics.network.BicsNetwork.lpa", lpa)
    blocked = tmp_path / "file"
    blocked.touch()
    command = ("providers", "smoke", "bics", "--transcripts", blocked / "in", "--spend-max", "2")
    done = sold.json(*command, status=1)
    told = {each["step"]: each["told"] for each in done["steps"] if not each["ok"]}
    assert told == {"activation code": "KeyError", "keep the transcript": "Not a directory"}
    assert (done["spent"], done["given_back"], done["transcript"]) == ("2.00", True, None)
    assert (far.unpaid(), far.endpoints) == ([], {})
