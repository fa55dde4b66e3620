"""The offline provider: odd numbers, line types, and what it does not claim to know."""

from typing import get_args

import phonenumbers
import pytest
from phonenumbers import PhoneNumberFormat, PhoneNumberType

from app.adapters.lookups.mcc_mnc import Network, Networks, load_networks
from app.adapters.lookups.offline import LINE_TYPES, OfflineLookup
from domain.lookups.ports import Carrier, LineType, NumberFacts
from tests.contracts.scripted_lookup import ORGANIZATION

SHIPPED = load_networks(None)


def look_up(phone_number: str, networks: Networks = SHIPPED) -> NumberFacts:
    return OfflineLookup(networks).look_up(ORGANIZATION, phone_number).facts


def carrier_of(phone_number: str, networks: Networks = SHIPPED) -> Carrier:
    carrier = look_up(phone_number, networks).carrier
    assert carrier is not None
    return carrier


def test_what_is_known_of_a_carrier_depends_on_its_networks_and_on_the_type_of_the_number() -> None:
    safaricom = Carrier(name="Safaricom", type="mobile", mcc="639", mnc="02")
    national = {"country_code": "KE", "national_format": "0712 123456", "carrier": safaricom}
    assert look_up("+254712123456") == NumberFacts("+254712123456", valid=True, **national)
    elsewhere = Networks([Network("TZ", "640", "99", ("Safaricom",))])
    assert carrier_of("+254712123456", elsewhere).mcc is None
    assert carrier_of("+33612345678") == Carrier(name="SFR", type="mobile", mcc="208")
    assert carrier_of("+442079460958") == Carrier(type="landline")
    assert SHIPPED.code_of("DK", "tdc").mcc == "238"
    assert carrier_of("+4520188446") == Carrier(name="tdc", type="fixed_line_or_mobile")
    assert carrier_of("+14155552671") == Carrier(type="fixed_line_or_mobile")


def test_a_number_that_cannot_be_parsed_is_an_answer() -> None:
    for number in ("+9991234567", "+10", "+99", "+2100000", "+999999999999999"):
        with pytest.raises(phonenumbers.NumberParseException):
            phonenumbers.parse(number)
        assert look_up(number) == NumberFacts(number, valid=False)


def test_kosovo_has_its_user_assigned_code_and_a_number_of_no_country_none() -> None:
    assert look_up("+38343201234").country_code == "XK"
    facts = look_up("+80012345678")
    assert (facts.valid, facts.country_code) == (True, None)
    assert facts.carrier == Carrier(type="toll_free")


@pytest.mark.parametrize("region", ["AC", "SH", "TA"])
def test_ascension_and_tristan_count_as_saint_helena(region: str) -> None:
    example = phonenumbers.example_number(region)
    assert example is not None
    facts = look_up(phonenumbers.format_number(example, PhoneNumberFormat.E164))
    assert (facts.valid, facts.country_code) == (True, "SH")


@pytest.mark.parametrize(("kind", "line_type"), LINE_TYPES.items())
def test_every_kind_of_number_has_the_type_of_the_contract(kind: int, line_type: LineType) -> None:
    for region in sorted(phonenumbers.SUPPORTED_REGIONS):
        example = phonenumbers.example_number_for_type(region, kind)
        if example is not None and phonenumbers.number_type(example) == kind:
            text = phonenumbers.format_number(example, PhoneNumberFormat.E164)
            assert carrier_of(text).type == line_type
            return
    pytest.fail("no region has an example")


def test_the_types_of_the_package_and_of_the_contract_match_one_to_one() -> None:
    assert set(LINE_TYPES) == set(PhoneNumberType.values()) - {PhoneNumberType.UNKNOWN}
    assert {*LINE_TYPES.values(), "unknown"} == set(get_args(LineType))
    assert len(set(LINE_TYPES.values())) == len(LINE_TYPES)


def test_the_valid_numbers_are_those_that_the_package_calls_valid() -> None:
    for region in sorted(phonenumbers.SUPPORTED_REGIONS):
        example = phonenumbers.example_number(region)
        assert example is not None
        text = phonenumbers.format_number(example, PhoneNumberFormat.E164)
        for candidate in (text, text[:-1], text[:-2] + "00"):
            parsed = phonenumbers.parse(candidate)
            canonical = phonenumbers.format_number(parsed, PhoneNumberFormat.E164)
            expected = phonenumbers.is_valid_number(parsed) and canonical == candidate
            assert look_up(candidate).valid is expected, candidate
