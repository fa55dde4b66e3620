"""Runs a command, and every server that it starts, at another time of day.

`python -m tests.servers.clock "" COMMAND` runs it now; `python -m tests.servers.clock
2028-02-29T10:00 COMMAND` as if it were that moment (UTC). Under CI, and for `by-date`, the date
chooses one of `MOMENTS`: each is an hour at which something once failed, or could.
"""

import os
import signal
import subprocess
import sys
import tempfile
from calendar import isleap
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

CI = os.environ.get("CI", "").lower() not in {"", "0", "false"}
BY_DATE = "by-date"
PRELOAD, AHEAD, JUMP = "LD_PRELOAD", "CLOCK_AHEAD_S", "CLOCK_AHEAD_FILE"
SOURCE = Path(__file__).with_suffix(".c")
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


def inherited() -> Mapping[str, str]:
    """Return what a process needs in its environment to share the clock of this one."""
    return {name: os.environ[name] for name in (PRELOAD, AHEAD) if name in os.environ}


class JumpingClock:
    """The clock of the processes that get its `environment`; it jumps whenever a test says so."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / "jump"
        self._file.write_bytes(bytes(8))
        self.environment = {
            AHEAD: os.environ.get(AHEAD, "0"),  # As the clock of this process.
            PRELOAD: str(_compiled(directory)),
            JUMP: str(self._file),
        }

    def jump(self, ahead_s: int) -> None:
        """Let it be ahead by so much from now on; 0: let it be right."""
        with self._file.open("r+b") as file:  # The processes have mapped these bytes.
            file.write(ahead_s.to_bytes(8, sys.byteorder, signed=True))


def _compiled(directory: Path) -> Path:
    library = directory / "clock.so"
    options = ["-shared", "-fPIC", "-O2", "-Wall", "-Werror"]
    subprocess.run(["cc", *options, "-o", library, SOURCE], check=True)  # noqa: S607 - any compiler will do.
    return library


def moments(now: datetime) -> Sequence[datetime]:
    """Return the moments of which CI takes one each time; all lie ahead, so nothing is older."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    next_month = (midnight.replace(day=1) + 32 * DAY).replace(day=1)
    leap_year = next(filter(isleap, range(now.year + 1, now.year + 9)))
    return (
        now,
        midnight + DAY - 30 * MINUTE,  # The suite crosses midnight in its last minutes, or soon.
        next_month - 8 * MINUTE,  # ... and the end of a month while it runs.
        next_month + 6 * MINUTE,  # The clock has just closed a month.
        datetime(leap_year, 2, 29, 10, 0, tzinfo=UTC),
        datetime(now.year + 1, 12, 31, 23, 40, tzinfo=UTC),
    )


def chosen(given: str, now: datetime) -> datetime:
    """Return the moment that is meant: a time, `by-date`, or nothing."""
    if given == BY_DATE or (not given and CI):
        found = moments(now)
        return found[now.toordinal() % len(found)]
    if not given:
        return now
    return datetime.fromisoformat(given).replace(tzinfo=UTC)


def main() -> int:
    """Return the exit status of the command."""
    given, *command = sys.argv[1:]
    now = datetime.now(UTC)
    already_s = int(os.environ.get(AHEAD, "0"))  # This process may have been shifted itself.
    ahead_s = already_s + int((chosen(given, now) - now).total_seconds())
    if ahead_s == already_s:
        return _run(command, os.environ)
    sys.stdout.write(
        f"== The clocks of the tests say {now + timedelta(seconds=ahead_s - already_s):%F %T} UTC\n"
    )
    sys.stdout.flush()
    with tempfile.TemporaryDirectory(prefix="clock-") as directory:
        library = _compiled(Path(directory))
        Path(directory).chmod(0o755)  # The servers run under their own users.
        shift = {PRELOAD: str(library), AHEAD: str(ahead_s)}
        return _run(command, {**os.environ, **shift})


def _run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    with subprocess.Popen(command, env=environment) as running:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # It also reaches the command, which ends.
        return running.wait()


if __name__ == "__main__":
    sys.exit(main())
