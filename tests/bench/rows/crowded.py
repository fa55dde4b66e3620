"""Lookups of a quiet organization beside a crowd: of one other, or of strangers.

Beside them stands what they take beside as many connections on `/livez`, in the same run: a crowd
that asks for nothing takes the loop all the same.
"""

from collections.abc import Iterator
from contextlib import closing
from threading import Event

from tests.bench.installation import Connection
from tests.bench.load import Load, Outcome, beside, outcome_of
from tests.bench.row import Aim, Row
from tests.bench.rows.lookups import Installation, installation
from tests.bench.side import told
from tests.plan_files import import_plans, plan, stored

CROWD, STRANGERS = 100, 1_100
LINKS, PLANS = 60, 150
DURATION_S = 5.0
BEGINS_S = 1.5  # Until a crowd has connected.
P50_MS, P99_MS = 60.0, 500.0


def measure() -> Iterator[Row]:
    with installation() as made:
        import_plans(made.container, *(plan(f"Country {each}") for each in range(PLANS)))
        with made.ours() as ours:
            quiet = made.quiet(ours.port, DURATION_S)
            told(f"alone: {_times(outcome_of(quiet))}")
            idle = _beside("/livez", quiet, made.crowd(CROWD, ours.port, "/livez"))
            for name, (path, accept) in _dearest(made, ours.port).items():
                crowd = made.crowd(CROWD, ours.port, path, accept=accept)
                yield from _rows(f"{CROWD} on {name}", quiet, crowd, idle)
            lookups = made.crowd(CROWD, ours.port, quiet.paths[0], method="POST")
            yield from _rows(f"{CROWD} on lookups", quiet, lookups, idle, Aim(ratio_max=3))
            idle = _beside("/livez", quiet, made.strangers(STRANGERS, ours.port, "/livez"))
            for path in ("/readyz", "/nowhere", "/v1/wallet", "/number-lookup?phone_number=1"):
                crowd = made.strangers(STRANGERS, ours.port, path)
                yield from _rows(f"{STRANGERS:,} strangers on {path}", quiet, crowd, idle)
            crowd = made.strangers(STRANGERS, ours.port, "/v1/wallet", forged=True)
            yield from _rows(f"{STRANGERS:,} with forged tokens", quiet, crowd, idle)


def _rows(
    crowd: str, quiet: Load, load: Load, idle: Outcome, aim: Aim | None = None
) -> Iterator[Row]:
    found, name = _beside(crowd, quiet, load), f"a lookup beside {crowd}"
    p50, p99 = max(P50_MS, 2 * idle.p50_ms), max(P99_MS, 3 * idle.p99_ms)
    yield Row(f"{name}, p50", found.p50_ms, idle.p50_ms, "ms", aim or Aim(ours_max=p50))
    yield Row(f"{name}, p99", found.p99_ms, idle.p99_ms, "ms", aim or Aim(ours_max=p99))


def _beside(crowd: str, quiet: Load, load: Load) -> Outcome:
    """Return what the quiet ones get beside a crowd; any answer but 200 ends the measurement."""
    with beside(load):
        Event().wait(BEGINS_S)
        found = outcome_of(quiet)
    told(f"beside {len(load.tokens)} on {crowd}: {_times(found)}")
    return found


def _times(found: Outcome) -> str:
    return f"p50 {found.p50_ms:.0f} ms, p99 {found.p99_ms:.0f} ms of {found.answered}"


def _dearest(made: Installation, port: int) -> dict[str, tuple[str, str]]:
    """Return the operations that cost most, once there is something to read: path and type."""
    plan_id = str(stored(made.container, "Country 0").id)
    with closing(Connection(port, made.token_of_crowd)) as connection:
        for number in range(LINKS):
            body = {"plan_id": plan_id, "name": f"Device {number}"}
            link = connection.ask("POST", "/v1/links", body)
    return {
        "plans": ("/v1/plans?per_page=100", "*/*"),
        "qr": (f"/v1/links/{link['id']}/qr?size=2048", "image/png"),
        "usage": ("/v1/usage", "*/*"),
        "search": ("/v1/links?search=8", "*/*"),
        "events": ("/v1/events?limit=100", "*/*"),
    }
