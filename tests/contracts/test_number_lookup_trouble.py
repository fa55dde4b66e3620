"""What a remote provider of lookups can do wrong: none of it is an answer, and nothing leaks."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from app.adapters.lookups import telnyx, twilio
from app.bootstrap.container import Container
from app.settings import Settings
from domain.lookups.ports import LookupProvider
from domain.provider_errors import Unavailable
from tests.canaries import canaries_in
from tests.contracts.scripted_lookup import NOT_VALID, ORGANIZATION, VALID_MOBILE
from tests.installation import wait_until
from tests.support.providers.lookups import ScriptedLookups
from tests.support.providers.server import FaultKind
from tests.support.providers.telnyx import ScriptedTelnyx
from tests.support.providers.twilio import ScriptedTwilio

HARMLESS = {FaultKind.DUPLICATE, FaultKind.EFFECT_TWICE}
TROUBLE = [kind for kind in FaultKind if kind not in HARMLESS]


@pytest.fixture(params=[ScriptedTwilio, ScriptedTelnyx], ids=lambda kind: kind.name)
def server(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ScriptedLookups]:
    for adapter in (twilio, telnyx):
        monkeypatch.setattr(adapter, "LOOKUP_S", 0.3)
    with request.param() as made:
        yield made


@pytest.fixture
def lookup(server: ScriptedLookups) -> Iterator[LookupProvider]:
    with closing(Container(Settings.from_env(server.settings))) as container:
        yield container.bare_lookups[0]


def text_of(error: BaseException | None) -> str:
    """Return what an error and those behind it say."""
    if error is None:
        return ""
    return f"{error!r} {vars(error)} {text_of(error.__cause__)} {text_of(error.__context__)}"


@pytest.mark.parametrize("kind", TROUBLE, ids=lambda kind: kind.name)
def test_trouble_is_no_answer_and_names_no_number_and_no_secret(
    server: ScriptedLookups, lookup: LookupProvider, kind: FaultKind
) -> None:
    server.fault(kind, times=9, seconds=1)
    with pytest.raises(Unavailable) as caught:
        lookup.look_up(ORGANIZATION, VALID_MOBILE)
    said = text_of(caught.value)
    assert canaries_in(said) == set()
    assert VALID_MOBILE[1:] not in said
    assert "secret" not in said
    server.heal()
    answers = []

    def is_answered() -> bool:
        try:
            answers.append(lookup.look_up(ORGANIZATION, VALID_MOBILE))
        except Unavailable:
            return False
        return True

    wait_until(is_answered)  # After a limit, as soon as it has passed.
    assert answers[0].facts.country_code == "ES"


@pytest.mark.parametrize("kind", FaultKind, ids=lambda kind: kind.name)
def test_one_slip_gives_no_answer_about_another_number(
    server: ScriptedLookups, lookup: LookupProvider, kind: FaultKind
) -> None:
    server.fault(kind, seconds=1)
    for number, valid in ((VALID_MOBILE, True), (NOT_VALID, False), (VALID_MOBILE, True)):
        try:
            facts = lookup.look_up(ORGANIZATION, number).facts
        except Unavailable:
            continue
        assert (facts.phone_number, facts.valid) == (number, valid)
    server.heal()
