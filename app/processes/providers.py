"""The configured providers: which work now, our balance there, and which were tried for real."""

import logging
import re
import time
from collections.abc import Callable, Sequence
from itertools import islice
from math import nan
from pathlib import Path
from typing import Any

import msgspec

from app.bootstrap.container import Container
from domain.catalogue.commands import PLANS_MAX
from domain.catalogue.supplied import Supplied
from domain.cost import ProviderBalance
from domain.errors import NotPossible, refuse
from domain.links.network import EsimNetwork
from domain.lookups.ports import LookupProvider
from domain.money import format_amount
from domain.provider_errors import ProviderError, problem_of

ANSWER_S = 5.0  # Of one provider; they are asked one after the other.
PAGE_S = 30.0  # For each call for a catalogue, which has many pages.
NEVER_RUN = "never run against the provider"
# Kept with the code, because they say which adapters were tried against the real provider.
TRANSCRIPTS = Path(__file__).parents[2] / "docs" / "providers" / "transcripts"
DATED = re.compile(r"-(\d{4}-\d{2}-\d{2})\.json")

logger = logging.getLogger(__name__)


class Checked(msgspec.Struct, frozen=True):
    """One provider; `balance` is None if the provider tells none, `problem` if all is well."""

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
    """Ask each configured provider, or only `name`; this changes nothing and costs nothing."""
    container.gate.refuse_held()
    chosen = [each for each in _configured(container) if name in {None, each.name}]
    return [_check(container, each, transcripts) for each in chosen]


def update_balances(container: Container) -> None:
    """Show each balance in the metrics; NaN if it cannot be read, so that no alert fires."""
    metrics = container.metrics
    for provider in (each for each in _configured(container) if each.remote):
        try:
            left = provider.balance(timeout_s=ANSWER_S)
        except Exception as error:  # noqa: BLE001  # The other providers are still asked.
            logger.info("the balance of %s cannot be read: %s", provider.name, problem_of(error))
            metrics.balance(provider.name, nan)
        else:
            metrics.balance(provider.name, nan if left is None else left.amount_micros / 1_000_000)


def supplied_by(network: EsimNetwork) -> Sequence[Supplied]:
    """Return the catalogue of a network; NotPossible if it cannot be read, or is too long."""
    try:
        supplied = [*islice(network.supplied(timeout_s=PAGE_S), PLANS_MAX + 1)]
    except ProviderError as error:
        message = f"the network {network.name} does not give its catalogue: {problem_of(error)}"
        raise NotPossible(message) from error
    if len(supplied) > PLANS_MAX:
        refuse(f"the network {network.name} lists more than {PLANS_MAX} plans")
    return supplied


def _configured(container: Container) -> list[LookupProvider | EsimNetwork]:
    return [*container.lookups, *map(container.networks.of, container.networks.names)]


def _check(
    container: Container, provider: LookupProvider | EsimNetwork, transcripts: Path
) -> Checked:
    name, is_lookup = provider.name, provider in container.lookups
    probe: Callable[..., None] = provider.probe
    started_s, problem, balance = time.monotonic(), None, None
    try:
        probe(**({} if is_lookup else {"timeout_s": ANSWER_S}))
    except Exception as error:  # noqa: BLE001  # A broken provider must not hide the others.
        problem = problem_of(error)
    latency_ms = round((time.monotonic() - started_s) * 1000, 1)
    if problem is None:
        try:
            balance = _text(provider.balance(timeout_s=ANSWER_S))
        except Exception as error:  # noqa: BLE001  # As above.
            problem = f"its balance: {problem_of(error)}"
    tried, unreadable = trials(name, transcripts) if provider.remote else ("in this process", None)
    drained = name in container.gate.refresh_drains()
    gauge = "lookup_provider_up" if is_lookup else "network_provider_up"
    is_closed = container.observed.providers_up()[gauge][name]
    return Checked(
        provider=name,
        kind="lookups" if is_lookup else "network",
        up=problem is None,
        latency_ms=latency_ms,
        balance=balance,
        circuit="closed" if is_closed or drained else "open",
        drained=drained,
        verified=tried,
        problem=problem or unreadable,
    )


def trials(name: str, transcripts: Path) -> tuple[str, str | None]:
    """Return when a provider was last tried with success, and a problem with a transcript."""
    dates, problem = [], None
    for path in sorted(transcripts.glob(f"{name}-*.json")):
        if (found := DATED.search(path.name)) is None:
            continue
        try:
            if msgspec.json.decode(path.read_bytes(), type=dict[str, Any])["ok"]:
                dates.append(found[1])
        except (OSError, KeyError, msgspec.MsgspecError):  # It is incomplete, or no transcript.
            problem = f"its transcript {path.name} cannot be read"
    return f"on {max(dates)}" if dates else NEVER_RUN, problem


def _text(balance: ProviderBalance | None) -> str | None:
    if balance is None:
        return None
    return f"{format_amount(balance.amount_micros)} {balance.currency}"
