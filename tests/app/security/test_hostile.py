"""Every forged token is refused as Unauthorized, quickly, and without quoting the token."""

from pathlib import Path
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.security.key_file import Algorithm, key_path
from app.security.keys import KeyRing
from app.security.tokens import (
    EXPIRED,
    MALFORMED,
    NOT_YET,
    UNKNOWN_KEY,
    WRONG_AUDIENCE,
    WRONG_ISSUER,
    WRONG_SIGNATURE,
    TokenVerifier,
)
from domain.errors import Unauthorized
from tests.app.security.forge import CLIENT_ID, ORGANIZATION, Forge, load
from tests.app.security.hostile import honest_token, hostile_tokens
from tests.app.security.rings import ALGORITHMS, NOW

ISSUER = "https://api.example/auth"
AUDIENCE = "https://api.example"
CPU_S_MAX = 0.25  # A thousand times what a refusal takes, so that a slow machine passes.
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

REASONS = {MALFORMED, UNKNOWN_KEY, WRONG_SIGNATURE, WRONG_AUDIENCE, WRONG_ISSUER}
REASONS |= {EXPIRED, NOT_YET}


class Court:
    """A ring of three keys, its verifier, and the table of what it has to refuse."""

    def __init__(self, directory: Path, algorithm: Algorithm) -> None:
        other: Algorithm = "ES256" if algorithm == "RS256" else "RS256"
        self.keys = KeyRing(directory, algorithm, lambda: NOW, 3630)
        self.kid = self._start(directory, algorithm)
        self.same_type_kid = self.keys.rotate()
        self.other_type_kid = self._start(directory, other)
        self.verifier = TokenVerifier(self.keys, ISSUER, AUDIENCE, lambda: NOW)
        self.pem = key_path(directory, self.kid).read_bytes()
        key = load(self.pem)
        self.forge = Forge(key, self.kid, ISSUER, AUDIENCE, NOW, CLIENT_ID, ORGANIZATION)
        self.hostile = self.forgeries(self.same_type_kid)

    def _start(self, directory: Path, algorithm: Algorithm) -> str:
        ring = KeyRing(directory, algorithm, lambda: NOW, 3630)
        ring.ensure()
        return ring.newest().kid

    def forgeries(self, other_kid: str) -> dict[str, str]:
        return hostile_tokens(self.forge, other_kid)

    def refusal(self, token: str) -> Unauthorized | None:
        try:
            self.verifier.verify(token, NOW)
        except Unauthorized as refused:
            return refused
        return None

    def refuses(self, token: str) -> bool:
        return self.refusal(token) is not None


@pytest.fixture(scope="module", params=ALGORITHMS)
def court(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Court:
    return Court(tmp_path_factory.mktemp("court") / "keys", request.param)


def test_every_forged_token_is_refused(court: Court) -> None:
    for name, token in court.hostile.items():
        started = process_time()
        refused = court.refusal(token)
        assert process_time() - started < CPU_S_MAX, name
        assert str(refused) in REASONS, name  # So it holds no word of the token.
        assert (refused.__context__, refused.details) == (None, {}), name


def test_the_same_token_without_a_forgery_is_accepted(court: Court) -> None:
    claims = court.verifier.verify(honest_token(court.pem, court.kid, ISSUER, AUDIENCE, NOW), NOW)
    assert claims.client_id == CLIENT_ID
    assert str(claims.organization_id) == ORGANIZATION
    assert claims.scopes == {"lookup", "wallet"}


def test_a_key_of_the_other_algorithm_serves_no_forger_either(court: Court) -> None:
    forgeries = court.forgeries(court.other_type_kid)
    assert all(court.refuses(token) for name, token in forgeries.items() if "another key" in name)


def test_no_letter_of_a_token_can_be_changed(court: Court) -> None:
    honest = honest_token(court.pem, court.kid, ISSUER, AUDIENCE, NOW)
    for place, letter in enumerate(honest):
        other = "A" if letter == "." else LETTERS[LETTERS.index(letter) ^ 1]
        assert court.refuses(honest[:place] + other + honest[place + 1 :]), place


def test_no_letter_of_a_token_can_be_left_out(court: Court) -> None:
    honest = honest_token(court.pem, court.kid, ISSUER, AUDIENCE, NOW)
    assert all(court.refuses(honest[:place] + honest[place + 1 :]) for place in range(len(honest)))


# What is not about an algorithm is tried with the quicker one.
one_algorithm = pytest.mark.parametrize("court", ["ES256"], indirect=True)


@one_algorithm
@given(text=st.text())
def test_no_text_is_anything_but_unauthorized(court: Court, text: str) -> None:
    assert court.refuses(text)


@one_algorithm
@given(header=st.binary(max_size=200), claims=st.binary(min_size=1, max_size=200))
def test_no_signed_bytes_are_anything_but_unauthorized(
    court: Court, header: bytes, claims: bytes
) -> None:
    assert court.refuses(court.forge.token(header=header))
    assert court.refuses(court.forge.token(claims=claims))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@one_algorithm
@given(name=st.sampled_from(["alg", "kid", "typ"]), value=JSON)
def test_no_other_value_of_a_header_gets_through(court: Court, name: str, value: object) -> None:
    assert court.refuses(court.forge.with_header(**{name: value}))


@one_algorithm
@given(name=st.sampled_from(["iss", "aud", "sub", "client_id", "organization"]), value=JSON)
def test_no_other_value_of_a_party_gets_through(court: Court, name: str, value: object) -> None:
    assert court.refuses(court.forge.with_claims(**{name: value}))


@pytest.mark.parametrize("token", [None, b"a.b.c", 7, ["a"]])
def test_what_is_no_text_is_no_token(court: Court, token: object) -> None:
    with pytest.raises(Unauthorized):
        court.verifier.verify(token, NOW)  # type: ignore[arg-type]  # What a careless caller may pass.
