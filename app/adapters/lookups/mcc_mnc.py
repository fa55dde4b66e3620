"""Finds the MCC and MNC (ITU-T E.212) of a country and carrier name in a table."""

import csv
import datetime as dt
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Final, NamedTuple, TextIO
from unicodedata import normalize

import msgspec

# Written by hand and compared with two public lists, `mcc-mnc-list` (npm, 1.1.11 of 2024-12-13) and
# `mobile-broadband-provider-info` (Debian, 2023-04-16). `source` names the list that has a code and
# `date` its issue; a code that is in no list is marked as common knowledge. The rule:
# - Each code that a list calls operating stands here under every brand that uses it; a code that is
#   shut down or withdrawn does not.
# - A name that means two companies, such as Vodafone/Truphone, stands at the codes of both.
# - Where a list gives a brand another code, or its code to another brand, the brand has one more
#   row, without `mnc`, whose source is that list. Former names of a brand are no contradiction.
SHIPPED: Final = Path(__file__).parent / "data" / "mcc_mnc.csv"


Word = Annotated[str, msgspec.Meta(min_length=1)]


class _Row(msgspec.Struct, forbid_unknown_fields=True):
    """A row of a table; `aliases` are separated by `|`."""

    country_code: Annotated[str, msgspec.Meta(pattern=r"^[A-Z]{2}\Z")]
    mcc: Annotated[str, msgspec.Meta(pattern=r"^[0-9]{3}\Z")]
    mnc: Annotated[str, msgspec.Meta(pattern=r"^([0-9]{2,3})?\Z")]
    network: Word
    aliases: str
    source: Word
    date: dt.date


MORE: Final = "an 8th"
COLUMNS: Final = _Row.__struct_fields__


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
        named: dict[tuple[str, str], list[Network]] = {}
        for network in networks:
            for name in {_fold(name) for name in network.names}:
                named.setdefault((network.country_code, name), []).append(network)
        self._codes = {key: _certain(candidates) for key, candidates in named.items()}

    def code_of(self, country_code: str, carrier_name: str) -> NetworkCode:
        """Return what all networks of that country and name share; case does not matter."""
        return self._codes.get((country_code, _fold(carrier_name)), UNKNOWN)


def load_networks(path: Path | None) -> Networks:
    """Read the table at `path`, or the shipped one for None.

    The file is UTF-8 CSV with the header `COLUMNS`. Raises ValueError, one line that names file,
    line and column, for anything else.
    """
    chosen = path or SHIPPED
    try:
        # Spreadsheet programs write a byte order mark.
        with chosen.open(encoding="utf-8-sig", newline="") as lines:
            return Networks(_read(lines, chosen.name))
    except (OSError, UnicodeDecodeError) as error:
        message = f"{chosen.name}: cannot be read as a UTF-8 file: {type(error).__name__}"
        raise ValueError(message) from None


def _read(lines: TextIO, file: str) -> Iterator[Network]:
    reader = csv.DictReader(lines, restkey=MORE, strict=True)
    seen: set[tuple[str, ...]] = set()
    try:
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise ValueError(f"{file} line 1: the columns must be {','.join(COLUMNS)}")
        for values in reader:
            row = msgspec.convert(
                {k: v.strip() if k != MORE and v else v for k, v in values.items()}, _Row
            )
            names = (row.network, *(name for name in row.aliases.split("|") if name.strip()))
            network = Network(row.country_code, row.mcc, row.mnc, names)
            code = (*network[:3], "" if row.mnc else row.network)
            if code in seen:
                message = f"{file} line {reader.line_num}: {row.mcc}-{row.mnc} stands here twice"
                raise ValueError(message)
            seen.add(code)
            yield network
    except (csv.Error, msgspec.ValidationError) as error:
        raise ValueError(f"{file} line {reader.reader.line_num}: {error}") from None


def _certain(candidates: list[Network]) -> NetworkCode:
    mccs = {network.mcc for network in candidates}
    if len(mccs) > 1:
        return UNKNOWN
    mnc = candidates[0].mnc if len(candidates) == 1 else None
    return NetworkCode(mccs.pop(), mnc or None)


def _fold(name: str) -> str:
    return " ".join(normalize("NFC", name).casefold().split())
