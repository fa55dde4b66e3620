"""What belongs together is run by one process of `make test`."""

import re
from pathlib import Path

from tests.servers.scheduling import BROKER_GROUP, BROKER_USERS, Shares

ROOT = Path(__file__).parents[2]
USES_BROKER = re.compile(r"\bfresh_url\(|\bbroker_url: str\b")


def share_of(nodeid: str) -> str:
    scheduler = object.__new__(Shares)
    return scheduler._split_scope(nodeid)  # What it overrides.


def test_every_test_that_uses_rabbitmq_is_named() -> None:
    files = {path.relative_to(ROOT).as_posix(): path for path in ROOT.glob("tests/**/test_*.py")}
    users = {name for name, path in files.items() if USES_BROKER.search(path.read_text("utf-8"))}
    assert {share_of(f"{name}::test_it[a/b::c]") for name in users} == {BROKER_GROUP}
    assert all(any(name.startswith(user) for name in files) for user in BROKER_USERS)
