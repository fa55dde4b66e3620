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
    long, wrong = forge.algorithm[:2] + "512", (GONE, "", [forge.algorithm], "EdDSA")
    for name in ("none", *wrong, forge.algorithm.lower(), other, long):
        unsigned[f"signed as {name!r}"] = forge.with_header(alg=name)
    return unsigned | {
        "HS256 with the public key as PEM": forge.signed_by_mac(pem),
        "HS256 with the public key as PEM without its last newline": forge.signed_by_mac(pem[:-1]),
        "HS256 with the public key as DER": forge.signed_by_mac(der),
        "HS512 with the public key as DER": forge.signed_by_mac(der, "HS512"),
        "HS256 with an empty secret": forge.signed_by_mac(b""),
        "HS256 with the kid as secret": forge.signed_by_mac(forge.kid.encode()),
    }


def _key_ids(forge: Forge, other_kid: str) -> dict[str, str]:
    other, kid = "ES256" if forge.algorithm == "RS256" else "RS256", forge.kid
    odd = (f"{kid}0", f"../keys/{kid}", f"{kid}\0", f"{kid}\n", f"{kid}' OR '1'='1")
    wrong = (UNKNOWN_KID, GONE, "", None, 0, [kid], *odd)
    return {f"the kid {each!r}": forge.with_header(kid=each) for each in wrong} | {
        "the kid of another key": forge.with_header(kid=other_kid),
        "the kid of another key with its algorithm": forge.with_header(kid=other_kid, alg=other),
    }


def _headers(forge: Forge) -> dict[str, str]:
    stranger = replace(forge, key=stranger_of(forge.key))
    jwk = {"kty": "oct", "k": base64url(b"secret"), "kid": forge.kid}
    twin_alg = json.dumps(forge.header()).replace("{", '{"alg": "none", ', 1).encode()
    twin_kid = json.dumps(forge.header()).replace("{", f'{{"kid": "{UNKNOWN_KID}", ', 1).encode()
    text, nested = json.dumps(forge.header()), b'{"typ":' + b"[" * DEEP + b"]" * DEEP + b"}"
    changed: list[dict[str, object]] = [
        *({"typ": each} for each in ("JWT", GONE, ["at+jwt"], "at+jwt ", "id+jwt")),
        {"crit": ["exp2"], "exp2": 1},
        {"crit": []},
        {"crit": ["b64"], "b64": False},
        {"jku": "https://evil.example/jwks.json"},
        {"jwk": jwk},
        {"x5u": "https://evil.example/chain.pem"},
        {"x5c": ["MIIB"]},
        {"enc": "A256GCM", "zip": "DEF"},
    ]
    raw = [nested, b"[" * (2 * DEEP), f"[{text}]".encode(), b'"at+jwt"', b"{alg: RS256}"]
    raw += [text.encode("utf-16"), text.encode("utf-8-sig"), text.encode() + b" " * 4096]
    return {
        **{f"a header with {each!r:.80}": forge.with_header(**each) for each in changed},
        **{f"a header {each[:80]!r}": forge.token(header=each) for each in raw},
        "a stranger's key as jwk": stranger.with_header(jwk=jwk),
        "two algorithms": forge.token(header=twin_alg),
        "two kids": forge.token(header=twin_kid),
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
