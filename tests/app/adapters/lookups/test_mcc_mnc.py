"""The table of networks: when a code is certain, and what each of its rows holds."""

import re
from datetime import date

import phonenumbers
import pytest
from phonenumbers.carrierdata import CARRIER_DATA

from app.adapters.lookups.mcc_mnc import SHIPPED, Network, Networks, load_networks


def shipped_rows() -> list[list[str]]:
    return [line.split(",") for line in SHIPPED.read_text(encoding="utf-8").splitlines()[1:]]


def calling_code(region: str) -> str:
    return str(phonenumbers.country_code_for_region(region))


def test_a_code_is_given_as_far_as_all_networks_of_a_name_share_it() -> None:
    for codes, found in (
        (["63902"], ("639", "02")),
        (["20810", "20813"], ("208", None)),
        (["40410", "40551"], (None, None)),
    ):
        networks = Networks([Network("KE", code[:3], code[3:], ("Safaricom",)) for code in codes])
        assert networks.code_of("KE", "Safaricom") == found


def test_an_mnc_that_is_not_certain_is_not_given() -> None:
    rows = (("50", "Glo"), ("", "Glo"), ("", "MTN"))
    networks = Networks([Network("NG", "621", mnc, (name,)) for mnc, name in rows])
    assert networks.code_of("NG", "Glo") == networks.code_of("NG", "MTN") == ("621", None)


@pytest.mark.parametrize(
    ("country_code", "carrier", "code"),
    [
        # Several networks of one brand are in operation.
        ("GR", "Cosmote", ("202", None)),
        ("AU", "Telstra", ("505", None)),
        ("AU", "Optus", ("505", None)),
        ("PL", "Plus", ("260", None)),
        ("CZ", "T-Mobile", ("230", None)),
        ("BH", "Batelco", ("426", None)),
        ("SE", "Tele2 Sverige", ("240", None)),
        ("JP", "SoftBank", (None, None)),  # 440 and 441.
        # The name means two companies.
        ("DE", "Vodafone/Truphone", ("262", None)),
        ("DE", "Vodafone/Lycamobile", ("262", None)),
        # The code is gone.
        ("BI", "Smart Mobile", (None, None)),
        ("KH", "qbmore/Cadcomms", (None, None)),
        # The lists disagree.
        ("NG", "9mobile", ("621", None)),
        ("JM", "Digicel", ("338", None)),
        ("GF", "Free Caraibe", (None, None)),
        # One network.
        ("PL", "Play", ("260", "06")),
        ("ET", "Safaricom", ("636", "02")),
        ("BH", "STC", ("426", "04")),
    ],
)
def test_the_shipped_table_gives_what_two_public_lists_agree_on(
    country_code: str, carrier: str, code: tuple[str | None, str | None]
) -> None:
    assert load_networks().code_of(country_code, carrier) == code


def test_names_match_whole_and_in_any_case() -> None:
    networks = Networks([Network("IS", "274", "01", ("Síminn", "Iceland  Telecom"))])
    for name in ("SÍMINN", "Si\u0301minn", "iceland telecom"):
        assert networks.code_of("IS", name).mnc == "01"
    assert networks.code_of("IS", "Iceland").mnc is None


def test_the_shipped_aliases_are_names_that_numbers_of_the_country_carry() -> None:
    spoken: dict[str, set[str]] = {}
    for prefix, names in CARRIER_DATA.items():
        for digits in (1, 2, 3):
            spoken.setdefault(prefix[:digits], set()).add(names.get("en", ""))
    for country_code, _, _, _, aliases, *_ in shipped_rows():
        # Ascension has a calling code of its own and counts as SH.
        regions = ["SH", "AC"] if country_code == "SH" else [country_code]
        known = {name for region in regions for name in spoken[calling_code(region)]}
        assert {alias for alias in aliases.split("|") if alias} <= known, country_code


def test_each_shipped_row_is_whole_in_its_place_and_no_code_stands_there_twice() -> None:
    rows, codes = shipped_rows(), set[tuple[str, ...]]()
    assert [row[:3] for row in rows] == sorted(row[:3] for row in rows)
    for country_code, mcc, mnc, network, _, source, dated in rows:
        place = country_code, mcc, mnc, "" if mnc else network
        assert place not in codes
        codes.add(place)
        assert re.fullmatch("[A-Z]{2} [0-9]{3} (?:[0-9]{2,3})?", " ".join(place[:3])), place
        assert network, place
        assert source, place
        assert date.fromisoformat(dated).isoformat() == dated, place
