"""A number that is not its own canonical form, such as one with a trunk 0 kept, is not valid."""

from collections.abc import Iterator

import phonenumbers
import pytest
from phonenumbers import PhoneNumberFormat, PhoneNumberType

from app.adapters.lookups.offline import canonical_of
from tests.app.http.conftest import MakeService
from tests.support.providers.twilio import ScriptedTwilio

KEPT, MEANT = "+4407400123456", "+447400123456"


@pytest.fixture
def twilio() -> Iterator[ScriptedTwilio]:
    with ScriptedTwilio() as made:
        made.know(KEPT, country_code="GB")  # It takes such a number for the one that is meant.
        yield made


def test_no_provider_is_asked_and_the_price_is_the_same(
    twilio: ScriptedTwilio, make_service: MakeService
) -> None:
    acme = make_service(**twilio.settings).start().tenant()
    first, again = (acme.look_up(KEPT, **{"Idempotency-Key": "key-1"}).json for _ in range(2))
    anew = acme.post("/number-lookup", json={"phone_number": KEPT, "max_age": 0}).json
    read = acme.get(f"/number-lookup/lookups/{first['meta']['lookup_id']}").json
    items = acme.finished_job([KEPT, "+9991234567"])["items"]
    for reply in (first, again, anew, read):
        assert reply["data"] == {"phone_number": KEPT, "valid": False}
        assert reply["meta"]["canonical"] == MEANT
        assert (reply["meta"]["source"], reply["meta"]["provider"]) == ("live", "offline")
        assert reply["meta"]["charge"]["amount"] == "0.005"
    assert again["meta"]["lookup_id"] == first["meta"]["lookup_id"]
    assert (items[0]["status"], items[0]["result"]) == ("completed", first["data"])
    assert not [each for each in twilio.asked("look up") if "4407400" in each.path]
    assert acme.balance() == "99.98"


def test_every_example_of_the_numbering_plans_is_its_own_form() -> None:
    examples = {
        phonenumbers.format_number(example, PhoneNumberFormat.E164)
        for region in phonenumbers.SUPPORTED_REGIONS
        for kind in PhoneNumberType.values()
        if (example := phonenumbers.example_number_for_type(region, kind)) is not None
    }
    assert len(examples) > 900
    assert not {each for each in examples if canonical_of(each) is not None}
