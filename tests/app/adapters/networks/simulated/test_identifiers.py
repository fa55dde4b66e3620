"""What the simulator makes up has a real form and follows from the seed alone."""

import re

from hypothesis import given
from hypothesis import strategies as st

from app.adapters.networks.simulated.identifiers import Identifiers, check_digit, msisdn_of

names = st.text(max_size=20)


def test_what_a_seed_gives_never_changes() -> None:
    """An installation must find its eSIMs unchanged after an upgrade."""
    made = Identifiers("seed")
    iccid = made.iccid("sp-atlas", 1)
    assert iccid == "8988399900891621987"
    assert msisdn_of(iccid) == "+883999891261980"
    assert made.lpa(iccid) == "LPA:1$rsp.simulated.example$OA4D-DSJM-MSHK-N4TN"
    assert made.endpoint_id(iccid, "link-1") == "ep-fe03a3c63e480453c595"
    assert made.addon_id("ep-1", "topup-1") == "ad-c82919d2d4ee7922bb8f"
    assert made.roll("network", iccid) == 0.28421769489499105


@given(names, names, st.integers(min_value=1))
def test_an_iccid_has_19_digits_and_a_valid_check_digit(
    seed: str, sponsor_profile_id: str, serial: int
) -> None:
    iccid = Identifiers(seed).iccid(sponsor_profile_id, serial)
    assert re.fullmatch(r"8988[0-9]{15}", iccid)
    assert is_luhn(iccid)


def test_the_check_digit_is_that_of_the_example_in_the_standard() -> None:
    assert check_digit("7992739871") == "3"


@given(names, names)
def test_an_activation_code_is_one_of_sgp_22_at_a_host_of_nobody(seed: str, iccid: str) -> None:
    code = Identifiers(seed).lpa(iccid)
    assert re.fullmatch(r"LPA:1\$[a-z.]+\.example\$[A-Z2-7]{4}(-[A-Z2-7]{4}){3}", code)


@given(names, names)
def test_a_phone_asks_for_a_code_if_the_iccid_ends_in_0(seed: str, serial: str) -> None:
    made = Identifiers(seed)
    assert re.fullmatch("[0-9]{4}", made.confirmation_code(f"{serial}0") or "")
    assert made.confirmation_code(f"{serial}1") is None


def is_luhn(digits: str) -> bool:
    """Check by the other way of stating the formula: digit by digit from the right."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0
