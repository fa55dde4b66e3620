"""A database file that several threads open for the first time at once."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event

from app.adapters.sqlite.file import DatabaseFile, Identity

MEANWHILE_S = 0.5  # A thread that has to wait for the look of another does nothing meanwhile.


class Interrupted(DatabaseFile):
    """Lets another thread work after its first look."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.looked, self.worked = Event(), Event()

    def _identities(self) -> list[Identity]:
        found = super()._identities()
        if not self.looked.is_set():
            self.looked.set()
            self.worked.wait(MEANWHILE_S)
        return found


def test_a_look_from_before_another_thread_has_opened_the_file_is_no_loss(tmp_path: Path) -> None:
    path = tmp_path / "service.db"
    with closing(sqlite3.connect(path)) as made:
        made.execute("PRAGMA journal_mode = WAL")
        made.execute("CREATE TABLE t (a)")
    file = Interrupted(path)  # Its write-ahead log is gone: the last connection has removed it.
    with ThreadPoolExecutor(1) as pool, closing(sqlite3.connect(path)) as opened:
        asked = pool.submit(file.require)
        assert file.looked.wait(MEANWHILE_S)
        opened.execute("SELECT * FROM t").fetchall()
        file.opened()
        file.worked.set()
        asked.result()
        file.require()
