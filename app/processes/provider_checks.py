"""What works at the configured providers now, and which were ever tried for real."""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from app.bootstrap.container import Container
from app.processes.balances import balance_of
from domain.cost import ProviderBalance
from domain.money import format_amount
from domain.provider_errors import problem_of

ANSWER_S = 5.0
NEVER_RUN = "never run against the provider"
# Kept with the code, because they say which adapters have met the real thing.
TRANSCRIPTS = Path(__file__).parents[2] / "docs" / "providers" / "transcripts"
DATED = re.compile(r"-(\d{4}-\d{2}-\d{2})\.json")


class Transcript(msgspec.Struct):
    """What `providers smoke` writes, as far as it is read here."""

    ok: bool


@dataclass(frozen=True, slots=True)
class Checked:
    """One provider; `balance` is None if it tells none, `problem` if there is none."""

    provider: str
    kind: str
    up: bool
    latency_ms: float
    balance: str | None
    circuit: str
    drained: bool
    verified: str
    problem: str | None


def check(
    container: Container, name: str | None = None, transcripts: Path = TRANSCRIPTS
) -> list[Checked]:
    """Ask each configured provider, or the one that is named; changes nothing and costs nothing."""
    asked = [each for each in _configured(container) if name in {None, each[1]}]
    return [
        _check(container, kind, of, remote=remote, probe=probe, transcripts=transcripts)
        for kind, of, remote, probe in asked
    ]


def _configured(container: Container) -> Iterator[tuple[str, str, bool, Callable[[], None]]]:
    for each in container.lookups:
        yield "lookups", each.name, each.remote, each.probe
    for name in container.networks.names:
        network = container.networks.of(name)
        yield "network", name, network.remote, _probe(network.probe)


def _probe(probe: Callable[..., None]) -> Callable[[], None]:
    return lambda: probe(timeout_s=ANSWER_S)


def _check(  # noqa: PLR0913  # What is known of a provider.
    container: Container,
    kind: str,
    name: str,
    *,
    remote: bool,
    probe: Callable[[], None],
    transcripts: Path,
) -> Checked:
    began_s, problem, balance = time.monotonic(), None, None
    try:
        probe()
    except Exception as error:  # noqa: BLE001  # One that is broken hides nothing of the others.
        problem = problem_of(error)
    latency_ms = round((time.monotonic() - began_s) * 1000, 1)
    if problem is None:
        try:
            balance = _text(balance_of(container, name))
        except Exception as error:  # noqa: BLE001  # As above.
            problem = f"its balance: {problem_of(error)}"
    tried, unreadable = _trials(name, transcripts) if remote else ("in this process", None)
    drained = name in container.drains.look()
    gauge = "lookup_provider_up" if kind == "lookups" else "network_provider_up"
    is_closed = container.providers_up()[gauge, name]
    return Checked(
        provider=name,
        kind=kind,
        up=problem is None,
        latency_ms=latency_ms,
        balance=balance,
        circuit="closed" if is_closed or drained else "open",
        drained=drained,
        verified=tried,
        problem=problem or unreadable,
    )


def verified(name: str, transcripts: Path = TRANSCRIPTS) -> str:
    """Say when a provider was last tried for real: by the newest transcript of a success."""
    return _trials(name, transcripts)[0]


def _trials(name: str, transcripts: Path) -> tuple[str, str | None]:
    """Return when a provider was tried, and which transcript cannot be read, if any."""
    dates, problem = [], None
    for path in sorted(transcripts.glob(f"{name}-*.json")):
        if (found := DATED.search(path.name)) is None:
            continue
        try:
            if msgspec.json.decode(path.read_bytes(), type=Transcript).ok:
                dates.append(found[1])
        except (OSError, msgspec.MsgspecError):  # Half a file, or not one of ours.
            problem = f"its transcript {path.name} cannot be read"
    return f"on {max(dates)}" if dates else NEVER_RUN, problem


def _text(balance: ProviderBalance | None) -> str | None:
    if balance is None:
        return None
    sign = "-" if balance.amount_micros < 0 else ""
    return f"{sign}{format_amount(abs(balance.amount_micros))} {balance.currency}"
