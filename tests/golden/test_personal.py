"""What is sealed inside events keeps its form: what was written before decodes, and is written so.

The golden files of events show it only as sealed bytes.
"""

from typing import Any

import msgspec
import pytest

from domain.lookups.bulk_job import PersonalNumbers, PersonalResults
from domain.lookups.ports import Carrier, Details, NumberFacts, Portability
from domain.lookups.single import PersonalAnswer

FACTS = NumberFacts(
    "+34612345678",
    valid=True,
    country_code="ES",
    national_format="612 34 56 78",
    carrier=Carrier("Ü", "mobile", "214", "01"),
)
NONE = NumberFacts("+9991234567", valid=False)
CLEAR = (
    '{"phone_number":"+34612345678","valid":true,"country_code":"ES",'
    '"national_format":"612 34 56 78",'
    '"carrier":{"name":"Ü","type":"mobile","mcc":"214","mnc":"01"}}'
)
NOT_VALID = '{"phone_number":"+9991234567","valid":false}'
PORTED = Portability(
    ported=True,
    ported_at="2017-10-20",
    carrier="Telnyx/4",
    carrier_type="voip",
    routing_number="3125550000",
)
TOLD = Details("RQ1", ("60600",), PORTED)
TOLD_CLEAR = (
    '{"reference":"RQ1","errors":["60600"],"portability":{"ported":true,"ported_at":"2017-10-20",'
    '"carrier":"Telnyx/4","carrier_type":"voip","routing_number":"3125550000"}}'
)

FORMS: list[tuple[Any, str]] = [
    (PersonalNumbers(["+34612345678"]), '{"phone_numbers":["+34612345678"]}'),
    (PersonalAnswer(FACTS), f'{{"facts":{CLEAR}}}'),
    (PersonalAnswer(FACTS, TOLD), f'{{"facts":{CLEAR},"told":{TOLD_CLEAR}}}'),
    (PersonalResults([FACTS, NONE]), f'{{"facts":[{CLEAR},{NOT_VALID}]}}'),
    (
        PersonalResults([FACTS, NONE], [TOLD, None]),
        f'{{"facts":[{CLEAR},{NOT_VALID}],"told":[{TOLD_CLEAR},null]}}',
    ),
]


@pytest.mark.parametrize(("value", "clear"), FORMS)
def test_what_is_sealed_has_the_form_in_which_it_was_always_written(value: Any, clear: str) -> None:
    assert msgspec.json.encode(value).decode() == clear
    assert msgspec.json.decode(clear, type=type(value)) == value
