"""What the fault programme has seen, as the tables of docs/reliability.md.

What stands there from `BY_HAND` on is written by hand and stays.
"""

import os
import platform
import re
import statistics
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from textwrap import fill

from tests.house.system import ROOT

PAGE = ROOT / "docs" / "reliability.md"
BY_HAND = "\n## What happens when something fails\n"
KILLED = re.compile(r"(\w+) killed before and after (.+)")
WIDTH = 120
SOAK = os.environ.get("SOAK", "") == "1"
WRITES = SOAK or os.environ.get("RELIABILITY", "") == "1"

HEAD = """\
# Reliability

Written by the fault programme itself (`tests/faults`, {size}) on {day}: {cores} cores, Python
{python}. `make soak` writes it anew.

PostgreSQL, RabbitMQ, one `web`, and two each of `worker`, `dispatcher`, `projector` and `clock` run
as they do in production and are started again when they die. Partners look up numbers, create jobs
and links, change plans, suspend and pay in all the while; they send a request again, with its key,
until it is answered. Each fault is inflicted in the midst of that. The sandbox's own faults
(numbers and plans that fail) are part of the load throughout.

- **runs**: how often it was inflicted. A failpoint that no process comes to is an error.
- **lost**: replies of success that were no longer true afterwards; each was asked for again.
- **doubled**: money that was taken beyond what those replies promised.
- **recovery**: from the blow (for a server, its restart included) until all work that was open then
  had its outcome, and a lookup, a job and a link that were asked for later had theirs. Of several
  points the median of the slowest.

After the faults every job and link ends within 60 s, `audit verify` finds nothing, and the wallet
holds to the micro-unit what the replies add up to. Organizations with a past owe their monthly fees
meanwhile; each has paid for each month once.
"""


@dataclass
class Row:
    """One kind of fault. Recovery is in seconds, one figure per run."""

    fault: str
    recovery_s: list[float] = field(default_factory=list)
    moments: list[float] = field(default_factory=list)  # When it was inflicted, for blame.
    lost: int = 0
    doubled: int = 0

    def cells(self) -> Sequence[str]:
        times = self.recovery_s
        longest = f"{max(times):.1f}" if times else "–"
        median = f"{statistics.median(times):.1f}" if times else "–"
        return [
            self.fault,
            str(len(self.moments)),
            str(self.lost),
            str(self.doubled),
            longest,
            median,
        ]


@dataclass
class Report:
    """Rows by fault, in the order in which they were first inflicted, and figures beside them."""

    rows: dict[str, Row] = field(default_factory=dict)
    figures: list[tuple[str, str]] = field(default_factory=list)

    def row(self, fault: str) -> Row:
        return self.rows.setdefault(fault, Row(fault))

    def note(self, fault: str, began_at: float) -> None:
        """Add a run whose recovery ends now."""
        row = self.row(fault)
        row.moments.append(began_at)
        row.recovery_s.append(time.monotonic() - began_at)

    def blame(
        self, lost: Sequence[tuple[float, str]], doubled: Sequence[tuple[float, str]]
    ) -> None:
        """Count what is lost or doubled with the last fault before it was promised."""
        for found, name in ((lost, "lost"), (doubled, "doubled")):
            for moment, _ in found:
                row = self._last_before(moment)
                if row is not None:
                    setattr(row, name, getattr(row, name) + 1)

    def _last_before(self, moment: float) -> Row | None:
        known = [(at, row) for row in self.rows.values() for at in row.moments]
        before = [each for each in known if each[0] <= moment] or known
        return max(before, key=lambda each: each[0])[1] if before else None

    def text(self) -> str:
        return "\n".join([_head(), *self._table(), "", *self._beside()]) + "\n"

    def _table(self) -> list[str]:
        names = ["fault", "runs", "lost", "doubled", "recovery s, longest", "median"]
        by_role = self._by_role()
        cells = [row.cells() for row in self.rows.values() if not KILLED.fullmatch(row.fault)]
        cells += [_of_points(role, [*rows.values()]) for role, rows in by_role.items()]
        lines = ["| " + " | ".join(each) + " |" for each in (names, ["---"] * len(names), *cells)]
        told = (f"- `{role}`: {', '.join(sorted(rows))}" for role, rows in by_role.items())
        points = [fill(each, WIDTH, subsequent_indent="  ") for each in told]
        said = "The points, before and after each of which a process was killed:"
        return [*lines, "", said, "", *points]

    def _by_role(self) -> dict[str, dict[str, Row]]:
        """Return the rows of kills at failpoints, by process and failpoint."""
        found = defaultdict[str, dict[str, Row]](dict)
        for row in self.rows.values():
            if killed := KILLED.fullmatch(row.fault):
                found[killed[1]][killed[2]] = row
        return found

    def _beside(self) -> list[str]:
        return ["## Beside the table", "", "| | |", "|---|---|"] + [
            f"| {name} | {value} |" for name, value in self.figures
        ]

    def write(self, page: Path = PAGE) -> None:
        page.parent.mkdir(exist_ok=True)
        before = page.read_text("utf-8") if page.exists() else ""
        _, begins, by_hand = before.partition(BY_HAND)
        page.write_text(self.text() + begins + by_hand, "utf-8")


def _of_points(role: str, rows: Sequence[Row]) -> Sequence[str]:
    """Return the cells of the kills of a process at all of its failpoints."""
    times = [each.recovery_s for each in rows if each.recovery_s]
    return [
        f"{role} killed at {len(rows)} of the points below",
        str(sum(len(each.moments) for each in rows)),
        str(sum(each.lost for each in rows)),
        str(sum(each.doubled for each in rows)),
        f"{max(map(max, times)):.1f}" if times else "–",
        f"{max(map(statistics.median, times)):.1f}" if times else "–",
    ]


def _head() -> str:
    return HEAD.format(
        size="make soak" if SOAK else "a short run",
        day=datetime.now(UTC).date().isoformat(),
        cores=os.cpu_count(),
        python=platform.python_version(),
    )
