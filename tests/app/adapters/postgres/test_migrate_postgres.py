"""`migrate` on PostgreSQL: twice, at once from several processes, and against what cannot work."""

import os
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from app.processes.migrate import CannotMigrate, is_migrated, migrate
from tests.app.adapters.conftest import NewProcess
from tests.app.cli.shell import Shell
from tests.servers.running import free_port
from tests.support import warm

PASSWORD = "a-secret-of-the-operator"


def start(url: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    environment = {**os.environ, "DATABASE_URL": url}
    return warm.start(["migrate"], environment, stdout=pipe, stderr=pipe, text=True)


def test_several_threads_and_processes_at_once_all_succeed(
    new_process: NewProcess, database_url: str
) -> None:
    others = [start(database_url) for _ in range(2)]
    several = [new_process(database_url) for _ in range(3)]
    with ThreadPoolExecutor(len(several)) as pool:
        built = list(pool.map(migrate, several))
    ended = [(other.communicate(timeout=90)[1], other.returncode) for other in others]
    assert ended == [("", 0)] * 2
    assert sum(map(len, built)) in {0, len(several[0].models)}  # One of all has built them.
    assert is_migrated(several[0])


def nobody_listens(url: str) -> str:  # noqa: ARG001  # As the others.
    return f"postgresql://postgres:{PASSWORD}@127.0.0.1:{free_port()}/service"


def no_such_database(url: str) -> str:
    return f"{with_password(url)}_nowhere"


def no_such_user(url: str) -> str:
    return with_password(url).replace("://", "://nobody_", 1)


def no_option(url: str) -> str:
    return f"{with_password(url)}?sslmode=sometimes"


def with_password(url: str) -> str:
    parts = urlsplit(url)
    host = f"{parts.username or 'postgres'}:{PASSWORD}@{parts.hostname}:{parts.port or 5432}"
    return parts._replace(netloc=host).geturl()


@pytest.mark.parametrize("broken", [nobody_listens, no_such_database, no_such_user, no_option])
def test_what_cannot_be_used_is_named_in_one_line_without_its_password(
    tmp_path: Path, database_url: str, broken: Callable[[str], str]
) -> None:
    refusal = Shell(tmp_path).having(DATABASE_URL=broken(database_url)).refusal("migrate")
    assert "DATABASE_URL" in refusal
    assert PASSWORD not in refusal


def test_a_user_without_rights_is_told_so_in_one_line(
    new_process: NewProcess, database_url: str
) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    with pytest.raises(CannotMigrate, match=r"^DATABASE_URL: .* read-only") as refused:
        migrate(new_process(database_url))
    assert "\n" not in str(refused.value)
