"""The six regions of the catalogue, and the one that each country belongs to.

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

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

import msgspec


class Region(msgspec.Struct, frozen=True):
    """A part of the world and its countries, sorted ISO 3166-1 alpha-2 codes."""

    code: str
    label: str
    countries: list[str]


def _region(code: str, label: str, *countries: str) -> Region:
    return Region(code, label, sorted(" ".join(countries).split()))


# A code that ISO withdraws stays here: plans that carry it stand in the log for ever.
_IN_ORDER: Final = (
    _region(
        "EU",
        "Europe",
        "BG BY CZ HU MD PL RO RU SK UA",  # 151 Eastern Europe
        "AX DK EE FI FO GB GG IE IM IS JE LT LV NO SE SJ",  # 154 Northern Europe
        "AD AL BA ES GI GR HR IT ME MK MT PT RS SI SM VA",  # 039 Southern Europe
        "AT BE CH DE FR LI LU MC NL",  # 155 Western Europe
        "XK",  # not in M49
    ),
    _region(
        "AF",
        "Africa",
        "DZ EG EH LY MA SD TN",  # 015 Northern Africa
        "BI DJ ER ET IO KE KM MG MU MW MZ RE RW SC SO SS TF TZ UG YT ZM ZW",  # 014 Eastern Africa
        "AO CD CF CG CM GA GQ ST TD",  # 017 Middle Africa
        "BW LS NA SZ ZA",  # 018 Southern Africa
        "BF BJ CI CV GH GM GN GW LR ML MR NE NG SH SL SN TG",  # 011 Western Africa
    ),
    _region(
        "AS",
        "Asia",
        "KG KZ TJ TM UZ",  # 143 Central Asia
        "CN HK JP KP KR MN MO TW",  # 030 Eastern Asia
        "BN ID KH LA MM MY PH SG TH TL VN",  # 035 South-eastern Asia
        "AF BD BT IN IR LK MV NP PK",  # 034 Southern Asia
        "AE AM AZ BH CY GE IL IQ JO KW LB OM PS QA SA SY TR YE",  # 145 Western Asia
    ),
    _region(
        "LA",
        "Latin America and the Caribbean",
        "AG AI AW BB BL BQ BS CU CW DM DO GD GP HT JM",  # 029 Caribbean
        "KN KY LC MF MQ MS PR SX TC TT VC VG VI",  # 029 Caribbean
        "BZ CR GT HN MX NI PA SV",  # 013 Central America
        "AR BO BR BV CL CO EC FK GF GS GY PE PY SR UY VE",  # 005 South America
    ),
    _region(
        "NA",
        "North America",
        "BM CA GL PM US",  # 021 Northern America
    ),
    _region(
        "OC",
        "Oceania",
        "AU CC CX HM NF NZ",  # 053 Australia and New Zealand
        "FJ NC PG SB VU",  # 054 Melanesia
        "FM GU KI MH MP NR PW UM",  # 057 Micronesia
        "AS CK NU PF PN TK TO TV WF WS",  # 061 Polynesia
        "AQ",  # in M49, but in no region
    ),
)

REGIONS: Final[Mapping[str, Region]] = MappingProxyType(
    {region.code: region for region in _IN_ORDER}
)

_REGION_OF: Final = {country: region.code for region in _IN_ORDER for country in region.countries}


def is_country(code: str) -> bool:
    """Tell whether this is one of the codes, in capital letters."""
    return code in _REGION_OF


def region_of(country_code: str) -> str:
    """Return the code of a country's region. Raises KeyError for what `is_country` denies."""
    return _REGION_OF[country_code]


def regions_of(codes: Iterable[str]) -> list[str]:
    """Return the regions of these countries, each once, in the order of `REGIONS`."""
    found = {region_of(code) for code in codes}
    return [region for region in REGIONS if region in found]
