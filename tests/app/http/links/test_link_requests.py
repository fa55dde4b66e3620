"""A creation that is only asked about, or not waited for: how a request says so."""

import pytest

from app.http.links.input import is_waited_for
from tests.app.http.buying import FREE, LINKS, buyer
from tests.app.http.service import Service, fields_of

SAYS_SO = [
    "respond-async",
    "Respond-Async; foo",
    "handling=lenient, respond-async, wait=10",
    'foo="a, b", respond-async',
]
SAYS_NOTHING = ["wait=10", 'foo="x, respond-async, y"', "respond-asynchronously", "", ',,;="']


def test_a_preference_is_read_as_rfc_7240_has_it() -> None:
    assert [each for each in SAYS_SO if is_waited_for(each)] == []
    assert [each for each in SAYS_NOTHING if not is_waited_for(each)] == []


@pytest.mark.any_database
def test_a_dry_run_ignores_a_key_that_is_none_and_is_asked_for_once_and_clearly(
    service: Service,
) -> None:
    acme = buyer(service, "10.00")
    body, key = {"plan_id": acme.plans[FREE]}, {"Idempotency-Key": "no key"}
    for query in ("?dry_run=true", "?dry_run=1"):
        assert acme.post(LINKS + query, json=body, headers=key).status_code == 200
    for query in ("", "?dry_run=false"):
        reply = acme.post(LINKS + query, json=body, headers=key)
        assert [*fields_of(reply)] == ["Idempotency-Key"]
    for query in ("?dry_run=maybe", "?dry_run=", "?dry_run=true&dry_run=true"):
        assert [*fields_of(acme.post(LINKS + query, json=body))] == ["dry_run"]
    assert acme.get(LINKS).json["data"]["data"] == []
