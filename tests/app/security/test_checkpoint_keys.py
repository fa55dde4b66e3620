"""The keys of checkpoints: made once, kept for ever, and no trouble to the keys of tokens."""

from datetime import timedelta
from pathlib import Path

import pytest

from app.security.checkpoint_keys import CheckpointKeys, verify
from app.security.key_file import SigningKeysError, read_keys
from tests.installation import SetClock


def test_a_key_is_made_once_and_older_ones_stay(tmp_path: Path) -> None:
    clock, directory = SetClock(), tmp_path / "keys"
    assert CheckpointKeys(directory, clock).live() == []
    first = CheckpointKeys(directory, clock).newest()
    assert CheckpointKeys(directory, clock).newest().public_key == first.public_key
    clock.now += timedelta(seconds=1)
    CheckpointKeys(directory, clock).rotate()
    second = CheckpointKeys(directory, clock).newest()
    kept = CheckpointKeys(directory, clock)
    assert second.public_key != first.public_key
    assert [key.public_key for key in kept.live()] == [first.public_key, second.public_key]
    assert verify(first.public_key, b"text", first.private_key.sign(b"text"))
    assert not verify(second.public_key, b"text", first.private_key.sign(b"text"))
    assert not verify(b"short", b"text", first.private_key.sign(b"text"))
    assert read_keys(directory, {}) == {}, "the ring of tokens must not see them"
    assert {path.stat().st_mode & 0o777 for path in directory.glob("*.key")} == {0o600}


def test_a_file_that_is_no_such_key_is_named(tmp_path: Path) -> None:
    keys = CheckpointKeys(tmp_path / "keys", SetClock())
    keys.newest()
    (path,) = (tmp_path / "keys").glob("*.key")
    path.write_text("nothing")
    with pytest.raises(SigningKeysError, match=path.name):
        keys.newest()
