"""Finds the MCC and MNC (ITU-T E.212) of a country and carrier name in a table."""

import csv
import re
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import Final, NamedTuple, TextIO
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
COLUMNS: Final = ("country_code", "mcc", "mnc", "network", "aliases", "source", "date")
# Over ten times the codes of the whole world; a longer file must be something else.
ROWS_MAX: Final = 50_000

_COUNTRY_CODE = re.compile(r"[A-Z]{2}")
_MCC = re.compile(r"[0-9]{3}")
_MNC = re.compile(r"([0-9]{2,3})?")


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
        rows = tuple(networks)
        self.countries = frozenset(row.country_code for row in rows)
        self._count = len(rows)
        self._codes = {key: _certain(candidates) for key, candidates in _by_name(rows).items()}

    def __len__(self) -> int:
        return self._count

    def code_of(self, country_code: str, carrier_name: str) -> NetworkCode:
        """Return what all networks of that country and name share; case does not matter."""
        return self._codes.get((country_code, _fold(carrier_name)), UNKNOWN)


def load_networks(path: Path | None) -> Networks:
    """Read the table at `path`, or the shipped one for None.

    The file is UTF-8 CSV with the header `COLUMNS`; `aliases` are separated by `|`; `date` is
    ISO 8601. Raises ValueError, one line that names file, line and column, for anything else.
    """
    chosen = path or SHIPPED
    try:
        # Spreadsheet programs write a byte order mark; `utf-8-sig` accepts files with and without
        # it.

        with chosen.open(encoding="utf-8-sig", newline="") as lines:
            return Networks(_read(lines, chosen.name))
    except (OSError, UnicodeDecodeError) as error:
        message = f"{chosen.name}: cannot be read as a UTF-8 file: {type(error).__name__}"
        raise ValueError(message) from None


def _read(lines: TextIO, file: str) -> Iterator[Network]:
    reader = csv.reader(lines, strict=True)
    seen: set[tuple[str, ...]] = set()
    try:
        if tuple(next(reader, [])) != COLUMNS:
            raise ValueError(f"{file} line 1: the columns must be {','.join(COLUMNS)}")
        # Spreadsheet programs often end a file with empty lines.
        for values in filter(None, reader):
            network = _parse(values, f"{file} line {reader.line_num}")
            code = (*network[:3], network.names[0] if not network.mnc else "")
            if code in seen or len(seen) == ROWS_MAX:
                raise ValueError(
                    f"{file} line {reader.line_num}, column mnc: "
                    f"{network.mcc}-{network.mnc} stands here twice, or past row {ROWS_MAX}"
                )
            seen.add(code)
            yield network
    except csv.Error:
        raise ValueError(f"{file} line {reader.line_num}: not a row of a CSV file") from None


def _parse(values: list[str], where: str) -> Network:
    if len(values) != len(COLUMNS):
        raise ValueError(f"{where}: {len(values)} columns instead of {len(COLUMNS)}")
    row = dict(zip(COLUMNS, (value.strip() for value in values), strict=True))
    for column, fits, what in (
        ("country_code", _COUNTRY_CODE.fullmatch(row["country_code"]), "two capital letters"),
        ("mcc", _MCC.fullmatch(row["mcc"]), "3 digits"),
        ("mnc", _MNC.fullmatch(row["mnc"]), "2 or 3 digits, or empty"),
        ("network", row["network"], "a name"),
        ("source", row["source"], "the list that states the code"),
        ("date", _is_date(row["date"]), "a date such as 2026-11-21"),
    ):
        if not fits:
            raise ValueError(f"{where}, column {column}: must be {what}, not {row[column][:40]!r}")
    names = (row["network"], *(name for name in row["aliases"].split("|") if name.strip()))
    return Network(row["country_code"], row["mcc"], row["mnc"], names)


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


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
