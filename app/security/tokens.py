"""Access tokens in the profile of RFC 9068; the one module that imports python-jose.

python-jose accepts more than is safe (no `exp`, any `typ`, junk inside base64url, the key of any
`kid`, a list of audiences), and reads the wall clock. So it is asked only whether the signature is
right: the form is checked here before, and the claims after it.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any
from uuid import UUID, uuid4

from jose import jwk, jws, jwt
from jose.exceptions import JWSError

from app.security.key_file import Key, SigningKeysError
from app.security.keys import KeyRing
from domain import strict_json
from domain.cause import Clock
from domain.errors import Unauthorized

TOKEN_CHARS_MAX = 8 * 1024
HEADER_CHARS_MAX = 4 * 1024
LEEWAY_S = 30  # By how much the clocks of two machines may differ.
TYPE = "at+jwt"

MALFORMED = "The access token is malformed."
UNKNOWN_KEY = "The access token is signed with a key that is not known here; ask for a new one."
REVOKED_KEY = "The key that signed the access token has been revoked; ask for a new token."
WRONG_SIGNATURE = "The signature of the access token is wrong."
WRONG_AUDIENCE = "The access token is meant for another audience."
WRONG_ISSUER = "The access token comes from another issuer."
EXPIRED = "The access token has expired; ask for a new one."
NOT_YET = "The access token is not valid yet."

_LEEWAY = timedelta(seconds=LEEWAY_S)
_TYPES = {TYPE, f"application/{TYPE}"}  # RFC 9068 §4; compared without case.
_HEADER = {"alg", "kid", "typ"}  # Exactly these, so no crit, jku, jwk, x5u, x5c, b64 or zip.
_SEGMENTS = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)")
_PROVEN_MAX = 4_096  # Tokens whose signature was checked, about 2 KB each.
_PREPARED_MAX = 64  # Far more than the keys that verify at one time, but still a bound.


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of a verified token; only machine-to-machine clients have no organization."""

    client_id: str
    organization_id: UUID | None
    scopes: frozenset[str]
    token_id: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class _Proven:
    """A token whose form and signature are right; this holds while its key is in the ring."""

    key: Key
    valid_from: datetime
    claims: Claims


@lru_cache(_PREPARED_MAX)
def _prepared(key: Key, *, to_sign: bool = False) -> Any:
    """Return a key as python-jose needs it; parsing one costs a hundred signatures."""
    return jwk.construct(key.private_key if to_sign else key.public_key, key.algorithm)


@dataclass(eq=False)
class TokenIssuer:
    """Signs access tokens with the newest key; `ttl_s` is their lifetime in seconds."""

    keys: KeyRing
    issuer: str
    audience: str
    ttl_s: int
    clock: Clock
    new_id: Callable[[], UUID] = uuid4

    def issue(self, client_id: str, organization_id: UUID | None, scopes: Sequence[str]) -> str:
        """Return a signed token; without an organization its claim is left out."""
        key = self.keys.newest()
        issued_at = int(self.clock().timestamp())
        claims = {
            "iss": self.issuer,
            "aud": self.audience,
            "sub": client_id,
            "client_id": client_id,
            "iat": issued_at,
            "exp": issued_at + self.ttl_s,
            "jti": str(self.new_id()),
            "scope": " ".join(scopes),
        }
        if organization_id is not None:
            claims["organization"] = str(organization_id)
        headers = {"kid": key.kid, "typ": TYPE}
        signing = _prepared(key, to_sign=True)
        return str(jwt.encode(claims, signing, algorithm=key.algorithm, headers=headers))


@dataclass(eq=False)
class TokenVerifier:
    """Verifies access tokens that this installation has issued; thread-safe."""

    keys: KeyRing
    issuer: str
    audience: str
    clock: Clock
    _proven: dict[str, _Proven] = field(default_factory=dict, init=False)

    def verify(self, token: str, now: datetime) -> Claims:
        """Return the claims of a token that is valid now; Unauthorized for anything else.

        The refusal says what is wrong. It neither quotes the token nor is chained to an error that
        might. Raises SigningKeysError while there are no keys to verify with.
        """
        wrong = MALFORMED
        try:
            return self._read(token, now)
        except SigningKeysError:  # Nothing is wrong with the token; it just cannot be verified.
            raise
        except Unauthorized as refusal:
            wrong = str(refusal)
        except Exception:  # noqa: BLE001, S110 - A hostile text may make the parsers raise anything.
            pass
        raise Unauthorized(wrong)

    def proven(self, token: str) -> Claims | None:
        """Return the claims of a token that was verified before and is not over; None for others.

        That is enough to know whose it is: a key may have been revoked since.
        """
        proven = self._proven.get(token)
        return proven.claims if proven and self.clock() < proven.claims.expires_at else None

    def _read(self, token: str, now: datetime) -> Claims:
        proven = self._proven.get(token)
        if proven is None or self.keys.verification_key(proven.key.kid, now) is not proven.key:
            proven = self._prove(token)
            if len(self._proven) >= _PROVEN_MAX:
                self._proven.clear()
            self._proven[token] = proven
        _require(now - _LEEWAY < proven.claims.expires_at, EXPIRED)
        _require(proven.valid_from <= now + _LEEWAY, NOT_YET)
        return proven.claims

    def _prove(self, token: str) -> "_Proven":
        """Check everything about a token that does not depend on the time."""
        header, payload = _open(token)
        key = self._key_of(_parse(header))
        try:
            jws.verify(token, _prepared(key), [key.algorithm])
        except JWSError:
            raise Unauthorized(WRONG_SIGNATURE) from None
        claims = _parse(payload)
        _require(claims["aud"] == self.audience, WRONG_AUDIENCE)
        _require(claims["iss"] == self.issuer, WRONG_ISSUER)
        starts_at = max(_moment(claims["iat"]), _moment(claims.get("nbf", claims["iat"])))
        return _Proven(key, starts_at, _claims(claims))

    def _key_of(self, header: dict[str, Any]) -> Key:
        _require(header.keys() == _HEADER)
        _require(header["typ"].lower() in _TYPES)
        kid = header["kid"]
        key = self.keys.verification_key(kid)
        if key is None:
            raise Unauthorized(REVOKED_KEY if kid in self.keys.revoked() else UNKNOWN_KEY)
        _require(header["alg"] == key.algorithm, WRONG_SIGNATURE)
        return key


def _open(token: str) -> tuple[bytes, bytes]:
    """Return header and payload of three segments that are strict base64url."""
    _require(len(token) <= TOKEN_CHARS_MAX)
    segments = _SEGMENTS.fullmatch(token)
    if segments is None:
        raise Unauthorized(MALFORMED)
    _require(len(segments[1]) <= HEADER_CHARS_MAX)
    header, payload, _ = (_decode(segment) for segment in segments.groups())
    return header, payload


def _decode(segment: str) -> bytes:
    decoded = urlsafe_b64decode(segment + "=" * (-len(segment) % 4))
    # The unused bits of the last character must be zero, or a token could be written in many ways.
    _require(urlsafe_b64encode(decoded).rstrip(b"=") == segment.encode())
    return decoded


def _parse(segment: bytes) -> dict[str, Any]:
    parsed = strict_json.parse(segment)
    _require(isinstance(parsed, dict))
    return dict(parsed)


def _claims(claims: dict[str, Any]) -> Claims:
    client_id = _text(claims["client_id"])
    _require(claims["sub"] == client_id)
    organization_id = None
    if "organization" in claims:
        organization_id = UUID(_text(claims["organization"]))
        _require(str(organization_id) == claims["organization"])
    _require(isinstance(claims["scope"], str))
    return Claims(
        client_id=client_id,
        organization_id=organization_id,
        scopes=frozenset(filter(None, claims["scope"].split(" "))),
        token_id=_text(claims["jti"]),
        expires_at=_moment(claims["exp"]),
    )


def _text(value: object) -> str:
    # The database takes neither a NUL nor half a letter.
    if not isinstance(value, str) or not value or not value.isprintable():
        raise Unauthorized(MALFORMED)
    return value


def _moment(value: object) -> datetime:
    """Read a NumericDate (RFC 7519 §2); `datetime` raises its own errors if it is out of range."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unauthorized(MALFORMED)
    return datetime.fromtimestamp(value, UTC)


def _require(condition: bool, wrong: str = MALFORMED) -> None:  # noqa: FBT001 - It reads as a sentence at each call.
    if not condition:
        raise Unauthorized(wrong)
