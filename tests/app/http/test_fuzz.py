"""Every operation does what the OpenAPI document tells, whatever is sent to it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.http.docs import DOCUMENT
from tests.app.http.buying import Buyer
from tests.app.http.fuzzing import Plan, fuzz
from tests.app.http.service import Service
from tests.seeds import sqlite_seed

PHASES = {"coverage": ("examples", "coverage"), "random": ("fuzzing",), "links": ("stateful",)}


@pytest.fixture(scope="module")
def buyer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Buyer]:
    """Someone who can pay for all of it, at a service whose network has all the time there is."""
    directory = tmp_path_factory.mktemp("fuzz")
    sqlite_seed().copy(directory)
    # The sandbox would play failures: answers of 502 and 503, and a lookup of 3 s.
    settings = {"SANDBOX": "false", "PROVISIONING_DEADLINE_S": "60", "TOKEN_TTL_S": "86400"}
    service = Service(directory, **settings).start()
    yield Buyer(service.tenant("1000000.00"))
    service.stop()


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("phase", PHASES)
def test_the_document_holds_for_every_operation(buyer: Buyer, phase: str, seed: int) -> None:
    outcome = fuzz(buyer, Plan(PHASES[phase], examples=200, seed=seed, learn=True))
    assert not outcome.findings, "\n\n".join(outcome.findings[:20])
    paths = json.loads(buyer.service.app.extensions[DOCUMENT][""])["paths"].values()
    operations = sum(len(each.keys() - {"parameters", "servers"}) for each in paths)
    assert phase == "links" or len(outcome.cases) == operations


@pytest.mark.soak
@pytest.mark.parametrize("phase", ["coverage", "random"])
def test_the_document_holds_for_what_a_sandbox_plays(tmp_path: Path, phase: str) -> None:
    sqlite_seed().copy(tmp_path)
    service = Service(tmp_path, PROVISIONING_DEADLINE_S="60").start()
    buyer = Buyer(service.tenant("1000.00"))
    plan = Plan(PHASES[phase], examples=200, learn=True, below="/v1/sandbox")
    outcome = fuzz(buyer, plan)
    service.stop()
    assert not outcome.findings, "\n\n".join(outcome.findings[:20])
    assert len(outcome.cases) == 5
