"""The checked-in numbers of the bulk example: as many, as valid and as varied as they claim."""

import json

import phonenumbers

from tests.data.make_numbers import NUMBERS_FILE, make_numbers, render


def test_the_file_holds_a_thousand_unique_valid_numbers_of_forty_countries() -> None:
    numbers = json.loads(NUMBERS_FILE.read_text(encoding="utf-8"))["phone_numbers"]
    parsed = [phonenumbers.parse(number) for number in numbers]

    assert len(numbers) == 1000
    assert len(set(numbers)) == 1000
    assert all(phonenumbers.is_valid_number(number) for number in parsed)
    assert len({phonenumbers.region_code_for_number(number) for number in parsed}) >= 40


def test_the_file_is_what_its_script_makes() -> None:
    assert NUMBERS_FILE.read_text(encoding="utf-8") == render(make_numbers())
