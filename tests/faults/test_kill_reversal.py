"""A process is killed before or after a commit: what it did is done once, and nothing by halves."""

import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from domain.accounts.organization import Organization
from domain.links.handover import Handover
from domain.links.link import Link
from tests.app.cli.shell import ROOT, TIMEOUT_S, Shell
from tests.faults.failpoints import ARMED, CLOCK, Failpoint, Failpoints, When
from tests.house.partner import Partner, Reply
from tests.house.running import KILLED, Running
from tests.plan_files import make_demo
from tests.servers.running import free_port

DYING = (sys.executable, "-m", "tests.faults.process")
RESET = "commit organization.sandbox_reset"


def armed(shell: Shell, role: str, place: str, when: When) -> dict[str, str]:
    """Return what lets the next process of a role die at a place; "" is none."""
    directory = shell.home / "faults"
    (directory / ARMED).mkdir(parents=True, exist_ok=True)
    (directory / CLOCK).write_text("0")
    if place:
        Failpoints(directory / ARMED).arm(Failpoint(role, place, when))
    return {"FAULTS_DIRECTORY": str(directory)}


def killed(shell: Shell, when: When, topic: str, *line: object) -> None:
    role, *more = map(str, line)
    done = subprocess.run(
        [*DYING, role, *more],
        cwd=ROOT,
        env=shell.process_environment | armed(shell, role, f"commit {topic}", when),
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == KILLED, done.stderr


# Before it, nothing of it is there: the simulation dies there, too.
@pytest.mark.parametrize("when", [pytest.param("before", marks=pytest.mark.soak), "after"])
def test_a_killed_command_is_given_again_and_nothing_is_lost_or_doubled(
    shell: Shell, when: When
) -> None:
    owner = shell.new_organization()
    facts = ("--reason", "why", "--value-date", "2026-02-27", "--reference")
    shell.run("wallet", "deposit", owner, "100", "--reference", "bank-1")
    for topic, line, balance, claim in (
        ("payout.made", ("payout", owner, "30", *facts, "out-1"), "70.00", None),
        ("reversal.made", ("reverse", owner, "bank-1", *facts, "back-1"), "0.00", "30.00"),
        ("deposit.made", ("deposit", owner, "70", "--reference", "bank-2"), "40.00", None),
    ):
        before = shell.json("wallet", "show", owner)
        killed(shell, when, topic, "wallet", *line)
        now = shell.json("wallet", "show", owner)
        assert (now == before) is (when == "before"), "all of a commit is there, or nothing"
        its = shell.json("wallet", *line)
        assert (its["balance"], its.get("open_claim")) == (balance, claim), topic
    lines = ("bank-1;100", "out-1;-30", "back-1;-100", "bank-2;70")
    file = shell.home / "bank.csv"
    file.write_text("\n".join(("reference;amount", *lines)))
    book = ("audit", "reconcile", file, "--deposits", "--book", "--value-date", "2026-03-01")
    killed(shell, when, "settlement.booked", *book)
    done = shell.json(*book)
    assert (done["booked"], done["unchanged"]) == ((4, 0) if when == "before" else (3, 1))
    assert shell.json("audit", "verify")["ok"]
    told = {each["account"]: each["debit"] for each in shell.json("audit", "trial-balance")["data"]}
    assert (told["Assets:Bank"], told["Assets:Deposits"]) == ("40.00", "0.00")


def sent(shell: Shell, partner: Partner, when: When, place: str, request: Callable[[], Any]) -> Any:
    """Send a request to a service that dies at a place, if one is named."""
    start = partial(subprocess.Popen, [*DYING, "serve"], cwd=ROOT)
    env = shell.process_environment | armed(shell, "serve", place, when)
    with closing(Running("serve", start, env, shell.home / "serve.log").comes_up()) as service:
        assert partner.authorize().status == 200
        reply = request()
        assert not place or (service.ended(), reply.status) == (KILLED, 0), service.said()
        return reply


@pytest.mark.soak  # Each start takes seconds. Of its rules: test_handover and test_sandbox.
def test_a_request_that_died_is_sent_again_and_nothing_is_done_by_halves(shell: Shell) -> None:
    shell = shell.having(SANDBOX="true", NETWORK_BASE_PLAN="demo-base", PORT=str(free_port()))
    parts = shell.container()
    demo, url = make_demo(parts), f"http://127.0.0.1:{shell.changes['PORT']}"
    partner, links = Partner(url, demo.client_id, demo.client_secret), list[str]()

    def hand_over() -> Reply:
        if not links:
            plan = partner.ask("GET", "/v1/plans?search=eu-1gb").data["data"][0]["id"]
            link = partner.ask("POST", "/v1/links", {"plan_id": plan}).data["id"]
            links.append(f"/v1/links/{link}")
        return partner.ask("POST", f"{links[0]}/handover", {}, {"Idempotency-Key": "page-1"})

    def begin_anew() -> Reply:
        if partner.ask("GET", links[0]).data["status"] != "ended":
            script = {"operation": "lookup", "failure": "no_data"}
            assert partner.ask("PUT", "/v1/sandbox/failures", script).status == 200
            assert partner.ask("POST", "/v1/sandbox/clock", {"hours": 24}).status == 200
            assert partner.ask("DELETE", links[0]).status == 200
        return partner.ask("POST", "/v1/sandbox/reset")

    for when, place, request, done in (
        ("before", "commit handover.made", hand_over, (0, 0, 0, 0)),
        ("after", "commit handover.made", hand_over, (1, 1, 0, 0)),
        ("before", RESET, begin_anew, (1, 1, 0, 24)),
        ("after", RESET, begin_anew, (1, 1, 1, 24)),
        ("before", "forget", begin_anew, (1, 1, 1, 24)),
        ("after", "forget", begin_anew, (1, 1, 1, 0)),
    ):
        sent(shell, partner, when, place, request)
        kinds = (Handover.Made, Link.HandoverSet, Organization.SandboxReset)
        ahead = parts.counters.simulated_ahead([demo.organization]) // timedelta(hours=1)
        assert (*(len(parts.events(each)) for each in kinds), ahead) == done, (when, place)
    page, state = sent(shell, partner, "before", "", lambda: (hand_over(), begin_anew()))
    assert (page.status, page.replayed, page.data["url"]) == (201, True, None)
    assert (state.status, state.data["next"]) == (200, [])
    assert shell.json("audit", "verify")["ok"]
