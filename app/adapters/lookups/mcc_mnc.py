"""Finds the MCC and MNC (ITU-T E.212) of a country and carrier name in a table."""

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple
from unicodedata import normalize

# Written by hand and compared with two public lists, `mcc-mnc-list` (npm, 1.1.11 of 2024-12-13) and
# `mobile-broadband-provider-info` (Debian, 2023-04-16). `source` names the list that has a code and
# `date` its issue; a code that is in no list is marked as common knowledge. The rule:
# - Each code that a list calls operating stands here under every brand that uses it; a code that is
#   shut down or withdrawn does not.
# - A name that means two companies, such as Vodafone/Truphone, stands at the codes of both.
# - Where a list gives a brand another code, or its code to another brand, the brand has one more
#   row, without `mnc`, whose source is that list. Former names of a brand are no contradiction.
SHIPPED: Final = Path(__file__).parent / "data" / "mcc_mnc.csv"


class Network(NamedTuple):
    """One operating network: a PLMN code of a country and every name of its brand.

    `mnc` is empty if it is not certain.
    """

    country_code: str
    mcc: str
    mnc: str
    names: tuple[str, ...]


class NetworkCode(NamedTuple):
    """The certain parts of a code; `mnc` is never given without `mcc`."""

    mcc: str | None
    mnc: str | None


UNKNOWN: Final = NetworkCode(None, None)


class Networks:
    """The operating networks of the world, to be found by country and carrier name.

    The table has every code of a brand, or none. So `mnc` is certain when one network has the name,
    and `mcc` when all networks with the name share it.
    """

    def __init__(self, networks: Iterable[Network]) -> None:
        named = _by_name(networks)
        self._codes = {key: _certain(candidates) for key, candidates in named.items()}

    def code_of(self, country_code: str, carrier_name: str) -> NetworkCode:
        """Return what all networks of that country and name share; case does not matter."""
        return self._codes.get((country_code, _fold(carrier_name)), UNKNOWN)


def load_networks() -> Networks:
    """Read the shipped table; tests check each of its rows."""
    with SHIPPED.open(encoding="utf-8", newline="") as lines:
        return Networks(
            Network(
                row["country_code"],
                row["mcc"],
                row["mnc"],
                (row["network"], *filter(None, row["aliases"].split("|"))),
            )
            for row in csv.DictReader(lines)
        )


def _by_name(networks: Iterable[Network]) -> dict[tuple[str, str], list[Network]]:
    found: dict[tuple[str, str], list[Network]] = {}
    for network in networks:
        for name in {_fold(name) for name in network.names}:
            found.setdefault((network.country_code, name), []).append(network)
    return found


def _certain(candidates: list[Network]) -> NetworkCode:
    mccs = {network.mcc for network in candidates}
    if len(mccs) > 1:
        return UNKNOWN
    mnc = candidates[0].mnc if len(candidates) == 1 else None
    return NetworkCode(mccs.pop(), mnc or None)


def _fold(name: str) -> str:
    return " ".join(normalize("NFC", name).casefold().split())
