"""Migrate makes what is missing, once, whoever calls it, and says what stands in its way."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from sqlalchemy import inspect, text

from app.processes.migrate import CannotMigrate, migrate
from app.processes.readiness import wait_until_ready
from app.settings import Settings
from domain.errors import WrongCurrency
from tests.installation import Process
from tests.projections.histories import Life
from tests.workers.webhooks.lab import Lab


def environment(directory: Path, **more: str) -> dict[str, str]:
    return {"DATABASE_URL": f"sqlite:///{directory}/deep/service.db", **more}


@pytest.fixture
def processes() -> Iterator[list[Process]]:
    opened: list[Process] = []
    yield opened
    for each in opened:
        each.close()


def process_of(processes: list[Process], directory: Path, **more: str) -> Process:
    processes.append(Process(Settings.from_env(environment(directory, **more))))
    return processes[-1]


def test_the_currency_of_wallets_cannot_change(tmp_path: Path, processes: list[Process]) -> None:
    process = process_of(processes, tmp_path)
    migrate(process)
    assert migrate(process_of(processes, tmp_path, CURRENCY="EUR")) == []
    process.organization()  # Nothing of it is projected yet.
    for begin in (migrate, lambda it: wait_until_ready(it, Event())):
        with pytest.raises(WrongCurrency, match="CURRENCY must stay USD"):
            begin(process_of(processes, tmp_path, CURRENCY="EUR"))


def test_read_models_that_were_lost_are_made_from_the_log(
    tmp_path: Path, processes: list[Process]
) -> None:
    process = process_of(processes, tmp_path)
    migrate(process)
    Life(process, seed=42).go_on(30)
    before = process.log.recorder.select_notifications(1, 1_000)
    process.close()
    for path in tmp_path.glob("deep/service-*"):
        path.unlink()
    again = process_of(processes, tmp_path)
    assert migrate(again) == [model.name for model in again.models]
    assert again.log.recorder.select_notifications(1, 1_000) == before
    assert again.audit().failures == []


def test_an_upgrade_keeps_deliveries_and_makes_the_indexes_and_models_that_are_new(
    tmp_path: Path, processes: list[Process]
) -> None:
    process = process_of(processes, tmp_path)
    migrate(process)
    owner = process.organization()
    lab = Lab(process)
    endpoint = lab.endpoint(owner)
    process.accounts.move("deposit", owner, 1_000_000, "d-1", process.cause())
    lab.plan()
    planned, name = lab.deliveries(owner, endpoint), process.webhook_messages.name
    with process.views.writing() as connection:  # As the release before has left it.
        process.webhook_messages.metadata.drop_all(connection)
        rows = process.positions.rows
        connection.execute(rows.delete().where(rows.c.name == name))
        connection.execute(text("DROP INDEX webhook_deliveries_failed"))
    lab.plan()  # Nothing is planned, and nothing passed, while messages are unknown.
    again = process_of(processes, tmp_path)
    assert migrate(again) == [name]
    with again.views.reading() as connection:
        indexes = inspect(connection).get_indexes("webhook_deliveries")
    assert "webhook_deliveries_failed" in {each["name"] for each in indexes}
    after = Lab(again)
    assert after.deliveries(owner, endpoint) == planned
    again.accounts.move("deposit", owner, 1_000_000, "d-2", again.cause())
    after.plan()
    assert [each.type for each in after.deliveries(owner, endpoint)] == ["wallet.deposited"] * 2


def test_threads_that_migrate_at_once_build_every_model_once(
    tmp_path: Path, processes: list[Process]
) -> None:
    several = [process_of(processes, tmp_path) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        built = [name for names in pool.map(migrate, several) for name in names]
    assert sorted(built) == sorted(model.name for model in several[0].models)


def make_a_directory(deep: Path) -> None:
    (deep / "service.db").mkdir(parents=True)


def write_a_letter(deep: Path) -> None:
    deep.mkdir()
    (deep / "service.db").write_bytes(b"a letter to a friend, and no database at all" * 100)


def write_a_file(deep: Path) -> None:
    deep.write_text("a file")


@pytest.mark.parametrize("obstacle", [make_a_directory, write_a_letter, write_a_file])
def test_what_cannot_be_used_is_named_in_one_line(
    tmp_path: Path, processes: list[Process], obstacle: Callable[[Path], None]
) -> None:
    obstacle(tmp_path / "deep")
    its = "cannot use" if obstacle is write_a_file else f"the database {tmp_path}/deep/service.db"
    with pytest.raises(CannotMigrate, match=rf"\ADATABASE_URL: {its}[^\n]*\Z"):
        migrate(process_of(processes, tmp_path))


def test_odd_names_of_files_are_taken_literally(tmp_path: Path, processes: list[Process]) -> None:
    name = "my 50%20 a#ä?mode=ro.db"
    url = f"sqlite:///{tmp_path}/{name}"
    processes.append(Process(Settings.from_env({"DATABASE_URL": url})))
    migrate(processes[0])
    stem = name.removesuffix(".db")
    files = {f"{stem}{part}.db" for part in ("", "-views", "-stores")}
    beside = {f"{each}{end}" for each in files for end in ("-wal", "-shm")}
    made = {path.name for path in tmp_path.iterdir()}
    assert files <= made <= files | beside | {f"{stem}-migrate.lock"}
