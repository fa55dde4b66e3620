"""Under `serve` a file of the database that is gone or another one ends work; nothing is lost."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest

from tests.app.cli.shell import Shell
from tests.house.partner import NUMBER, Partner
from tests.house.running import Served
from tests.installation import wait_until

CLIENTS = 8
BEFORE, AFTER = 30, 130  # Lookups that are begun before and after the blow.


@pytest.fixture
def served(nowhere: Shell) -> Iterator[Served]:
    with closing(Served(nowhere)) as made:
        yield made


def is_removed(file: Path) -> None:
    for each in file.parent.glob(f"{file.name}*"):
        each.unlink()


def becomes_an_older_copy(file: Path) -> None:
    older = file.with_name("older.db")
    with closing(sqlite3.connect(file)) as now, closing(sqlite3.connect(older)) as then:
        now.backup(then)
        then.execute("DELETE FROM stored_events WHERE rowid > 20")
        then.commit()
    older.rename(file)


def is_copied_over(file: Path) -> None:
    older = file.with_name("older.db")
    shutil.copyfile(file, older)
    for each in file.parent.glob(f"{file.name}-*"):
        each.unlink()
    shutil.copyfile(older, file)


def loses_what_was_not_yet_moved_into_it(file: Path) -> None:
    file.with_name(f"{file.name}-wal").unlink()


@pytest.mark.parametrize(
    "blow",
    [
        pytest.param(is_removed),
        pytest.param(becomes_an_older_copy, marks=pytest.mark.soak),
        pytest.param(is_copied_over),
        pytest.param(loses_what_was_not_yet_moved_into_it, marks=pytest.mark.soak),
    ],
    ids=lambda blow: blow.__name__,
)
def test_no_lookup_is_charged_into_a_log_that_is_lost(
    served: Served, blow: Callable[[Path], None]
) -> None:
    partner, log = served.partner(), served.shell.database
    begun, struck = list[None](), Event()
    late = list[int]()

    def ask() -> None:
        while len(late) < AFTER:
            is_late = struck.is_set()
            status = partner.ask("POST", NUMBER).status
            begun.append(None)
            if is_late:
                late.append(status)
            else:
                assert status in {200, 503}

    with ThreadPoolExecutor(CLIENTS) as pool:
        asking = [pool.submit(ask) for _ in range(CLIENTS)]
        wait_until(lambda: len(begun) >= BEFORE)
        blow(log)
        struck.set()
        for each in asking:
            each.result()
    assert {*late} == {503}
    ready = partner.ask("GET", "/readyz")
    assert (ready.status, str(log) in ready.json["missing"][0]) == (503, True)
    wait_until(lambda: partner.ask("GET", "/v1/wallet").status == 503)
    assert blow is not is_removed or not log.exists()


@pytest.mark.parametrize(
    "name", ["service-views.db", pytest.param("service-stores.db", marks=pytest.mark.soak)]
)
def test_a_process_that_has_lost_another_file_is_not_ready(served: Served, name: str) -> None:
    anyone = Partner(served.url, "", "")
    assert anyone.ask("GET", "/readyz").status == 200
    lost = served.shell.database.with_name(name)
    is_removed(lost)
    wait_until(lambda: anyone.ask("GET", "/readyz").status == 503)  # One answer a second.
    assert str(lost) in anyone.ask("GET", "/readyz").json["missing"][0]
    assert anyone.ask("GET", "/livez").status == 200
    assert not lost.exists()
