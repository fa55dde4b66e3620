"""The ring of signing keys: first start, rotation, retirement, and a directory that breaks."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from app.security import key_store as store_module
from app.security import keys
from app.security.key_file import RECHECK, SETTLE, SigningKeysError
from app.security.keys import KeyRing, Pepper, WebhookKey
from domain.blocking import WouldBlock, forbid_blocking
from tests.app.security.rings import RETIRE_AFTER_S, ring_of
from tests.installation import PATIENCE_S, SetClock
from tests.log_lines import records_of, said_by


def states(ring: KeyRing) -> list[str]:
    return [key.state for key in ring.list()]


def test_a_key_verifies_until_its_last_token_has_ended(ring: KeyRing, clock: SetClock) -> None:
    old = ring.newest().kid
    clock.forward(days=400)
    ring.rotate()
    clock.forward(seconds=RETIRE_AFTER_S)
    assert ring.verification_key(old) is not None
    clock.forward(seconds=SETTLE.total_seconds())
    assert ring.verification_key(old) is None
    assert states(ring) == ["retired", "signing"]
    assert [key["kid"] for key in ring.jwks()["keys"]] == [ring.newest().kid]


def test_a_rotation_deletes_the_retired_keys_only(
    ring: KeyRing, clock: SetClock, directory: Path
) -> None:
    first = ring.newest().kid
    second = ring.rotate()
    clock.forward(seconds=RETIRE_AFTER_S + 60)
    third = ring.rotate()
    assert {path.stem for path in directory.glob("*.pem")} == {second, third}
    assert ring.verification_key(first) is None
    assert states(ring) == ["verifying", "signing"]
    for rotated in (ring, ring_of(directory, clock)):  # By itself, and by another one.
        clock.forward(hours=-2)
        new_kid = rotated.rotate()
        assert ring.newest().kid == new_kid, "the clock was set back"


def test_a_directory_names_its_first_key_for_good(ring: KeyRing, clock: SetClock) -> None:
    first = ring.newest().kid
    for _ in range(2):
        ring.rotate()
        clock.forward(days=1)
    ring.rotate()
    assert ring.verification_key(first) is None
    assert ring.first_kid() == first


def test_no_crash_leaves_a_first_key_that_is_not_named(
    directory: Path, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("write_file", "save_key"):  # It dies at the first, and then at the second step.
        with monkeypatch.context() as dying:
            dying.delattr(keys, name)
            with pytest.raises(NameError):
                ring_of(directory, clock).ensure()
        assert not [*directory.glob("*.pem")]
    ring = ring_of(directory, clock)
    ring.ensure()
    assert ring.first_kid() == ring.newest().kid


def test_another_algorithm_adds_a_key_and_its_retired_one_never_signs_again(
    ring: KeyRing, directory: Path, clock: SetClock
) -> None:
    first = ring.newest()
    clock.forward(days=1)
    changed = ring_of(directory, clock, "RS256")
    changed.ensure()
    verifying = changed.verification_key(first.kid)
    assert (changed.newest().algorithm, verifying.algorithm) == ("RS256", "ES256")
    clock.forward(days=1)
    ring_of(directory, clock, "ES256").ensure()
    clock.forward(seconds=2)
    assert ring.newest().kid != first.kid
    assert ring.newest().algorithm == "ES256"
    assert states(ring) == ["retired", "verifying", "signing"]


@pytest.mark.parametrize(("before_s", "after_s"), [(150, 3630), (3630, 150)])
def test_a_changed_lifetime_retires_no_key_before_its_longest_token(
    directory: Path, clock: SetClock, before_s: int, after_s: int
) -> None:
    ring_of(directory, clock, retire_after_s=before_s).ensure()
    ring = ring_of(directory, clock, retire_after_s=after_s)
    ring.ensure()
    old = ring.newest().kid
    clock.forward(days=1)
    ring.rotate()
    clock.forward(seconds=3630)
    assert ring.verification_key(old) is not None
    clock.forward(seconds=SETTLE.total_seconds())
    assert ring.verification_key(old) is None


def test_a_fresh_key_verifies_elsewhere_although_the_clock_of_the_files_stands_still(
    ring: KeyRing, directory: Path, clock: SetClock
) -> None:
    os.utime(directory, (2**32, 2**32))  # In 2106: no change of today moves this time on.
    ring.list()
    for _ in range(3):
        before_ns = directory.stat().st_mtime_ns
        assert ring.verification_key(ring_of(directory, clock).rotate()) is not None
        assert directory.stat().st_mtime_ns > before_ns


def test_a_key_is_parsed_once_however_often_the_directory_changes(ring: KeyRing) -> None:
    old = ring.newest()
    ring.rotate()
    kept = ring.verification_key(old.kid)
    assert kept.public_key is old.public_key


def test_unknown_kids_read_no_file(
    ring: KeyRing, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ring.newest()
    reads: list[Path] = []
    read_bytes = Path.read_bytes

    def counted(path: Path) -> bytes:
        reads.append(path)
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", counted)
    for number in range(200):
        clock.forward(milliseconds=20)
        assert ring.verification_key(f"{number:032x}") is None
    for kid in ("", "../pepper", "a" * 31, "A" * 32, "a" * 33, "a" * 32 + "\n"):
        assert ring.verification_key(kid) is None
    assert reads == []


def test_a_directory_that_was_emptied_is_said_once_until_it_is_mended(
    ring: KeyRing, directory: Path, clock: SetClock, caplog: pytest.LogCaptureFixture
) -> None:
    kid = ring.newest().kid
    kept = (directory / f"{kid}.pem").rename(directory.with_name("away"))
    for _ in range(50):
        clock.forward(seconds=1)
        with pytest.raises(SigningKeysError, match="holds no signing key"):
            ring.verification_key(kid)
    assert [record.levelname for record in records_of(caplog, store_module.__name__)] == ["ERROR"]
    kept.rename(directory / f"{kid}.pem")
    assert ring.verification_key(kid) is not None
    told = [record.levelname for record in records_of(caplog, store_module.__name__)]
    assert told == ["ERROR", "WARNING"]


def test_a_directory_that_breaks_leaves_the_last_ring_in_use_until_it_is_mended(
    ring: KeyRing, directory: Path, clock: SetClock, caplog: pytest.LogCaptureFixture
) -> None:
    kid = ring.newest().kid
    away = directory.rename(directory.with_name("away"))
    clock.forward(seconds=1)
    assert ring.newest().kid == kid
    assert ring.verification_key(kid) is not None
    for number in range(50):
        clock.forward(seconds=1)
        assert ring.verification_key(f"{number:032x}") is None
    assert len(records_of(caplog, store_module.__name__)) == 1
    away.rename(directory)
    new_kid = ring_of(directory, clock).rotate()
    clock.forward(seconds=1)
    assert ring.newest().kid == new_kid


def test_a_thread_that_must_not_wait_leaves_the_directory_to_others(
    ring: KeyRing, clock: SetClock
) -> None:
    kid = ring.newest().kid
    with forbid_blocking():
        assert ring.verification_key(kid) is not None
        with pytest.raises(WouldBlock):
            ring.verification_key("of another process, perhaps")
    clock.forward(seconds=RECHECK.total_seconds())
    with forbid_blocking(), pytest.raises(WouldBlock):
        ring.verification_key(kid)
    assert ring.verification_key(kid) is not None  # Another thread has looked.
    with forbid_blocking():
        assert ring.verification_key(kid) is not None


def test_it_has_the_directory_looked_at_before_a_look_ends(
    ring: KeyRing, clock: SetClock, directory: Path
) -> None:
    kid, due = ring.newest().kid, list[Callable[[], object]]()
    clock.forward(seconds=0.8)
    added = ring_of(directory, clock).rotate()
    with forbid_blocking(lambda _, look: due.append(look)):
        assert ring.newest().kid == kid
    for look in due:
        look()
    with forbid_blocking():
        assert ring.newest().kid == added
    clock.forward(seconds=0.8)
    with forbid_blocking():
        assert ring.newest().kid == added


class Mount:
    """A mount that hangs while a test wants it to."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.answers = Event(), Event()
        stat = Path.stat

        def hanging(path: Path, **options: bool) -> os.stat_result:
            if path == directory:
                self.reached.set()
                assert self.answers.wait(PATIENCE_S)
            return stat(path, **options)

        monkeypatch.setattr(Path, "stat", hanging)

    def __enter__(self) -> ThreadPoolExecutor:
        self._pool = ThreadPoolExecutor(20)
        return self._pool

    def __exit__(self, *_: object) -> None:
        self.answers.set()
        self._pool.shutdown()


@pytest.fixture
def mount(
    ring: KeyRing, directory: Path, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> Mount:
    """The mount of a ring whose next look is due."""
    ring.newest()
    clock.forward(seconds=1)
    return Mount(directory, monkeypatch)


def test_a_directory_that_hangs_holds_one_thread_and_is_said_once(
    ring: KeyRing,
    mount: Mount,
    clock: SetClock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(store_module, "READ_S", 0.01)
    with mount as pool:
        held = pool.submit(ring.newest)
        assert mount.reached.wait(PATIENCE_S)
        for number in range(6):
            clock.forward(seconds=1)
            kid = pool.submit(ring.newest).result(PATIENCE_S).kid
            assert pool.submit(ring.verification_key, kid).result(PATIENCE_S) is not None
            unknown = pool.submit(ring.verification_key, f"{number:032x}")
            assert unknown.result(PATIENCE_S) is None
        assert not held.done()
        (told,) = said_by(caplog, store_module.__name__)
        assert "does not answer; the keys read before stay in use" in told
    assert held.result().kid == kid
    assert len(said_by(caplog, store_module.__name__)) == 2


def test_a_ring_that_has_read_nothing_says_that_its_directory_hangs(
    directory: Path, mount: Mount, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "READ_S", 0.01)
    newcomer = ring_of(directory, clock)
    with mount as pool:
        held = pool.submit(newcomer.newest)
        assert mount.reached.wait(PATIENCE_S)
        with pytest.raises(SigningKeysError, match="does not answer"):
            pool.submit(newcomer.newest).result(PATIENCE_S)
    assert newcomer.newest() == held.result()


def test_a_fresh_key_waits_for_the_look_of_another_thread_and_is_not_refused(
    ring: KeyRing, directory: Path, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "READ_S", PATIENCE_S)
    new_kid = ring_of(directory, clock).rotate()
    clock.forward(seconds=1)
    mount = Mount(directory, monkeypatch)
    with mount as pool:
        held = pool.submit(ring.newest)
        assert mount.reached.wait(PATIENCE_S)
        fresh = pool.submit(ring.verification_key, new_kid)
    assert held.result().kid == new_kid
    assert fresh.result() is not None


def test_a_database_that_is_away_takes_no_key_that_has_agreed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str | None] = []

    def noted() -> str | None:
        if not asked:
            raise ConnectionError
        return asked.pop()

    key = WebhookKey(tmp_path, SetClock(), noted)
    key.ensure()
    monkeypatch.setattr(keys, "BELIEVED_S", 0)
    with pytest.raises(ConnectionError):
        key.require()
    asked.append(None)
    assert key.can_sign()
    assert key.can_sign(), "nobody could be asked"
    asked.append("of another")
    assert not key.can_sign()


def test_a_revoked_key_is_not_back_with_its_file_nor_does_it_revive_the_key_before_it(
    ring: KeyRing, directory: Path, clock: SetClock
) -> None:
    first, second = ring.newest().kid, ring.rotate()
    clock.forward(seconds=2 * RETIRE_AFTER_S)
    assert ring.verification_key(first) is None
    file = directory / f"{second}.pem"
    content = file.read_bytes()
    newest = ring.rotate()
    ring.revoke(second)
    file.write_bytes(content)
    for each in (ring, ring_of(directory, clock)):
        found = [each.verification_key(kid) for kid in (first, second, newest)]
        assert [key is not None for key in found] == [False, False, True]
        assert second in each.revoked()
        assert [kid["kid"] for kid in each.jwks()["keys"]] == [newest]
    assert not [path for path in directory.glob("*.revoked") if b"PRIVATE" in path.read_bytes()]


def test_a_renewed_key_is_the_newest_even_if_the_clock_was_set_back(
    directory: Path, clock: SetClock
) -> None:
    pepper = Pepper(directory, clock, lambda: False)
    first = pepper.rotate()
    clock.forward(days=-30)
    second = pepper.rotate()
    assert [*Pepper(directory, clock, lambda: False).current()] == [first, second]
    assert pepper.newest().id == second
