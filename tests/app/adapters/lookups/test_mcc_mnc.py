"""The table of networks: when a code is certain, and how an operator's own file is refused."""

import csv
from pathlib import Path

import phonenumbers
import pytest
from phonenumbers.carrierdata import CARRIER_DATA

from app.adapters.lookups.mcc_mnc import COLUMNS, SHIPPED, Network, Networks, load_networks

HEADER = ",".join(COLUMNS)
GOOD = "KE,639,02,Safaricom,,somewhere,2026-11-21"


def write(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "networks.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


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


def test_an_mnc_that_is_not_certain_is_not_given(tmp_path: Path) -> None:
    uncertain = ("NG,621,,Glo,,s,2026-11-21", "NG,621,,MTN,,s,2026-11-21")
    networks = load_networks(write(tmp_path, HEADER, "NG,621,50,Glo,,s,2026-11-21", *uncertain))
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
    assert load_networks(None).code_of(country_code, carrier) == code


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


def test_the_shipped_rows_are_sorted_and_dated() -> None:
    rows = shipped_rows()
    assert [row[:3] for row in rows] == sorted(row[:3] for row in rows)
    assert all(row[5] and row[6] for row in rows)


def test_a_byte_order_mark_and_empty_lines_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "networks.csv"
    path.write_bytes(f"\ufeff{HEADER}\r\n{GOOD.replace(',', ' , ')}\r\n\r\n".encode())
    assert load_networks(path).code_of("KE", "Safaricom") == ("639", "02")


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("Kenya,639,02,X,,s,2026-11-21", "`$.country_code`"),
        ("ke,639,02,X,,s,2026-11-21", "`$.country_code`"),
        ("KE,63,02,X,,s,2026-11-21", "matching regex '^[0-9]{3}\\\\Z' - at `$.mcc`"),
        ("KE,639,2,X,,s,2026-11-21", "`$.mnc`"),
        ("KE,639,\u0660\u0662,X,,s,2026-11-21", "`$.mnc`"),
        ("KE,639,03,,,s,2026-11-21", "`$.network`"),
        ("KE,639,03,X,,,2026-11-21", "`$.source`"),
        ("KE,639,03,X,,s,21.11.2026", "Invalid RFC3339 encoded date - at `$.date`"),
        ("KE,639,03,X,,s,20261121", "`$.date`"),
        ("KE,639,02,X,,s,2026-11-21", "639-02 stands here twice"),
        ("KE,639,03,X", "Expected `str`, got `null` - at `$.aliases`"),
        ("KE,639,03,X,,s,2026-11-21,y", "unknown field `an 8th`"),
        ('KE,639,03,"X"Y,,s,2026-11-21', "',' expected after '\"'"),
    ],
)
def test_a_bad_row_is_refused_in_one_line_with_its_place(
    tmp_path: Path, bad: str, said: str
) -> None:
    with pytest.raises(ValueError, match=r"^networks\.csv line 3\b") as caught:
        load_networks(write(tmp_path, HEADER, GOOD, bad))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "header",
    [";".join(f'"{each}"' for each in COLUMNS), f'"{HEADER}', "c" * (csv.field_size_limit() + 1)],
    ids=["semicolons", "an open quote", "a field of endless length"],
)
def test_a_first_line_that_is_no_csv_or_has_other_columns_is_refused_in_one_line(
    tmp_path: Path, header: str
) -> None:
    with pytest.raises(ValueError, match=r"^networks\.csv line \d: .*$"):
        load_networks(write(tmp_path, header, GOOD))
    with pytest.raises(ValueError, match=f"line 1: the columns must be {HEADER}"):
        load_networks(write(tmp_path, "mcc,mnc", "639,02"))


def test_a_file_that_is_missing_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be read as a UTF-8 file: FileNotFoundError"):
        load_networks(tmp_path / "absent.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="cannot be read as a UTF-8 file: UnicodeDecodeError"):
        load_networks(tmp_path / "binary.csv")
