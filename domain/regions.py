"""The six regions of the catalogue, and every country: its name and the region it belongs to.

Countries are the 249 codes of ISO 3166-1 alpha-2 and XK. Their regions follow the standard M49 of
the United Nations Statistics Division: America is split as M49 splits it, into Northern America
(NA) and Latin America and the Caribbean (LA). What surprises in it, and what it leaves open:

- RU is Eastern Europe as a whole, so EU, its Asian part included.
- CY, TR, GE, AM and AZ are Western Asia, so AS, whatever European bodies they belong to; KZ is
  Central Asia. A plan for "Europe" that includes one of them spans two regions.
- EG is Northern Africa, so AF, although Sinai lies in Asia.
- TL is South-eastern Asia, so AS, like ID beside it.
- MX is Central America, so LA. NA is US, CA, BM, GL and PM and nothing else.
- PR and VI are the Caribbean, so LA, while the United States is NA.
- UM is Micronesia, so OC: all of these islands but one, Navassa, lie in the Pacific.
- CC, CX, HM and NF are counted with Australia, so OC, although the first three lie in the Indian
  Ocean.
- IO and TF are Eastern Africa, so AF; RE, YT and SH are Africa as well.
- BV and GS are South America, so LA, although they lie far out in the South Atlantic.
- SJ is Northern Europe, so EU.
- HK and MO have codes of their own in M49, in Eastern Asia, so AS.
- TW has no line of its own in M49; it lies in Eastern Asia: AS.
- AQ has a code in M49 but no region, and each country needs one here. It is OC, because the calling
  code listed for it, +672, is that of Australia's external territories, and those are OC.
- XK (Kosovo) is not in ISO 3166-1: it is a code that users may assign, which the European Union
  and CLDR assign so. M49 has none; its neighbours are Southern Europe: EU.
"""

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec


class Region(msgspec.Struct, frozen=True):
    """A part of the world and its countries, sorted ISO 3166-1 alpha-2 codes."""

    code: str
    label: str
    countries: list[str]


# The names are in common use, mostly those of CLDR without its abbreviations. Where a state
# wants another English name (Türkiye, Côte d'Ivoire, Eswatini, Cabo Verde), that name is used.
# `m49` is the number of the subregion, such as 151, Eastern Europe; it is for readers alone.
# A code that ISO withdraws stays in the file: plans that carry it stand in the log for ever.
_FILE: Final = Path(__file__).parent / "data" / "countries.csv"


def _read() -> dict[str, dict[str, str]]:
    with _FILE.open(encoding="utf-8", newline="") as lines:
        return {row["code"]: row for row in csv.DictReader(lines)}


_COUNTRIES: Final = _read()
_LABELS: Final = {
    "EU": "Europe",
    "AF": "Africa",
    "AS": "Asia",
    "LA": "Latin America and the Caribbean",
    "NA": "North America",
    "OC": "Oceania",
}

REGIONS: Final[Mapping[str, Region]] = MappingProxyType(
    {
        region: Region(
            region, label, [c for c, row in _COUNTRIES.items() if row["region"] == region]
        )
        for region, label in _LABELS.items()
    }
)


def is_country(code: str) -> bool:
    """Tell whether this is one of the codes, in capital letters."""
    return code in _COUNTRIES


def code_meant(text: str) -> str | None:
    """Return the code that a text probably means: other codes in use (UK, EL), or a name."""
    wanted = text.strip().casefold()
    known = {row["name"].casefold(): code for code, row in _COUNTRIES.items()}
    return {"uk": "GB", "el": "GR"}.get(wanted) or known.get(wanted)


def countries_named(part: str) -> list[str]:
    """Return the codes of the countries whose English name holds a text, in any case."""
    part = part.casefold()
    return [code for code, row in _COUNTRIES.items() if part in row["name"].casefold()]


def country_name(code: str) -> str:
    """Return the short English name of a country. Raises KeyError where `is_country` is false."""
    return _COUNTRIES[code]["name"]


def regions_of(codes: Iterable[str]) -> list[str]:
    """Return the regions of these countries, each once, in the order of `REGIONS`.

    Raises KeyError where `is_country` is false.
    """
    found = {_COUNTRIES[code]["region"] for code in codes}
    return [region for region in REGIONS if region in found]
