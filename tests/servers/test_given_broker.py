"""All that use the broker which TEST_BROKER_URL names are run by one test process."""

import re
from pathlib import Path

from tests.servers.given_broker import GROUP, USERS, TakingTurns

ROOT = Path(__file__).parents[2]
USES_IT = re.compile(r"\bfresh_url\(|\bbroker_url: str\b")


def scope_of(file: str) -> str:
    scheduler = object.__new__(TakingTurns)
    return scheduler._split_scope(f"{file}::test_it[a/b::c]")  # What it overrides.


def test_every_test_that_uses_it_is_named() -> None:
    files = {path.relative_to(ROOT).as_posix(): path for path in ROOT.glob("tests/**/test_*.py")}
    users = {name for name, path in files.items() if USES_IT.search(path.read_text("utf-8"))}
    assert {scope_of(name) for name in users} == {GROUP}
    assert all(any(name.startswith(user) for name in files) for user in USERS)


def test_every_other_file_is_a_scope_of_its_own() -> None:
    assert (
        scope_of("tests/domain/accounts/test_wallet.py") == "tests/domain/accounts/test_wallet.py"
    )
