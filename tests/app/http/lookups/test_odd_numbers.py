"""What a provider says oddly of one number is nothing that other organizations notice."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.http.service import Service, code_of
from tests.seeds import sqlite_seed
from tests.support.providers.twilio import ScriptedTwilio, line, resource

ODD = "+447400123456"
CLEAN = [f"+346123456{number:02}" for number in range(30)]


@pytest.fixture
def twilio() -> Iterator[ScriptedTwilio]:
    with ScriptedTwilio() as made:
        for number in CLEAN:
            made.know(number, country_code="ES", line_type_intelligence=line("mobile", "Movistar"))
        yield made


@pytest.fixture
def service(twilio: ScriptedTwilio, tmp_path: Path) -> Iterator[Service]:
    sqlite_seed().copy(tmp_path)
    running = Service(tmp_path, **twilio.settings).start()
    yield running
    running.stop()


@pytest.mark.parametrize(
    "told",
    [
        resource("+447400123457", line_type_intelligence=line("mobile")),
        resource(ODD, line_type_intelligence=line("mobile", error_code=60699)),
        resource(ODD, valid="perhaps"),
    ],
    ids=["another number", "an unknown error of the package", "no sense"],
)
def test_an_odd_record_fails_alone_and_is_asked_for_once(
    service: Service, twilio: ScriptedTwilio, told: dict[str, object]
) -> None:
    acme, rival = service.tenant(), service.tenant()
    twilio.book[ODD] = told
    for _ in range(6):
        reply = acme.look_up(ODD)
        assert (reply.status_code, code_of(reply)) == (503, "NUMBER_LOOKUP_UNAVAILABLE")
        assert reply.json["error"]["details"]["retryable"] is False
    item = acme.finished_job([ODD])["items"][0]
    assert (item["status"], item["error"]) == ("failed", reply.json["error"]["message"])
    assert len([each for each in twilio.asked("look up") if each.query]) == 7

    job = rival.finished_job(CLEAN)

    assert {each["status"] for each in job["items"]} == {"completed"}
    assert (acme.balance(), rival.balance()) == ("100.00", "99.85")
    assert service.client.get("/number-lookup/health").status_code == 200


def test_what_is_understood_of_a_number_is_answered(
    service: Service, twilio: ScriptedTwilio
) -> None:
    twilio.know(ODD, country_code=44, national_format="07400 123456", calling_country_code=[])
    reply = service.tenant().look_up(ODD)
    assert reply.json["data"] == {
        "phone_number": ODD,
        "valid": True,
        "national_format": "07400 123456",
        "carrier": {"type": "unknown"},
    }
