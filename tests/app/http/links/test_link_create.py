"""Buying a link: what is refused, what it costs, what comes back."""

import pytest

from app.http.links.input import is_waited_for
from tests.app.http.buying import FREE, LINKS, MISSING, Buyer
from tests.app.http.service import Service, fields_of


def test_the_reply_does_not_wait_for_the_usage_of_what_is_new(
    service: Service, acme: Buyer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(service.container.network, "usage", fail)
    assert acme.create().status_code == 201


def test_a_name_is_kept_as_it_is_given_and_any_other_is_refused(acme: Buyer) -> None:
    for name in (" Lkw 7 🚚 \u200d東京", "n" * 255, None, "", " ", "\u3000\u2028"):
        assert acme.link(FREE, name=name)["name"] == (name if name and name.strip() else None)
    for name in ("n" * 256, "a\nb", "\0", "\x7f", "\ud800", 5, ["n"], {}):
        assert list(fields_of(acme.create(FREE, name=name))) == ["name"], name


NO_PLANS: list[object] = [None, "", "basic", 7, MISSING.replace("-", ""), [MISSING], MISSING]


def test_a_plan_that_is_none_is_refused(acme: Buyer) -> None:
    for body in ({}, *({"plan_id": each} for each in NO_PLANS)):
        assert list(fields_of(acme.post(LINKS, json=body))) == ["plan_id"], body


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
