"""Every operation does what the OpenAPI document tells, whatever is sent to it."""

import json

import pytest

from app.http.docs import DOCUMENT
from tests.app.http.buying import Buyer
from tests.app.http.conftest import MakeService
from tests.app.http.fuzzing import Plan, fuzz

PHASES = {"coverage": ("examples", "coverage"), "random": ("fuzzing",), "links": ("stateful",)}


@pytest.fixture(scope="module")
def buyer(share_service: MakeService) -> Buyer:
    """Someone who can pay for all of it, at a service whose network has all the time there is."""
    # The sandbox would play failures: answers of 502 and 503, and a lookup of 3 s.
    settings = {"SANDBOX": "false", "PROVISIONING_DEADLINE_S": "60", "TOKEN_TTL_S": "86400"}
    return Buyer(share_service(**settings).start().tenant("1000000.00"))


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
def test_the_document_holds_for_what_a_sandbox_plays(make_service: MakeService, phase: str) -> None:
    buyer = Buyer(make_service(PROVISIONING_DEADLINE_S="60").start().tenant("1000.00"))
    plan = Plan(PHASES[phase], examples=200, learn=True, below="/v1/sandbox")
    outcome = fuzz(buyer, plan)
    assert not outcome.findings, "\n\n".join(outcome.findings[:20])
    assert len(outcome.cases) == 6
