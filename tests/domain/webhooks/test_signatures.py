"""Signatures that the library of Standard Webhooks accepts, by secrets that nobody keeps."""

from base64 import b64decode
from itertools import product
from uuid import UUID

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from domain.cause import utc_now
from domain.webhooks.signatures import Generation, WebhookSigner

ENDPOINT, OTHER = UUID(int=1), UUID(int=2)
BODY = '{"type":"link.activated","timestamp":"2026-11-23T15:00:00Z","data":{"ü":1}}'
KEYS = {None: b"k" * 32, "later": b"K" * 32}
signer = WebhookSigner(KEYS.get)


def secret(endpoint_id: UUID, generation: int, key_id: str | None = None) -> str:
    return signer.secret(endpoint_id, Generation(generation, key_id))


def headers(*generations: int) -> dict[str, str]:
    now_s = int(utc_now().timestamp())
    of = [Generation(each) for each in generations]
    signed = signer.sign(ENDPOINT, of, "msg-1", now_s, BODY.encode())
    return {"webhook-id": "msg-1", "webhook-timestamp": str(now_s), "webhook-signature": signed}


def test_a_secret_differs_by_endpoint_generation_and_key_and_is_told_again() -> None:
    secrets = {secret(*of) for of in product((ENDPOINT, OTHER), (1, 2))}
    secrets.add(secret(ENDPOINT, 1, "later"))
    assert len(secrets) == 5
    assert secret(ENDPOINT, 1) == secret(ENDPOINT, 1)
    assert all(len(b64decode(each.removeprefix("whsec_"))) == 32 for each in secrets)


def test_during_a_rotation_both_secrets_verify() -> None:
    for generation in (1, 2):
        told = Webhook(secret(ENDPOINT, generation)).verify(BODY, headers(2, 1))
        assert told["data"] == {"ü": 1}
    with pytest.raises(WebhookVerificationError):
        Webhook(secret(ENDPOINT, 1)).verify(BODY, headers(2))


def test_a_secret_of_a_revoked_key_signs_nothing_beside_one_that_does() -> None:
    revoked, good = Generation(1, "revoked"), Generation(2, "later")
    assert signer.secret(ENDPOINT, revoked) is None
    only = signer.sign(ENDPOINT, [good], "m", 1, b"")
    assert signer.sign(ENDPOINT, [good, revoked], "m", 1, b"") == only
    assert signer.sign(ENDPOINT, [revoked], "m", 1, b"") == ""
