"""`release` of the Procfile: it ends on a platform, and stays under honcho."""

import signal

from tests.app.cli.shell import TIMEOUT_S, Shell
from tests.servers.running import free_port


def test_under_honcho_it_stays_until_sigterm(nowhere: Shell) -> None:
    process = nowhere.having(HONCHO_PROCESS_NAME="release.1").start("migrate")
    assert process.stdout is not None
    assert process.stdout.readline().startswith("built ")
    assert process.stdout.readline() == "The tables are up to date. Staying until SIGTERM.\n"
    assert process.poll() is None
    process.terminate()
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0


def test_under_honcho_it_waits_for_the_database(nowhere: Shell) -> None:
    away = f"postgresql://127.0.0.1:{free_port()}/service"
    under = nowhere.having(HONCHO_PROCESS_NAME="release.1", DATABASE_URL=away)
    process = under.start("migrate")
    assert process.stderr is not None
    assert "migrate begins: database PostgreSQL service" in process.stderr.readline()
    assert any("waiting: the database service on 127.0.0.1:" in line for line in process.stderr)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, out) == (0, "")
