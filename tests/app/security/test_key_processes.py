"""Several real processes over one directory: a race at the first start, and a rotation seen."""

from contextlib import ExitStack, closing
from pathlib import Path
from time import monotonic

from app.security.keys import KeyRing
from domain.cause import utc_now
from tests.app.security.rings import RETIRE_AFTER_S, OtherProcess


def test_processes_that_start_at_once_have_one_key_and_one_pepper_and_see_a_fresh_key_at_once(
    directory: Path,
) -> None:
    with ExitStack() as stack:
        others = [stack.enter_context(closing(OtherProcess(directory, "ES256"))) for _ in range(3)]
        for process in others:
            process.order("ensure")
        answers = [process.answer() for process in others]
        assert all(answer == answers[0] for answer in answers)
        assert len(list(directory.glob("*.pem"))) == 1
        assert not (directory / ".draft").exists()
        other, (old_kid, _) = others[0], answers[0]
        ring = KeyRing(directory, "ES256", utc_now, RETIRE_AFTER_S)
        for _ in range(20):
            assert other.ask("verify", ring.rotate()) is True
        new_kid = ring.rotate()
        rotated_at = monotonic()
        while (signing := other.ask("sign")) != new_kid:
            assert signing != old_kid, "it verifies with a fresh key, and soon signs with it"
            assert monotonic() < rotated_at + 5
        assert other.ask("verify", "0" * 32) is False
