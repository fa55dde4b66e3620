"""Events become their stored bytes and come back; what cannot be read is a library error."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from eventsourcing.persistence import MapperDeserialisationError, StoredEvent
from eventsourcing.utils import TopicError
from hypothesis import given
from hypothesis import strategies as st

from domain.accounts.wallet import Reference, Wallet
from domain.log.log import replay
from domain.log.mapper import MsgspecMapper
from tests.domain.build import ORGANIZATION, START, TRANSACTION, cause

MAPPER = MsgspecMapper()
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


def charged(state: bytes) -> StoredEvent:
    return StoredEvent(TRANSACTION, 7, "wallet.charged", state)


@given(TEXT, TEXT, st.dictionaries(TEXT, JSON, max_size=4), st.integers(1, 10**18))
def test_any_text_and_any_json_survive(
    reference: str, description: str, metadata: dict[str, Any], amount_micros: int
) -> None:
    charged: Any = Wallet.Charged
    event = charged(
        originator_id=TRANSACTION,
        originator_version=1,
        timestamp=START,
        request_id=reference,
        organization_id=ORGANIZATION,
        currency="EUR",
        sequence=1,
        transaction_id=TRANSACTION,
        amount_micros=amount_micros,
        balance_micros=0,
        reference=Reference("lookup", reference),
        description=description,
        metadata=metadata,
        kind="lookup",
    )
    assert MAPPER.to_domain_event(MAPPER.to_stored_event(event)) == event


@pytest.mark.parametrize("topic", ["wallet", "wallet.renamed", "wallet.charged:x", ""])
def test_an_unknown_topic_is_told_apart_from_a_broken_event(topic: str) -> None:
    stored = replace(charged(b"{}"), topic=topic)
    with pytest.raises(TopicError):
        MAPPER.to_domain_event(stored)


def test_a_topic_imports_no_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "planted.py").write_text("raise SystemExit")
    monkeypatch.syspath_prepend(tmp_path)
    for topic in ("planted", "planted:Event", f"{Wallet.__module__}:Wallet.Charged"):
        with pytest.raises(TopicError):
            MAPPER.to_domain_event(replace(charged(b"{}"), topic=topic))
    begun = Wallet.open(ORGANIZATION, "USD", cause())
    (event,) = begun.collect_events()
    first = MAPPER.to_stored_event(event)
    state = first.state.replace(b'"originator_topic":"wallet"', b'"originator_topic":"planted"')
    assert state != first.state
    with pytest.raises(TopicError):
        replay([MAPPER.to_domain_event(replace(first, state=state))])  # type: ignore[list-item]  # It is one of our events.


BROKEN = [
    pytest.param(b"", id="nothing"),
    pytest.param(b"{", id="cut short"),
    pytest.param(b"null", id="null"),
    pytest.param(b"[1]", id="a list"),
    pytest.param(b'"text"', id="a text"),
    pytest.param(b"{}", id="no fields"),
    pytest.param(b"\xff\xfe", id="no UTF-8"),
    pytest.param(b'{"timestamp":"yesterday","request_id":"r","currency":1}', id="types"),
    pytest.param(b"[" * 100_000, id="deep"),
]


@pytest.mark.parametrize("state", BROKEN)
def test_a_broken_state_is_a_deserialisation_error(state: bytes) -> None:
    with pytest.raises(MapperDeserialisationError, match=f"{TRANSACTION} version 7"):
        MAPPER.to_domain_event(charged(state))


def test_the_error_shows_nothing_of_what_was_stored() -> None:
    secret = "+14155552671"
    state = b'{"timestamp":"%s","organization_id":1}' % secret.encode()
    with pytest.raises(MapperDeserialisationError) as caught:
        MAPPER.to_domain_event(charged(state))
    assert secret not in f"{caught.value} {caught.value.__cause__}"


def test_a_text_that_is_no_unicode_cannot_be_stored() -> None:
    half_a_pair = "\ud83d"
    wallet = Wallet.open(ORGANIZATION, half_a_pair, cause())
    with pytest.raises(ValueError, match="surrogates not allowed"):
        MAPPER.to_stored_event(wallet.pending_events[0])
