"""Forged claims: the signature is right, and one claim is wrong in one way."""

import json
from collections.abc import Iterable, Iterator

from tests.app.security.forge import DEEP, GONE, ORGANIZATION, Forge

Changes = dict[str, object]


def forged_claims(forge: Forge) -> dict[str, str]:
    wrong = [*_times(forge), *_parties(forge), *_bearers(forge)]
    named = {f"{number}: {each!r:.80}": each for number, each in enumerate(wrong)}
    return {name: forge.with_claims(**each) for name, each in named.items()} | _payloads(forge)


def _each(claim: str, values: Iterable[object]) -> Iterator[Changes]:
    return ({claim: value} for value in values)


def _times(forge: Forge) -> Iterator[Changes]:
    now = int(forge.now.timestamp())
    ends, nothing = now + 3600, float("nan")
    yield {"iat": now - 7200, "exp": now - 31}
    yield from _each("exp", [GONE, str(ends), None, True, [ends], nothing, float("inf")])
    yield from _each("exp", [10**30, 10**4000, ends * 1000, -ends])
    yield from _each("iat", [GONE, now + 3000, str(now), True, nothing])
    yield from _each("nbf", [now + 3000, str(now), None])
    yield {"risk": nothing}


def _parties(forge: Forge) -> Iterator[Changes]:
    its, issuer, elsewhere = forge.audience, forge.issuer, "https://elsewhere.example"
    yield from _each("aud", [elsewhere, [its, elsewhere], [its], GONE, None])
    yield from _each("aud", [f"{its}.evil.example", its[:-1]])
    yield from _each("iss", [elsewhere, f"{issuer}/", [issuer], GONE, None])


def _bearers(forge: Forge) -> Iterator[Changes]:
    its, other = forge.organization, "cl_" + "f" * 24
    yield from _each("organization", ["not-an-organization", "", None, [its], {"id": its}, 7])
    yield from _each("organization", [ORGANIZATION.upper(), f"{{{its}}}", f"urn:uuid:{its}"])
    yield from _each("organization", [its.replace("-", ""), f"{its} "])
    yield from _each("sub", [other, GONE])
    yield from _each("client_id", [other, GONE])
    yield from ({"sub": each, "client_id": each} for each in ("", 7, "cl_\0", "\ud800"))
    yield from _each("scope", [GONE, ["lookup"], None])
    yield from _each("jti", [GONE, 7, "", "a\0b"])


def _payloads(forge: Forge) -> dict[str, str]:
    text = json.dumps(forge.claims())
    nested = text[:-1] + ', "deep": ' + "[" * DEEP + "]" * DEEP + "}"
    return {
        "a payload that is a list": forge.token(claims=json.dumps([forge.claims()]).encode()),
        "a payload that is a string": forge.token(claims=b'"lookup"'),
        "a payload that is not JSON": forge.token(claims=b"iss=evil"),
        "a payload that is not UTF-8": forge.token(claims=b"\xff" + text.encode()),
        "a deeply nested payload": forge.token(claims=nested.encode()),
        "two organizations": forge.token(
            claims=text.replace("{", f'{{"organization": "{ORGANIZATION}", ', 1).encode()
        ),
        "two exps": forge.token(claims=text.replace("{", '{"exp": 9999999999, ', 1).encode()),
        "two members of one name deep inside": forge.token(
            claims=(text[:-1] + ', "act": {"sub": "a", "sub": "b"}}').encode()
        ),
    }
