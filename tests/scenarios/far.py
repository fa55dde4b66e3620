"""The far sides of the system: who sells to it, as scripted servers with books of their own."""

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from domain.cause import utc_now
from tests.app.adapters.networks.bics.bics_lab import check_ledger, environment_of
from tests.app.adapters.networks.esimgo.esimgo_lab import check_sales
from tests.scenarios.system import ROOT
from tests.support.providers import bics, esimgo, telnyx
from tests.support.providers.bics import BicsServer
from tests.support.providers.esimgo import EsimGoServer
from tests.support.providers.lookups import check_charges
from tests.support.providers.server import FaultKind, ScriptedServer
from tests.support.providers.telnyx import ScriptedTelnyx, carrier
from tests.workers.link_checks import Books

SIMS = 4_000
SLOWEST_S = 8  # The latest effect under a fault.
LAGS = timedelta(seconds=1)
SETTLES_S = SLOWEST_S + 4  # After a call eSIM Go shows all that it has done, instead of 600 s.
PRICE = "2.00"
ESIMGO_ROUTES = ("order", "order", "orders", "bundles", "revoke", "esim")
BICS_ROUTES = ("log in", "sims", "create", "activate", "plans", "profile", "delink", "delete")
# A proxy that adds a plan twice has added two; nobody can tell: docs/providers/bics.md.
KINDS = [kind for kind in FaultKind if kind is not FaultKind.EFFECT_TWICE]
SHORTENED = f"""
from datetime import timedelta
from app.adapters.networks.esimgo.network import EsimGo
EsimGo.settles_after = timedelta(seconds={SETTLES_S})
"""


@dataclass
class Far:
    """A network and perhaps others, with the settings of whoever buys there."""

    network: str
    environment: Mapping[str, str]
    plan_ids: tuple[str, ...]
    servers: dict[str, Any]
    routes: list[tuple[str, str]]  # Those that fail, each with the name of its server.
    secrets: tuple[str, ...]
    sponsors: list[dict[str, str]] = field(default_factory=list)

    def trouble(self, chance: random.Random) -> None:
        """Let one of the next requests fail in one of the ways."""
        kind = chance.choice(KINDS)
        name, route = chance.choice(self.routes)
        server: ScriptedServer = self.servers[name]
        seconds = chance.choice([1, 4, SLOWEST_S])
        server.fault(kind, on=route, seconds=seconds, headers={"Retry-After": "1"})

    def heal(self) -> None:
        for each in self.servers.values():
            each.heal()

    @property
    def sold(self) -> int:
        """How many plans the network has sold."""
        server = self.servers[self.network]
        return len(server.bought if self.network == "bics" else server.sales)

    @property
    def iccids(self) -> list[str]:
        server = self.servers[self.network]
        return [*(server.sims if self.network == "bics" else server.esims)]

    def check(self, books: Books) -> None:
        """Compare the books of all of them with ours."""
        if self.network == "bics":
            check_ledger(self.servers["bics"], books)
        else:
            check_sales(self.servers["esimgo"], books)
            assert check_charges(self.servers["telnyx"], books) > 0


@contextmanager
def on_bics(_: Path) -> Iterator[Far]:
    with BicsServer(SIMS) as server:
        yield Far(
            network="bics",
            environment=environment_of(server) | {"NETWORK_PROVIDER": "simulated,bics"},
            plan_ids=("eu-1", "eu-2"),
            servers={"bics": server},
            routes=[("bics", each) for each in BICS_ROUTES],
            secrets=(bics.PASSWORD, "eyJ.token"),
            sponsors=[{"id": bics.SPONSORS[0], "name": "Atlas", "color": "#1F6FEB"}],
        )


@contextmanager
def on_esimgo(home: Path) -> Iterator[Far]:
    """Sell eSIM Go's bundles, and look numbers up at Telnyx.

    All processes of the Procfile load `sitecustomize`, which shortens the minutes of eSIM Go.
    """
    (home / "sitecustomize.py").write_text(SHORTENED)
    with EsimGoServer(utc_now) as server, ScriptedTelnyx() as lookups:
        server.shown_after = LAGS
        for name in (plan_ids := ("esim_1", "esim_2")):
            server.offer(name, PRICE)
        lookups.know("+447400123456", country_code="GB", carrier=carrier("mobile", "EE"))
        yield Far(
            network="esimgo",
            environment={
                **lookups.settings,
                "NETWORK_PROVIDER": "simulated,esimgo",
                "ESIMGO_URL": server.url,
                "ESIMGO_API_KEY": esimgo.KEY,
                "ESIMGO_REFUNDS": "true",
                "COST_PER_LOOKUP": "telnyx=0.0025",
                "LOOKUP_CACHE_TTLS_S": "telnyx=0",
                "PYTHONPATH": f"{home}:{ROOT}",
            },
            plan_ids=plan_ids,
            servers={"esimgo": server, "telnyx": lookups},
            routes=[("esimgo", each) for each in ESIMGO_ROUTES] + [("telnyx", "look up")] * 2,
            secrets=(esimgo.KEY, telnyx.KEY),
        )
