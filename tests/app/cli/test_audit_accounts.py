"""`audit trial-balance`: when it fails."""

import pytest

from domain.cause import Cause
from domain.lookups.single import LookupRequest
from tests.app.cli.shell import Shell


@pytest.fixture
def used(shell: Shell) -> Shell:
    """A deposit of 5 and a lookup for 0.25 that has cost 0.10."""
    shell = shell.having(COST_PER_LOOKUP="offline=0.10")
    organization = shell.new_organization()
    shell.run("wallet", "deposit", organization, "5", "--reference", "r")
    container = shell.container()
    request = LookupRequest(organization, "+14155550100", 250_000, "USD", None)
    container.single_lookup.run(request, Cause(container.clock(), "request"))
    container.close()
    return shell


def test_an_amount_that_was_rewritten_leaves_a_difference(used: Shell) -> None:
    used.rewrite(
        "UPDATE stored_events SET state = replace(state, '\"amount_micros\":5000000',"
        " '\"amount_micros\":5000001') WHERE topic = 'wallet.deposited'"
    )
    told = used.json("audit", "trial-balance", status=1)
    assert used.json("audit", "trial-balance", "--month", "2099-01", status=1)["ok"] is False
    difference = [{"amount": "0.000001", "currency": "USD"}]
    assert (told["ok"], told["differences"]) == (False, difference)
