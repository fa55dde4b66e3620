"""Forged tokens by name, each wrong in one way only: what the verifier has to refuse.

Most are signed with the real key, so that nothing but their own fault can refuse them.
"""

import json
from dataclasses import replace
from datetime import datetime

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
from cryptography.hazmat.primitives.serialization import Encoding

from tests.app.security.forge import (
    CLIENT_ID,
    DEEP,
    GONE,
    ORGANIZATION,
    Forge,
    PrivateKey,
    base64url,
    load,
    sign,
    stranger_of,
)
from tests.app.security.hostile_claims import forged_claims

UNKNOWN_KID = "0" * 32


def hostile_tokens(forge: Forge, other_kid: str) -> dict[str, str]:
    """Return at least forty forgeries; `other_kid` names another key of the ring."""
    return {
        **_algorithms(forge),
        **_key_ids(forge, other_kid),
        **_headers(forge),
        **_shapes(forge),
        **_spellings(forge),
        **_signatures(forge),
        **forged_claims(forge),
    }


def honest_token(  # noqa: PLR0913 - the later ones let an HTTP test name a client that exists.
    signing_key_pem: bytes,
    kid: str,
    issuer: str,
    audience: str,
    now: datetime,
    *,
    client_id: str = CLIENT_ID,
    organization: str = ORGANIZATION,
) -> str:
    """Return what the forgeries are made from: a token with nothing wrong in it."""
    forge = Forge(load(signing_key_pem), kid, issuer, audience, now, client_id, organization)
    return forge.token()


def _algorithms(forge: Forge) -> dict[str, str]:
    unsigned = {
        f"algorithm {name}, unsigned": forge.message(forge.header(alg=name)) + "."
        for name in ("none", "None", "NONE", "nOnE")
    }
    other = "ES256" if forge.algorithm == "RS256" else "RS256"
    pem, der = forge.public(Encoding.PEM), forge.public(Encoding.DER)
    return unsigned | {
        "algorithm none with a signature": forge.with_header(alg="none"),
        "HS256 with the public key as PEM": forge.signed_by_mac(pem),
        "HS256 with the public key as PEM without its last newline": forge.signed_by_mac(pem[:-1]),
        "HS256 with the public key as DER": forge.signed_by_mac(der),
        "HS512 with the public key as DER": forge.signed_by_mac(der, "HS512"),
        "HS256 with an empty secret": forge.signed_by_mac(b""),
        "HS256 with the kid as secret": forge.signed_by_mac(forge.kid.encode()),
        "no algorithm": forge.with_header(alg=GONE),
        "an empty algorithm": forge.with_header(alg=""),
        "a list of algorithms": forge.with_header(alg=[forge.algorithm]),
        "the algorithm in lower case": forge.with_header(alg=forge.algorithm.lower()),
        "the algorithm of another type of key": forge.with_header(alg=other),
        "the algorithm with a longer hash": forge.with_header(alg=forge.algorithm[:2] + "512"),
        "the algorithm EdDSA": forge.with_header(alg="EdDSA"),
    }


def _key_ids(forge: Forge, other_kid: str) -> dict[str, str]:
    other = "ES256" if forge.algorithm == "RS256" else "RS256"
    return {
        "an unknown kid": forge.with_header(kid=UNKNOWN_KID),
        "the kid of another key": forge.with_header(kid=other_kid),
        "the kid of another key with its algorithm": forge.with_header(kid=other_kid, alg=other),
        "no kid": forge.with_header(kid=GONE),
        "an empty kid": forge.with_header(kid=""),
        "a kid that is null": forge.with_header(kid=None),
        "a kid that is a number": forge.with_header(kid=0),
        "a kid that is a list": forge.with_header(kid=[forge.kid]),
        "a kid with a digit more": forge.with_header(kid=f"{forge.kid}0"),
        "a kid that leaves its directory": forge.with_header(kid=f"../keys/{forge.kid}"),
        "a kid with a null byte": forge.with_header(kid=f"{forge.kid}\0"),
        "a kid with a newline": forge.with_header(kid=f"{forge.kid}\n"),
        "a kid with a statement": forge.with_header(kid=f"{forge.kid}' OR '1'='1"),
    }


def _headers(forge: Forge) -> dict[str, str]:
    stranger = replace(forge, key=stranger_of(forge.key))
    jwk = {"kty": "oct", "k": base64url(b"secret"), "kid": forge.kid}
    twin_alg = json.dumps(forge.header()).replace("{", '{"alg": "none", ', 1).encode()
    twin_kid = json.dumps(forge.header()).replace("{", f'{{"kid": "{UNKNOWN_KID}", ', 1).encode()
    nested = b'{"typ":' + b"[" * DEEP + b"]" * DEEP + b"}"
    return {
        "type JWT": forge.with_header(typ="JWT"),
        "no type": forge.with_header(typ=GONE),
        "a type that is a list": forge.with_header(typ=["at+jwt"]),
        "a type with a space": forge.with_header(typ="at+jwt "),
        "the type of an identity token": forge.with_header(typ="id+jwt"),
        "an unknown critical extension": forge.with_header(crit=["exp2"], exp2=1),
        "an empty list of critical extensions": forge.with_header(crit=[]),
        "a payload outside base64url": forge.with_header(crit=["b64"], b64=False),
        "a jku": forge.with_header(jku="https://evil.example/jwks.json"),
        "a jwk": forge.with_header(jwk=jwk),
        "a stranger's key as jwk": stranger.with_header(jwk=jwk),
        "an x5u": forge.with_header(x5u="https://evil.example/chain.pem"),
        "an x5c": forge.with_header(x5c=["MIIB"]),
        "an encrypted header": forge.with_header(enc="A256GCM", zip="DEF"),
        "a deeply nested header": forge.token(header=nested),
        "a header of brackets": forge.token(header=b"[" * (2 * DEEP)),
        "a header that is a list": forge.token(header=json.dumps([forge.header()]).encode()),
        "a header that is a string": forge.token(header=b'"at+jwt"'),
        "a header that is not JSON": forge.token(header=b"{alg: RS256}"),
        "a header in UTF-16": forge.token(header=json.dumps(forge.header()).encode("utf-16")),
        "a header with a byte order mark": forge.token(
            header=json.dumps(forge.header()).encode("utf-8-sig")
        ),
        "two algorithms": forge.token(header=twin_alg),
        "two kids": forge.token(header=twin_kid),
        "a header over 4 KiB": forge.token(
            header=json.dumps(forge.header()).encode() + b" " * 4096
        ),
    }


def _shapes(forge: Forge) -> dict[str, str]:
    honest = forge.token()
    header, payload, signature = honest.split(".")
    return {
        "nothing": "",
        "one part": header,
        "two parts": f"{header}.{payload}",
        "four parts": f"{honest}.{signature}",
        "five parts": f"{header}..{payload}.{signature}.",
        "dots": "..",
        "only dots, very many": "." * 8192,
        "an empty header": f".{payload}.{signature}",
        "an empty payload": f"{header}..{signature}",
        "the scheme twice": f"Bearer {honest}",
        "two tokens": f"{honest},{honest}",
        "a giant": forge.with_claims(scope="x" * 8192),
        "a giant that is no token": "A" * 1_000_000,
        "a null byte": f"{honest}\0",
        "a newline at the end": f"{honest}\n",
        "a newline inside": f"{header}.\n{payload}.{signature}",
        "letters outside ASCII": f"{header}.{payload}é.{signature}",
    }


def _spellings(forge: Forge) -> dict[str, str]:
    """Return the honest token in other spellings, which a lenient decoder takes for the same."""
    honest = forge.token()
    header, payload, signature = honest.split(".")
    odd_payload = forge.with_claims(scope="lookup" + "~" * 30 + "?" * 30)
    last = signature[-1]
    return {
        "spaces around": f" {honest} ",
        "a space inside": f"{header}. {payload}.{signature}",
        "padding": f"{header}.{payload}.{signature}==",
        "junk in the signature": f"{header}.{payload}.{signature[:9]}!{signature[9:]}",
        "unused bits set in the signature": honest[:-1] + chr(ord(last) + 1),
        "the alphabet of base64": odd_payload.replace("-", "+").replace("_", "/"),
        "quotes": f'"{honest}"',
        "percent encoding": honest.replace(".", "%2E"),
    }


def _signatures(forge: Forge) -> dict[str, str]:
    message = forge.message()
    right = sign(forge.key, message.encode())
    richer = forge.message(claims=forge.claims(scope="lookup plans links wallet"))
    stranger = replace(forge, key=stranger_of(forge.key))
    return {
        "the signature stripped": f"{message}.",
        "the signature of another payload": forge.joined(richer, right),
        "the signature of a stranger": stranger.token(),
        "a signature of another scheme": forge.joined(message, _other_scheme(forge.key, message)),
        "a signature cut short": forge.joined(message, right[:-1]),
        "a signature with a byte more": forge.joined(message, right + b"\0"),
        "a signature of zeros": forge.joined(message, bytes(len(right))),
        "a signature with one bit turned": forge.joined(message, bytes([right[0] ^ 1]) + right[1:]),
        "a signature over the payload alone": forge.joined(
            message, sign(forge.key, message.partition(".")[2].encode())
        ),
    }


def _other_scheme(key: PrivateKey, message: str) -> bytes:
    """Sign with the right key: PSS for PKCS #1 v1.5, or DER for the raw pair of numbers."""
    if isinstance(key, rsa.RSAPrivateKey):
        pss = padding.PSS(padding.MGF1(hashes.SHA256()), padding.PSS.DIGEST_LENGTH)
        return key.sign(message.encode(), pss, hashes.SHA256())
    return key.sign(message.encode(), ECDSA(hashes.SHA256()))
