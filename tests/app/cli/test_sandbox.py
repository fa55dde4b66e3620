"""Play money: it needs no right, and both audits accept it."""

from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from domain.accounts.wallet import SANDBOX_DEPOSIT
from domain.cause import Cause
from tests.app.cli.shell import Shell
from tests.docs.verifier import verify


def test_play_money_needs_no_right_and_both_audits_accept_it(shell: Shell, tmp_path: Path) -> None:
    sandbox, out = shell.having(SANDBOX="true"), tmp_path / "log.jsonl"
    organization = sandbox.new_organization()
    sandbox.json("operator", "create", "anna", "--may", "money,approve,keys,audit")
    parts = sandbox.container()
    cause = Cause(parts.clock(), "request-1")
    parts.accounts.book_deposit(organization, 7_000_000, "tests-1", cause, SANDBOX_DEPOSIT)
    parts.close()
    assert sandbox.json("audit", "verify")["ok"]
    sandbox.run("audit", "export", "--format", "jsonl", "--out", out)
    with redirect_stdout(StringIO()):
        assert verify.main([str(out)]) == 0
