"""The real networks that a device of the simulator is served by, chosen by seed."""

import csv
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

from app.providers.simulated_network.identifiers import Identifiers
from domain.links.network import ServingNetwork

# One network a country, by the codes of ITU-T E.212. Those of the table of carriers are taken from
# it; the others are in countries where no carrier's codes are certain. Where the sample plans work
# it is an operator of theirs.
SHIPPED: Final = Path(__file__).parents[1] / "data" / "serving_networks.csv"


def _read() -> dict[str, ServingNetwork]:
    with SHIPPED.open(encoding="utf-8", newline="") as lines:
        return {row["country_code"]: ServingNetwork(**row) for row in csv.DictReader(lines)}


NETWORKS: Final = _read()


def network_for(
    identifiers: Identifiers, iccid: str, covered: Iterable[Collection[str]]
) -> ServingNetwork | None:
    """Return what serves the device of an eSIM; None where no plan works.

    `covered` are the countries of the plans that it has used, in their order. It travels only when
    the next plan does not work where it is. A plan without countries works everywhere.
    """
    here = None
    for countries in covered:
        known = [code for code in countries or NETWORKS if code in NETWORKS]
        if here not in known:
            # Each country has a number of its own: another one in the list changes nothing else.
            here = max(
                known, key=lambda code: identifiers.roll("country", f"{iccid} {code}"), default=None
            )
    return None if here is None else NETWORKS[here]
