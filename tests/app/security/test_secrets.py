"""Client ids and secrets: their form, their randomness, and comparisons that reveal nothing."""

import hashlib
import hmac
import re
from pathlib import Path
from random import Random
from secrets import token_bytes
from unittest.mock import patch

import pytest

from app.security.keys import Pepper
from app.security.secrets import SecretHasher, new_client_id, new_client_secret
from domain.cause import utc_now

PEPPER = b"a pepper of the kitchen"


def hasher_of(setting: bytes) -> SecretHasher:
    return SecretHasher(Pepper(Path("nowhere"), utc_now, lambda: False, setting))


def test_a_client_id_is_cl_and_24_lowercase_hexadecimal_digits() -> None:
    assert re.fullmatch(r"cl_[0-9a-f]{24}", new_client_id(token_bytes))


def test_a_secret_has_a_recognisable_prefix_and_256_bits() -> None:
    secret = new_client_secret(token_bytes)
    assert re.fullmatch(r"cls_[A-Za-z0-9_-]{43}", secret)


def test_ids_and_secrets_come_from_the_randomness_given_and_nowhere_else() -> None:
    first, second = Random(7).randbytes, Random(7).randbytes
    assert new_client_id(first) == new_client_id(second)
    assert new_client_secret(first) == new_client_secret(second)
    assert new_client_secret(first) != new_client_secret(first)


def test_a_hash_is_the_hmac_sha256_of_the_secret_under_the_pepper() -> None:
    expected = hmac.new(PEPPER, b"cls_abc", hashlib.sha256).hexdigest()
    assert hasher_of(PEPPER).hash("cls_abc") == expected


def test_both_secrets_of_a_rotation_match() -> None:
    hasher = hasher_of(PEPPER)
    stored = [hasher.hash("cls_old"), hasher.hash("cls_new")]
    assert hasher.matches("cls_old", stored)
    assert hasher.matches("cls_new", stored)
    assert not hasher.matches("cls_other", stored)


@pytest.mark.parametrize("secret", ["", " cls_abc", "cls_abc\n", "CLS_ABC", "\ud800", "ключ", "\0"])
def test_a_wrong_secret_of_any_shape_is_no_match_and_no_error(secret: str) -> None:
    hasher = hasher_of(PEPPER)
    assert not hasher.matches(secret, [hasher.hash("cls_abc")])


def test_no_secret_matches_a_client_that_does_not_exist() -> None:
    assert not hasher_of(PEPPER).matches("cls_abc", [])


@pytest.mark.parametrize("hashes", [0, 1, 2])
def test_an_unknown_client_costs_as_many_comparisons_as_a_wrong_secret(hashes: int) -> None:
    hasher = hasher_of(PEPPER)
    stored = [hasher.hash(f"cls_{number}") for number in range(hashes)]
    with patch("hmac.compare_digest", wraps=hmac.compare_digest) as compared:
        hasher.matches("cls_wrong", stored)
    assert compared.call_count == 2
    assert {len(call.args[1]) for call in compared.call_args_list} == {64}


def test_a_match_does_not_end_the_comparing_early() -> None:
    hasher = hasher_of(PEPPER)
    stored = [hasher.hash("cls_old"), hasher.hash("cls_new")]
    with patch("hmac.compare_digest", wraps=hmac.compare_digest) as compared:
        assert hasher.matches("cls_old", stored)
    assert compared.call_count == 2


def test_neither_pepper_nor_secret_shows_in_the_text_of_a_hasher() -> None:
    assert "kitchen" not in repr(hasher_of(PEPPER))
