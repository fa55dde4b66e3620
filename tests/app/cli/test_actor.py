"""Every command that writes records who ran it, but never in a wallet entry that partners see."""

import pwd
from os import getuid
from pathlib import Path

import pytest

from domain.accounts.approvals import Proposal
from domain.accounts.operator_acts import Erasure
from domain.accounts.operators import Operator
from domain.accounts.refund_by_hand import RefundByHand
from domain.accounts.wallet import Adjustment, Wallet
from domain.finance.statement import Month
from domain.links.link import Link
from domain.log.aggregate import ByOperator
from domain.lookups.bulk_job import BulkJob
from domain.webhooks.endpoint import WebhookEndpoint, WebhookRequest
from tests.app.cli.shell import Shell
from tests.golden.files import event_classes, events_of
from tests.plan_files import plan, written

ME = f"os:{pwd.getpwuid(getuid()).pw_name}"


def run_all(shell: Shell, plans: Path) -> None:
    """Run every command that appends to the log."""
    organization = shell.new_organization("--no-wallet")
    owner = str(organization)
    for status in ("suspended", "inactive", "active"):
        shell.run("org", "set", owner, "--status", status)
    shell.run("org", "set", owner, "--price", "1", "--lookup", "off", "--monthly-link-fee", "1")
    shell.run("org", "set", owner, "--rate-limit", "60", "--spending-limit", "9")
    shell.run("org", "set", owner, "--brand-colour", "#1a4fa0", "--customer-number", "10001")
    shell.run("org", "set", owner, "--wallet")
    shell.run("wallet", "deposit", owner, "5", "--reference", "bank-1")
    shell.run("wallet", "adjust", owner, "-1", "--reference", "c-1", "--reason", "a mistake")
    day = ("--reason", "why", "--value-date", "2026-02-27", "--reference")
    shell.run("wallet", "payout", owner, "1", *day, "out-1")
    shell.run("wallet", "reverse", owner, "bank-1", "--amount", "2", *day, "back-1")
    (plans.parent / "bank.csv").write_text("reference,amount\nbank-1,5\n")
    booking = ("--deposits", "--book", "--value-date", "2026-02-27")
    shell.run("audit", "reconcile", plans.parent / "bank.csv", *booking, status=1)
    client = shell.json("client", "create", "--org", owner)["client_id"]
    shell.run("client", "rotate-secret", client)
    shell.run("client", "revoke", client)
    shell.refusal("client", "revoke", "\udcff", status=2)
    for price in ("1.00", "2.00"):
        plans.write_bytes(written(plan(retail_price=price)))
        shell.run("plans", "import", plans)
    (listed,) = shell.json("plans", "list")["data"]
    for change in (["--disable"], ["--enable"], ["--exclude", owner], ["--include", owner]):
        shell.run("plans", "set", listed["id"], *change)
    for end in ([], ["--end"]):
        shell.run("providers", "drain", "simulated", *end)
    shell.run("prices", "lookup", "0.007")
    shell.run("keys", "rotate", "webhooks")
    shell.run("projections", "rebuild", "audit_tree")
    shell.run("operator", "approvals", "100")


def test_what_an_operator_does_names_the_user_of_the_operating_system(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "somebody-else")
    run_all(shell, tmp_path / "plans.json")
    log = shell.container().log
    events = [each.event for each in log.read(0, 1_000)]
    kept = [each for each in events if isinstance(each, ByOperator)]
    assert {each.actor for each in kept} == {ME}
    others = (WebhookEndpoint, WebhookRequest, Proposal, Link, Operator)
    theirs = {each for other in others for each in events_of(other)}  # Tests of their own tell.
    theirs |= {Adjustment.Proposed, Adjustment.Approved, Adjustment.Rejected}
    theirs |= {Erasure.Made, Month.Closed, BulkJob.Cancelled}
    theirs |= {each for each in event_classes() if issubclass(each, RefundByHand)}
    possible = {each for each in event_classes() if issubclass(each, ByOperator)}
    assert {type(each) for each in kept} == possible - theirs
    entries = [each for each in events if isinstance(each, Wallet.Moved)]
    assert len(entries) == 4
    assert ME.encode() not in b"".join(log.mapper.to_stored_event(each).state for each in entries)
