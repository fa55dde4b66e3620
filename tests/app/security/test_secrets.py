"""Client ids and secrets: their form, their randomness, and comparisons that reveal nothing."""

import hashlib
import hmac
import re
from pathlib import Path
from unittest.mock import patch

import pytest

from app.security.keys import Pepper
from app.security.secrets import SecretHasher, new_client_id, new_client_secret
from domain.cause import utc_now

PEPPER = b"a pepper of the kitchen"


@pytest.fixture
def hasher() -> SecretHasher:
    return SecretHasher(Pepper(Path("nowhere"), utc_now, lambda: False, PEPPER))


def test_ids_and_secrets_have_a_form_and_no_two_are_alike() -> None:
    assert re.fullmatch(r"cl_[0-9a-f]{24}", new_client_id())
    assert re.fullmatch(r"cls_[A-Za-z0-9_-]{43}", new_client_secret()), "256 bits"
    assert new_client_id() != new_client_id()
    assert new_client_secret() != new_client_secret()


def test_a_hash_is_the_hmac_sha256_of_the_secret_under_the_pepper(hasher: SecretHasher) -> None:
    expected = hmac.new(PEPPER, b"cls_abc", hashlib.sha256).hexdigest()
    assert hasher.hash("cls_abc") == expected
    assert "kitchen" not in repr(hasher)


def test_both_secrets_of_a_rotation_match_and_no_other_of_any_shape(hasher: SecretHasher) -> None:
    stored = [hasher.hash("cls_old"), hasher.hash("cls_new")]
    assert hasher.matches("cls_old", stored)
    assert hasher.matches("cls_new", stored)
    for other in ("cls_other", "", " cls_old", "cls_old\n", "CLS_OLD", "\ud800", "ключ", "\0"):
        assert not hasher.matches(other, stored), other
    assert not hasher.matches("cls_old", [])


@pytest.mark.parametrize("hashes", [0, 1, 2])
def test_whoever_asks_costs_as_many_comparisons(hasher: SecretHasher, hashes: int) -> None:
    stored = [hasher.hash(f"cls_{number}") for number in range(hashes)]
    for secret in ("cls_wrong", "cls_0"):  # A match does not end the comparing early.
        with patch("hmac.compare_digest", wraps=hmac.compare_digest) as compared:
            found = hasher.matches(secret, stored)
        assert bool(found) is (secret == "cls_0" and hashes > 0)
        assert compared.call_count == 2
        assert {len(call.args[1]) for call in compared.call_args_list} == {64}
