"""The files of keys and pepper: who may read them, and what is refused instead of them."""

from pathlib import Path
from stat import S_IMODE

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from app.security.key_file import Algorithm, SigningKeysError
from app.security.keys import KeyRing, Pepper
from domain.cause import utc_now
from tests.app.security.rings import ALGORITHMS, ring_of
from tests.installation import SetClock


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_first_start_makes_a_private_directory_and_one_key(
    directory: Path, clock: SetClock, algorithm: Algorithm
) -> None:
    ring = ring_of(directory, clock, algorithm)
    ring.ensure()
    key = ring.newest()
    file = directory / f"{key.kid}.pem"
    assert key.algorithm == algorithm
    assert S_IMODE(directory.stat().st_mode) == 0o700
    assert {S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {0o600}
    assert file.read_bytes().count(b"-----BEGIN PRIVATE KEY-----") == 1
    load_pem_private_key(file.read_bytes(), None)


def test_what_is_no_directory_of_our_own_is_refused_in_one_line_that_names_the_setting(
    ring: KeyRing, directory: Path, clock: SetClock
) -> None:
    for mode in (0o755, 0o750, 0o701, 0o770):
        directory.chmod(mode)
        for refused in (ring.ensure, ring.rotate, lambda: pepper_of(directory)):
            with pytest.raises(SigningKeysError, match=r"\ASIGNING_KEYS: [^\n]*0700\Z"):
                refused()
    (path := directory.with_name("file")).write_text("")
    with pytest.raises(SigningKeysError, match=r"\ASIGNING_KEYS: [^\n]*\Z"):
        ring_of(path, clock).ensure()


def spoil(content: bytes) -> list[bytes]:
    text, _, pem = content.partition(b"-----BEGIN")
    return [b"", pem, b"-----BEGIN" + pem, text, text + b"-----BEGIN PRIVATE KEY-----\nAAAA\n"]


def test_a_file_that_is_no_key_stops_the_start_and_shows_nothing_of_itself(
    ring: KeyRing, directory: Path, clock: SetClock
) -> None:
    file = directory / f"{ring.newest().kid}.pem"
    whole = file.read_bytes()
    for content in spoil(whole):
        file.write_bytes(content)
        with pytest.raises(SigningKeysError, match=r"is not a signing key") as refusal:
            ring_of(directory, clock).ensure()
        assert refusal.value.__context__ is None
    file.write_bytes(whole)
    file.rename(directory / f"{'0' * 32}.pem")
    with pytest.raises(SigningKeysError, match="is not a signing key"):
        ring_of(directory, clock).ensure()


def test_a_key_that_is_deleted_between_listing_and_reading_is_left_out(
    ring: KeyRing, directory: Path, clock: SetClock
) -> None:
    (directory / f"{'0' * 32}.pem").symlink_to("gone")
    again = ring_of(directory, clock)
    again.ensure()
    assert again.list() == ring.list()


def test_a_draft_that_a_crash_left_is_no_key_and_is_written_over(
    ring: KeyRing, directory: Path
) -> None:
    (directory / ".draft").write_bytes(b"created_at: 2026-11-21T")
    new_kid = ring.rotate()
    assert [key.kid for key in ring.list()][1:] == [new_kid]
    assert not (directory / ".draft").exists()


def pepper_of(directory: Path) -> bytes:
    return Pepper(directory, utc_now, lambda: False).newest().value


def test_a_pepper_is_made_once_and_kept_and_one_that_was_cut_is_refused(directory: Path) -> None:
    pepper = pepper_of(directory)
    assert len(pepper) == 64
    assert pepper_of(directory) == pepper
    file = directory / "pepper"
    assert (file.read_bytes(), S_IMODE(file.stat().st_mode)) == (pepper, 0o600)
    file.write_bytes(pepper + b"\n")  # As an editor ends it.
    assert pepper_of(directory) == pepper
    file.write_bytes(pepper[:10])
    with pytest.raises(SigningKeysError, match="SIGNING_KEYS") as refusal:
        pepper_of(directory)
    assert pepper[:10].decode() not in str(refusal.value)
