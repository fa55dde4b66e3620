"""Forged claims: the signature is right, and one claim is wrong in one way."""

import json

from tests.app.security.forge import DEEP, GONE, ORGANIZATION, Forge


def forged_claims(forge: Forge) -> dict[str, str]:
    return {**_times(forge), **_parties(forge), **_bearers(forge), **_payloads(forge)}


def _times(forge: Forge) -> dict[str, str]:
    now = int(forge.now.timestamp())
    return {
        "no exp": forge.with_claims(exp=GONE),
        "an exp in the past": forge.with_claims(iat=now - 7200, exp=now - 31),
        "an exp that is a string": forge.with_claims(exp=str(now + 3600)),
        "an exp that is null": forge.with_claims(exp=None),
        "an exp that is true": forge.with_claims(exp=True),
        "an exp that is a list": forge.with_claims(exp=[now + 3600]),
        "an exp that is no number": forge.with_claims(exp=float("nan")),
        "an exp without end": forge.with_claims(exp=float("inf")),
        "an exp past every calendar": forge.with_claims(exp=10**30),
        "an exp of many digits": forge.with_claims(exp=10**4000),
        "an exp in milliseconds": forge.with_claims(exp=(now + 3600) * 1000),
        "an exp below zero": forge.with_claims(exp=-(now + 3600)),
        "no iat": forge.with_claims(iat=GONE),
        "an iat in the future": forge.with_claims(iat=now + 3000),
        "an iat that is a string": forge.with_claims(iat=str(now)),
        "an iat that is true": forge.with_claims(iat=True),
        "an iat that is no number": forge.with_claims(iat=float("nan")),
        "an nbf in the future": forge.with_claims(nbf=now + 3000),
        "an nbf that is a string": forge.with_claims(nbf=str(now)),
        "an nbf that is null": forge.with_claims(nbf=None),
    }


def _parties(forge: Forge) -> dict[str, str]:
    return {
        "another audience": forge.with_claims(aud="https://elsewhere.example"),
        "a list of audiences": forge.with_claims(aud=[forge.audience, "https://elsewhere.example"]),
        "a list of one audience": forge.with_claims(aud=[forge.audience]),
        "no audience": forge.with_claims(aud=GONE),
        "an audience that is null": forge.with_claims(aud=None),
        "an audience that begins alike": forge.with_claims(aud=f"{forge.audience}.evil.example"),
        "an audience that is cut": forge.with_claims(aud=forge.audience[:-1]),
        "another issuer": forge.with_claims(iss="https://elsewhere.example"),
        "an issuer with a slash more": forge.with_claims(iss=f"{forge.issuer}/"),
        "a list of one issuer": forge.with_claims(iss=[forge.issuer]),
        "no issuer": forge.with_claims(iss=GONE),
        "an issuer that is null": forge.with_claims(iss=None),
    }


def _bearers(forge: Forge) -> dict[str, str]:
    organizations = {
        "malformed": "not-an-organization",
        "empty": "",
        "null": None,
        "a list": [forge.organization],
        "an object": {"id": forge.organization},
        "a number": 7,
        "in upper case": ORGANIZATION.upper(),
        "in braces": f"{{{forge.organization}}}",
        "a URN": f"urn:uuid:{forge.organization}",
        "without hyphens": forge.organization.replace("-", ""),
        "with a space": f"{forge.organization} ",
    }
    return {
        **{
            f"an organization that is {name}": forge.with_claims(organization=value)
            for name, value in organizations.items()
        },
        "a subject that is another client": forge.with_claims(sub="cl_ffffffffffffffffffffffff"),
        "a client that is not the subject": forge.with_claims(client_id="cl_" + "f" * 24),
        "no subject": forge.with_claims(sub=GONE),
        "no client": forge.with_claims(client_id=GONE),
        "subject and client empty": forge.with_claims(sub="", client_id=""),
        "subject and client a number": forge.with_claims(sub=7, client_id=7),
        "subject and client with a NUL": forge.with_claims(sub="cl_\0", client_id="cl_\0"),
        "subject and client of half a letter": forge.with_claims(sub="\ud800", client_id="\ud800"),
        "no scope": forge.with_claims(scope=GONE),
        "a scope that is a list": forge.with_claims(scope=["lookup"]),
        "a scope that is null": forge.with_claims(scope=None),
        "no jti": forge.with_claims(jti=GONE),
        "a jti that is a number": forge.with_claims(jti=7),
        "an empty jti": forge.with_claims(jti=""),
        "a jti with a NUL": forge.with_claims(jti="a\0b"),
    }


def _payloads(forge: Forge) -> dict[str, str]:
    text = json.dumps(forge.claims())
    nested = text[:-1] + ', "deep": ' + "[" * DEEP + "]" * DEEP + "}"
    return {
        "a payload that is a list": forge.token(claims=json.dumps([forge.claims()]).encode()),
        "a payload that is a string": forge.token(claims=b'"lookup"'),
        "a payload that is not JSON": forge.token(claims=b"iss=evil"),
        "a payload that is not UTF-8": forge.token(claims=b"\xff" + text.encode()),
        "a deeply nested payload": forge.token(claims=nested.encode()),
        "a member that is no number": forge.with_claims(risk=float("nan")),
        "two organizations": forge.token(
            claims=text.replace("{", f'{{"organization": "{ORGANIZATION}", ', 1).encode()
        ),
        "two exps": forge.token(claims=text.replace("{", '{"exp": 9999999999, ', 1).encode()),
        "two members of one name deep inside": forge.token(
            claims=(text[:-1] + ', "act": {"sub": "a", "sub": "b"}}').encode()
        ),
    }
