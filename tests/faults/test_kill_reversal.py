"""A process is killed before or after a commit: what it did is done once, and nothing by halves."""

import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from domain.accounts.organization import Organization
from domain.links.handover import Handover
from domain.links.link import Link
from tests.app.cli.shell import ROOT, TIMEOUT_S, Shell
from tests.house.partner import Partner, Reply
from tests.house.running import KILLED, Running
from tests.plan_files import make_demo
from tests.servers.running import free_port

# It runs a command as `python -m app` does, and dies around the commit of an event, or `forget`.
DYING = """
import os, signal, sys

from domain.log.log import Log
from projections.stores.counters import Counters

when, topic = sys.argv.pop(1), sys.argv.pop(1)
begin, forget = Log.__init__, Counters.reset_sandbox

def beginning(log, *given):
    begin(log, *given)
    log.around = lambda insert, stored: dying({it.topic for it in stored}, insert, stored)

def dying(places, act, *given):
    if topic in places and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    done = act(*given)
    if topic in places:
        os.kill(os.getpid(), signal.SIGKILL)
    return done

Log.__init__ = beginning
Counters.reset_sandbox = lambda *given: dying({"forget"}, forget, *given)
from app.cli.root import main
main()
"""
RESET = "organization.sandbox_reset"


def killed(shell: Shell, when: str, topic: str, *line: object) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DYING, when, topic, *map(str, line)],
        cwd=ROOT,
        env={"PATH": str(Path(sys.executable).parent), **shell.environment},
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_killed_command_is_given_again_and_nothing_is_lost_or_doubled(
    shell: Shell, when: str
) -> None:
    owner = shell.new_organization()
    facts = ("--reason", "why", "--value-date", "2026-02-27", "--reference")
    shell.run("wallet", "deposit", owner, "100", "--reference", "bank-1")
    for topic, line, balance, claim in (
        ("payout.made", ("payout", owner, "30", *facts, "out-1"), "70.00", None),
        ("reversal.made", ("reverse", owner, "bank-1", *facts, "back-1"), "0.00", "30.00"),
        ("deposit.made", ("deposit", owner, "20", "--reference", "bank-2"), "0.00", "10.00"),
        ("deposit.made", ("deposit", owner, "50", "--reference", "bank-3"), "40.00", None),
    ):
        before = shell.json("wallet", "show", owner)
        killed(shell, when, topic, "wallet", *line)
        now = shell.json("wallet", "show", owner)
        assert (now == before) is (when == "before"), "all of a commit is there, or nothing"
        its = shell.json("wallet", *line)
        assert (its["balance"], its.get("open_claim")) == (balance, claim), topic
    lines = ("bank-1;100", "out-1;-30", "back-1;-100", "bank-2;20", "bank-3;50")
    file = shell.home / "bank.csv"
    file.write_text("\n".join(("reference;amount", *lines)))
    book = ("audit", "reconcile", file, "--deposits", "--book", "--value-date", "2026-03-01")
    killed(shell, when, "settlement.booked", *book)
    done = shell.json(*book)
    assert (done["booked"], done["unchanged"]) == ((5, 0) if when == "before" else (4, 1))
    assert shell.json("audit", "verify")["ok"]
    told = {each["account"]: each["debit"] for each in shell.json("audit", "trial-balance")["data"]}
    assert (told["Assets:Bank"], told["Assets:Deposits"]) == ("40.00", "0.00")


def sent(shell: Shell, partner: Partner, when: str, place: str, request: Callable[[], Any]) -> Any:
    """Send a request to a service that dies at a place, if one is named."""
    command = [sys.executable, "-c", DYING, when, place, "serve"]
    start, env = partial(subprocess.Popen, command, cwd=ROOT), shell.process_environment
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
        ("before", "handover.made", hand_over, (0, 0, 0, 0)),
        ("after", "handover.made", hand_over, (1, 1, 0, 0)),
        ("before", RESET, begin_anew, (1, 1, 0, 24)),
        ("after", RESET, begin_anew, (1, 1, 1, 24)),
        ("before", "forget", begin_anew, (1, 1, 1, 24)),
        ("after", "forget", begin_anew, (1, 1, 1, 0)),
    ):
        sent(shell, partner, when, place, request)
        kinds = (Handover.Made, Link.HandoverSet, Organization.SandboxReset)
        ahead = parts.counters.simulated_ahead([demo.organization]) // timedelta(hours=1)
        assert (*(len(parts.events(each)) for each in kinds), ahead) == done, (when, place)
    page, state = sent(shell, partner, "", "", lambda: (hand_over(), begin_anew()))
    assert (page.status, page.replayed, page.data["url"]) == (201, True, None)
    assert (state.status, state.data["next"]) == (200, [])
    assert shell.json("audit", "verify")["ok"]
