"""Makes tokens by hand, honest or not, from the JSON text up and without any JWT library."""

import hmac
import json
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
Part = Mapping[str, object] | bytes

CLIENT_ID = "cl_0123456789abcdef01234567"
ORGANIZATION = "0f0e0d0c-0b0a-4908-8706-050403020100"
DEEP = 1500  # Brackets: past Python's recursion limit, and inside the limits of size.
GONE = object()  # As the value of a member: leave it out.


def base64url(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()


def load(pem: bytes) -> PrivateKey:
    key = load_pem_private_key(pem, None)
    assert isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey)
    return key


def stranger_of(key: PrivateKey) -> PrivateKey:
    """Make another key of the same type."""
    if isinstance(key, rsa.RSAPrivateKey):
        return rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return ec.generate_private_key(ec.SECP256R1())


def sign(key: PrivateKey, message: bytes) -> bytes:
    """Sign as RS256 or ES256 has it (RFC 7518 §3.3, §3.4)."""
    if isinstance(key, rsa.RSAPrivateKey):
        return key.sign(message, padding.PKCS1v15(), hashes.SHA256())
    r, s = decode_dss_signature(key.sign(message, ec.ECDSA(hashes.SHA256())))
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")


@dataclass(frozen=True)
class Forge:
    """All that an honest token is made of, and a hand that may change any of it."""

    key: PrivateKey
    kid: str
    issuer: str
    audience: str
    now: datetime
    client_id: str
    organization: str

    @property
    def algorithm(self) -> str:
        return "RS256" if isinstance(self.key, rsa.RSAPrivateKey) else "ES256"

    def header(self, **changes: object) -> dict[str, object]:
        header = {"alg": self.algorithm, "kid": self.kid, "typ": "at+jwt", **changes}
        return {name: value for name, value in header.items() if value is not GONE}

    def claims(self, **changes: object) -> dict[str, object]:
        issued_at = int(self.now.timestamp())
        claims = {
            "iss": self.issuer,
            "aud": self.audience,
            "sub": self.client_id,
            "client_id": self.client_id,
            "iat": issued_at,
            "exp": issued_at + 3600,
            "jti": "b7b0c0de-1111-4222-8333-444455556666",
            "scope": "lookup wallet",
            "organization": self.organization,
            **changes,
        }
        return {name: value for name, value in claims.items() if value is not GONE}

    def message(self, header: Part | None = None, claims: Part | None = None) -> str:
        """Return the first two segments."""
        parts = (self.header() if header is None else header, claims or self.claims())
        return ".".join(
            base64url(part if isinstance(part, bytes) else json.dumps(part).encode())
            for part in parts
        )

    def token(self, header: Part | None = None, claims: Part | None = None) -> str:
        """Return a token that is signed as it should be, whatever it says."""
        message = self.message(header, claims)
        return self.joined(message, sign(self.key, message.encode()))

    def with_header(self, **changes: object) -> str:
        return self.token(header=self.header(**changes))

    def with_claims(self, **changes: object) -> str:
        return self.token(claims=self.claims(**changes))

    def joined(self, message: str, signature: bytes) -> str:
        return f"{message}.{base64url(signature)}"

    def signed_by_mac(self, secret: bytes, algorithm: str = "HS256") -> str:
        """Return the token of a forger who takes public bytes for a shared secret."""
        message = self.message(self.header(alg=algorithm))
        digest = {"HS256": "sha256", "HS384": "sha384", "HS512": "sha512"}[algorithm]
        return self.joined(message, hmac.digest(secret, message.encode(), digest))

    def public(self, encoding: Encoding) -> bytes:
        return self.key.public_key().public_bytes(encoding, PublicFormat.SubjectPublicKeyInfo)
