"""A checkpoint is a signed note as other tools read and write it, or it is refused."""

from base64 import b64decode
from datetime import UTC, datetime

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from app.security.checkpoint_keys import CheckpointKey, verify
from projections.audit.checkpoint import (
    Checkpoint,
    NotACheckpoint,
    SignedCheckpoint,
    key_id_of,
    read_verifier_key,
    verifier_key,
)

AT = datetime(2026, 11, 23, 3, 4, 5, 678_000, tzinfo=UTC)
CHECKPOINT = Checkpoint("api.example.com", 7, bytes(range(32)), 9, AT)

# The example of Go's package `note`, from which the form comes.
GO_KEY = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
GO_TEXT = (
    "If you think cryptography is the answer to your problem,\n"
    "then you don't know what your problem is.\n"
)
GO_SIGNED = (
    "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM="
)


def new_key() -> CheckpointKey:
    return CheckpointKey(AT, Ed25519PrivateKey.generate())


def test_keys_and_signatures_are_those_of_other_tools() -> None:
    public_key, signed = read_verifier_key(GO_KEY), b64decode(GO_SIGNED)
    assert signed[:4] == key_id_of("PeterNeumann", public_key)
    assert verify(public_key, GO_TEXT.encode(), signed[4:])
    assert verifier_key("PeterNeumann", public_key) == GO_KEY


def test_a_note_says_what_was_signed_and_by_whom() -> None:
    key = new_key()
    signed = SignedCheckpoint.make(CHECKPOINT, key.public_key, key.private_key.sign)
    assert signed.note.split("\n\n")[0].splitlines() == [
        "api.example.com",
        "7",
        "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        "position 9",
        "time 2026-11-23T03:04:05.678Z",
    ]
    read = SignedCheckpoint.read(signed.note)
    assert read == signed
    assert read.fault([new_key().public_key, key.public_key], verify) is None
    assert "is not known" in (read.fault([new_key().public_key], verify) or "")
    forged = SignedCheckpoint.read(signed.note.replace("\n7\n", "\n8\n"))
    assert "is wrong" in (forged.fault([key.public_key], verify) or "")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("\n7\n", "\n07\n"),
        ("\n7\n", "\n-7\n"),
        ("position 9", "position"),
        ("time 2026", "time 26"),
        ("2026-11", "2026-13"),
        ("Hh8=", "Hh9="),  # The bits that the padding leaves over.
        ("api.example.com\n", "api example\n"),
        ("\n\n", "\nmore\n\n"),
        ("\u2014 ", "- "),
        ("\n\n\u2014", "\n\u2014"),
        ("AAEC", "AAE"),
    ],
)
def test_what_is_no_checkpoint_is_refused(old: str, new: str) -> None:
    key = new_key()
    note = SignedCheckpoint.make(CHECKPOINT, key.public_key, key.private_key.sign).note
    assert old in note
    with pytest.raises(NotACheckpoint):
        SignedCheckpoint.read(note.replace(old, new, 1))


WRONG_KEYS = ["", "a+b", "a+0+ä", "a+00000000+AAAA", GO_KEY.replace("c7", "c8")]


@pytest.mark.parametrize("text", WRONG_KEYS)
def test_what_is_no_verifier_key_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not the public key"):
        read_verifier_key(text)
