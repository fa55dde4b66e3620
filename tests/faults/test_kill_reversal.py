"""A command is killed before or after its commit: what it makes or books is there once."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.cli.shell import ROOT, TIMEOUT_S, Shell

# It runs a command as `python -m app` does, and dies around the commit of an event.
DYING = """
import os, signal, sys

from domain.log.log import Log

when, topic = sys.argv.pop(1), sys.argv.pop(1)
begin = Log.__init__

def beginning(log, *given):
    begin(log, *given)
    log.around = dying

def dying(insert, stored):
    is_it = any(each.topic == topic for each in stored)
    if is_it and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    done = insert(stored)
    if is_it:
        os.kill(os.getpid(), signal.SIGKILL)
    return done

Log.__init__ = beginning
from app.cli.root import main
main()
"""


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
