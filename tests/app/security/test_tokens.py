"""Access tokens: what they carry, how long they live, and what a second library makes of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import jwt as pyjwt
import pytest

from app.security.key_file import Algorithm, key_path
from app.security.keys import KeyRing
from app.security.tokens import LEEWAY_S, Claims, TokenIssuer, TokenVerifier
from domain.errors import Unauthorized
from tests.app.security.forge import GONE, Forge, load
from tests.app.security.rings import ALGORITHMS, ensured_ring, ring_of
from tests.installation import SetClock

ISSUER = "https://api.example/auth"
AUDIENCE = "https://api.example"
TTL_S = 3600
CLIENT = "cl_0123456789abcdef01234567"
ORGANIZATION = UUID("0f0e0d0c-0b0a-4908-8706-050403020100")
TOKEN_ID = UUID("b7b0c0de-1111-4222-8333-444455556666")


class Office:
    """An issuer and a verifier that share a directory of keys, but no ring and no cache."""

    def __init__(self, keys: KeyRing, elsewhere: KeyRing, clock: SetClock, pem: bytes) -> None:
        self.keys, self.clock, self.pem = keys, clock, pem
        self.issuer = TokenIssuer(keys, ISSUER, AUDIENCE, TTL_S, clock, new_id=lambda: TOKEN_ID)
        self.verifier = TokenVerifier(elsewhere, ISSUER, AUDIENCE, clock)

    def issue(self, scopes: Sequence[str] = ("lookup", "wallet")) -> str:
        return self.issuer.issue(CLIENT, ORGANIZATION, scopes)

    def read(self, token: str) -> Claims:
        return self.verifier.verify(token, self.clock())

    def accepts(self, token: str) -> bool:
        try:
            self.read(token)
        except Unauthorized:
            return False
        return True

    def forge(self) -> Forge:
        kid = self.keys.newest().kid
        now = self.clock()
        return Forge(load(self.pem), kid, ISSUER, AUDIENCE, now, CLIENT, str(ORGANIZATION))


each_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)


@pytest.fixture
def algorithm() -> Algorithm:
    """The quicker one, where a test is about neither."""
    return "ES256"


@pytest.fixture
def office(directory: Path, clock: SetClock, algorithm: Algorithm) -> Office:
    keys = ensured_ring(directory, clock, algorithm)
    pem = key_path(directory, keys.newest().kid).read_bytes()
    return Office(keys, ring_of(directory, clock, algorithm), clock, pem)


def test_a_token_of_a_machine_to_machine_client_has_no_organization(office: Office) -> None:
    token = office.issuer.issue(CLIENT, None, [])
    claims = office.read(token)
    assert (claims.organization_id, claims.scopes) == (None, frozenset())
    assert "organization" not in pyjwt.decode(token, options={"verify_signature": False})


def test_two_tokens_have_two_ids(office: Office) -> None:
    issuer = TokenIssuer(office.keys, ISSUER, AUDIENCE, TTL_S, office.clock)
    ids = {office.read(issuer.issue(CLIENT, None, [])).token_id for _ in range(3)}
    assert len(ids) == 3


def read_by_pyjwt(office: Office, token: str) -> dict[str, Any]:
    header = pyjwt.get_unverified_header(token)
    keys = pyjwt.PyJWKSet.from_dict(dict(office.keys.jwks()))
    claims: dict[str, Any] = pyjwt.decode(
        token,
        keys[header["kid"]].key,
        algorithms=[office.keys.newest().algorithm],
        audience=AUDIENCE,
        issuer=ISSUER,
        # Its clock is the wall; everything else it checks.
        options={"verify_exp": False, "verify_iat": False, "require": ["exp", "iat", "jti"]},
    )
    return claims


@each_algorithm
def test_a_second_library_verifies_a_token_by_the_published_keys(office: Office) -> None:
    token = office.issue()
    issued_at = int(office.clock().timestamp())
    assert read_by_pyjwt(office, token) == {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": CLIENT,
        "client_id": CLIENT,
        "iat": issued_at,
        "exp": issued_at + TTL_S,
        "jti": str(TOKEN_ID),
        "scope": "lookup wallet",
        "organization": str(ORGANIZATION),
    }
    key = office.keys.newest()
    header = {"alg": key.algorithm, "kid": key.kid, "typ": "at+jwt"}
    assert pyjwt.get_unverified_header(token) == header


def test_what_the_profile_leaves_free_is_accepted(office: Office) -> None:
    for typ in ("at+jwt", "AT+JWT", "application/at+jwt", "Application/At+Jwt"):
        assert office.accepts(office.forge().with_header(typ=typ))
    for name, value in (
        ("organization", GONE),
        ("nbf", 0),
        ("unknown", {"nested": [1, 2.5, None, "ä"]}),
        ("iat", 1_700_000_000.25),
        ("scope", ""),
        ("jti", "ä"),
    ):
        assert office.accepts(office.forge().with_claims(**{name: value})), name


def test_a_token_ends_with_its_lifetime_and_the_leeway(office: Office) -> None:
    office.clock.now = office.clock.now.replace(microsecond=0)
    token = office.issue()
    office.clock.forward(seconds=TTL_S + LEEWAY_S - 0.001)
    assert office.accepts(token)
    office.clock.forward(seconds=0.001)
    assert not office.accepts(token)


def test_a_token_from_a_clock_ahead_is_accepted_within_the_leeway(office: Office) -> None:
    office.clock.now = office.clock.now.replace(microsecond=0)
    now = int(office.clock().timestamp())
    for claim in ("iat", "nbf"):
        assert office.accepts(office.forge().with_claims(**{claim: now + LEEWAY_S}))
        assert not office.accepts(office.forge().with_claims(**{claim: now + LEEWAY_S + 1}))
    for year in (2001, 2222):  # The wall clock has no say.
        office.clock.now = office.clock.now.replace(year=year)
        now = int(office.clock().timestamp())
        assert office.accepts(office.forge().with_claims(nbf=now))


def test_no_rotation_refuses_a_token_that_is_still_valid(office: Office) -> None:
    office.clock.now = office.clock.now.replace(microsecond=0)
    token = office.issue()
    office.keys.rotate()
    assert office.accepts(office.issue())
    for _ in range(3):
        office.clock.forward(seconds=TTL_S // 3)
        office.keys.rotate()
        assert office.accepts(token)
    office.clock.forward(seconds=LEEWAY_S - 0.001)
    assert office.accepts(token)


def test_a_token_of_a_key_that_was_deleted_is_refused_within_a_second(
    office: Office, directory: Path
) -> None:
    token = office.issue()
    assert office.accepts(token)
    office.keys.rotate()
    key_path(directory, pyjwt.get_unverified_header(token)["kid"]).unlink()
    office.clock.forward(seconds=1)
    assert not office.accepts(token)
