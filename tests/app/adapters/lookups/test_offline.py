"""The offline provider: odd numbers, line types, and what it does not claim to know."""

import threading
from collections.abc import Callable
from typing import get_args
from uuid import uuid4

import phonenumbers
import pytest
from phonenumbers import PhoneNumberFormat, PhoneNumberType

from app.adapters.lookups.mcc_mnc import Network, Networks, load_networks
from app.adapters.lookups.offline import LINE_TYPES, OfflineLookup, read
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


class Timers:
    """Timers that the test ends by hand."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []
        self.has_threads = True

    def __call__(self, interval: float, function: Callable[[], None]) -> "Timers":
        assert 0 < interval <= 60
        self.function = function
        return self

    def start(self) -> None:
        if not self.has_threads:
            raise RuntimeError
        self.waiting.append(self.function)

    def run_out(self) -> None:
        waiting, self.waiting = self.waiting, []
        for function in waiting:
            function()


@pytest.fixture
def timers(monkeypatch: pytest.MonkeyPatch) -> Timers:
    timers = Timers()
    monkeypatch.setattr("app.adapters.lookups.offline.Timer", timers)
    return timers


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The numbers that were really looked up."""
    parsed = list[str]()

    def noted(phone_number: str) -> tuple[phonenumbers.PhoneNumber, str]:
        parsed.append(phone_number)
        return read(phone_number)

    monkeypatch.setattr("app.adapters.lookups.offline.read", noted)
    return parsed


def test_a_number_is_remembered_until_its_time_has_run_out(
    timers: Timers, parsed: list[str]
) -> None:
    lookup = OfflineLookup(SHIPPED)
    lookup.probe()  # Which warms it, and is no answer.
    parsed.clear()
    for _ in range(2):
        answers = [lookup.look_up(ORGANIZATION, "+254712123456") for _ in range(3)]
        assert [each.facts for each in answers] == [look_up("+254712123456")] * 3
        assert parsed == ["+254712123456"] * 2  # One of them for the line above.
        parsed.clear()
        timers.run_out()
        assert timers.waiting == []


def test_so_many_numbers_are_remembered_and_no_more(
    timers: Timers, parsed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.adapters.lookups.offline.REMEMBERED_MAX", 2)
    lookup = OfflineLookup(SHIPPED)
    wanted = ["+254712123456", "+254712123457", "+254712123458"]
    for number in [*wanted, *wanted]:
        lookup.look_up(ORGANIZATION, number)
    assert parsed == [*wanted, *wanted]
    assert len(timers.waiting) == 1


@pytest.mark.usefixtures("timers")
def test_the_time_of_an_answer_does_not_tell_who_else_has_asked(parsed: list[str]) -> None:
    lookup = OfflineLookup(SHIPPED)
    for organization in (ORGANIZATION, uuid4()):
        lookup.look_up(organization, "+254712123456")
    assert len(parsed) == 2


def test_without_a_thread_for_the_timer_nothing_is_remembered(
    timers: Timers, parsed: list[str]
) -> None:
    timers.has_threads = False
    lookup = OfflineLookup(SHIPPED)
    for _ in range(2):
        assert lookup.look_up(ORGANIZATION, "+254712123456").facts.valid
    assert len(parsed) == 2


def test_the_timer_keeps_no_process_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.adapters.lookups.offline.REMEMBERED_S", 600.0)
    before = {*threading.enumerate()}
    look_up("+254712123456")
    (timer,) = {*threading.enumerate()} - before
    assert timer.daemon
    assert isinstance(timer, threading.Timer)
    timer.cancel()
