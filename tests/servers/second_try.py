"""The second try of what failed in `make test`: it tells what is flaky from what is broken.

    python -m tests.servers.second_try COMMAND…     runs `COMMAND… TEST…` for the tests that failed

pytest writes down how its run ended (`Outcome`). A second try is for tests that need a server, if
pytest ended with 1 and as many tests ran as were collected; anything else stays failed. A test that
passes now is mended, or named in tests/flaky.txt while that is under way: `YYYY-MM-DD TEST`, for
at most 14 days from that date.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

# From the root of the repository, where make runs both tries.
RECORD = Path(".pytest_cache/outcome.json")
FLAKY = Path("tests/flaky.txt")
NEEDS_SERVER = ("needs a server", True)  # A property of the reports of such a test.
FLAKY_FOR = timedelta(days=14)
FAILED = 1  # The exit status of pytest when tests have failed, and nothing else.


class Outcome:
    """Writes down how a run ended; of a run that does not end there is no record."""

    def __init__(self) -> None:
        self._collected: set[str] = set()
        self._failed: dict[str, bool] = {}
        self._ran: set[str] = set()
        RECORD.unlink(missing_ok=True)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._collected.update(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        self._collected.update(ids)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed[report.nodeid] = NEEDS_SERVER in report.user_properties
        if report.when == "teardown":  # The last of a test, whatever became of it.
            self._ran.add(report.nodeid)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        RECORD.parent.mkdir(exist_ok=True)
        ended = {
            "status": int(exitstatus),
            "is_whole": bool(self._collected) and self._collected == self._ran,
            "failed": self._failed,
        }
        RECORD.write_text(json.dumps(ended), "utf-8")


def refusal(ended: dict[str, Any] | None) -> str | None:
    """Return why there is no second try after a run that ended so, or None."""
    if ended is None:
        return "pytest has not come to its end"
    if ended["status"] != FAILED:
        return f"pytest ended with {ended['status']}, which is more than a failed test"
    if not ended["is_whole"]:
        return "not every test ran that was collected"
    if alone := [name for name, needs_server in ended["failed"].items() if not needs_server]:
        return f"{', '.join(alone)} needs no server, so it lost no race against one"
    return None


def overdue(passed: Sequence[str], flaky: str, today: date) -> list[str]:
    """Return those that pass only at the second try and may not."""
    lines = [line.split(maxsplit=1) for line in flaky.splitlines()]
    named = {line[1]: date.fromisoformat(line[0]) for line in lines if line and line[0] != "#"}
    oldest = today - FLAKY_FOR
    return [each for each in passed if not oldest <= named.get(each, date.min) <= today]


def _read() -> dict[str, Any] | None:
    return json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else None


def main(command: Sequence[str]) -> int:
    ended = _read()
    why = refusal(ended)
    if why is not None or ended is None:
        sys.stderr.write(f"== No second try: {why}.\n")
        return 1
    tests = [*ended["failed"]]
    sys.stderr.write("== The tests that failed, once more, alone.\n")
    sys.stderr.flush()
    status = subprocess.run([*command, *tests], check=False).returncode
    again = _read()
    if status or again is None or again["status"] or not again["is_whole"]:
        return 1
    late = overdue(tests, FLAKY.read_text("utf-8"), datetime.now(UTC).date())
    for each in late:
        sys.stderr.write(f"== {each} passes only at the second try: mend it.\n")
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
