"""Makes `numbers.json`, the body of the README's bulk job: 1000 valid numbers of 50 countries.

`python -m tests.data.make_numbers` writes the file again; the same seed and the same version of
`phonenumbers` give the same file.
"""

import json
from pathlib import Path
from random import Random
from typing import Final

import phonenumbers
from phonenumbers import PhoneNumberFormat, PhoneNumberType

NUMBERS_FILE: Final = Path(__file__).with_name("numbers.json")
SEED: Final = 20_261_121
REGIONS: Final = (
    "AE AR AT AU BD BE BG BR CA CH CL CN CO CZ DE DK EG ES FI FR GB GH GR ID IE IL IN IT JP KE "
    "KR MA MX MY NG NL NO NZ PH PK PL PT SA SE SG TH TR US VN ZA"
)
# What each region contributes, and how many of the example's last digits are varied.
KINDS: Final = (
    *(16 * [(PhoneNumberType.MOBILE, 7)]),
    *(3 * [(PhoneNumberType.FIXED_LINE, 4)]),
    (PhoneNumberType.TOLL_FREE, 3),
)
# Ranges that are kept free for films and examples, so that they are nobody's line: 555-01xx of
# the North American plan, and what ACMA, Ofcom, ARCEP, Bundesnetzagentur and PTS set aside. The
# package calls the mobile ranges of Ofcom and ARCEP not valid, so these are not used.
FICTIONAL: Final = {
    ("AU", PhoneNumberType.FIXED_LINE): "+6125550xxxx",
    ("CA", PhoneNumberType.MOBILE): "+141655501xx",
    ("CA", PhoneNumberType.FIXED_LINE): "+160455501xx",
    ("DE", PhoneNumberType.MOBILE): "+49176040690xx",
    ("DE", PhoneNumberType.FIXED_LINE): "+493023125xxx",
    ("FR", PhoneNumberType.FIXED_LINE): "+3319900xxxx",
    ("GB", PhoneNumberType.FIXED_LINE): "+442079460xxx",
    ("SE", PhoneNumberType.MOBILE): "+467017406xx",
    ("SE", PhoneNumberType.FIXED_LINE): "+468465004xx",
    ("US", PhoneNumberType.MOBILE): "+141555501xx",
    ("US", PhoneNumberType.FIXED_LINE): "+121255501xx",
}
ATTEMPTS_MAX: Final = 10_000  # Far past what a plan whose example can be varied needs.


def make_numbers() -> list[str]:
    """Return the numbers, region by region; equal calls give equal lists."""
    random = Random(SEED)
    found: dict[str, None] = {}
    for region in REGIONS.split():
        for kind, varied in KINDS:
            mask = _mask(region, kind, varied)
            found[_new_number(mask, kind, random, found)] = None
    return list(found)


def _mask(region: str, kind: int, varied: int) -> str:
    if fictional := FICTIONAL.get((region, kind)):
        return fictional
    example = phonenumbers.example_number_for_type(region, kind)
    assert example is not None, (region, kind)
    return phonenumbers.format_number(example, PhoneNumberFormat.E164)[:-varied] + "x" * varied


def _new_number(mask: str, kind: int, random: Random, taken: dict[str, None]) -> str:
    for _ in range(ATTEMPTS_MAX):
        text = "".join(random.choice("0123456789") if sign == "x" else sign for sign in mask)
        if text not in taken and _is_of(kind, text):
            return text
    message = f"no new valid number like {mask}"
    raise LookupError(message)


def _is_of(kind: int, text: str) -> bool:
    # Some plans do not tell fixed lines and mobiles apart.
    return phonenumbers.number_type(phonenumbers.parse(text)) in {
        kind,
        PhoneNumberType.FIXED_LINE_OR_MOBILE,
    }


def render(numbers: list[str]) -> str:
    """Write the numbers as the request body that the bulk operation takes."""
    return json.dumps({"phone_numbers": numbers}, indent=1) + "\n"


if __name__ == "__main__":
    NUMBERS_FILE.write_text(render(make_numbers()), encoding="utf-8")
