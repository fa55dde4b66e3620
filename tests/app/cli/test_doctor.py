"""`doctor`: each thing that is not ready is said in words, and nothing that is."""

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from app.bootstrap.known_keys import ensure_keys, record_keys
from app.processes.doctor import examine, warning_at_start
from app.settings import Settings
from domain.accounts.wallet import SANDBOX_DEPOSIT
from domain.cause import utc_now
from domain.finance.statement import Month
from domain.months import month_of
from tests.app.cli.shell import Shell
from tests.installation import Installation, Process, SetClock, postgresql_only, wait_until
from tests.plan_files import make_demo
from tests.servers.running import free_port

READY = {"SANDBOX": "false", "PUBLIC_URL": "https://api.example"}
# No real network yet, no sink, and one role of the database in tests.
ALWAYS = {"network", "sqlite", "checkpoints", "roles"}


@pytest.fixture
def healthy(installation: Installation) -> Process:
    """An installation that is at work and was backed up."""
    installation.environment.update(READY)
    process = installation.process()
    process.client(process.organization())
    process.projector.catch_up()
    ensure_keys(process)
    record_keys(process)
    process.notes.replace("backup", "1", process.clock())
    return process


def checks(process: Process) -> set[str]:
    return {each.check for each in examine(process)} - ALWAYS


@pytest.mark.each_database
def test_what_is_ready_is_not_mentioned(healthy: Process) -> None:
    assert checks(healthy) == set()


@pytest.mark.usefixtures("healthy")
def test_an_address_that_nobody_named_is_advised(installation: Installation) -> None:
    installation.environment["PUBLIC_URL"] = ""
    assert checks(installation.process()) == {"public url"}
    installation.environment["CURRENCY"] = "EUR"  # The log has another, so no process starts.
    assert checks(installation.process()) == {"public url", "settings"}


def test_play_money_where_real_things_are_sold_is_a_fault(
    installation: Installation, healthy: Process
) -> None:
    acme, play = healthy.organization(), SANDBOX_DEPOSIT
    healthy.accounts.book_deposit(acme, 1, "tests-1", healthy.cause(), play)
    healthy.projector.catch_up()
    assert checks(healthy) == {"play money"}
    installation.environment["SANDBOX"] = "true"
    assert "play money" not in checks(installation.process())


def test_a_secret_that_everybody_may_read_is_named(
    healthy: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for mode, name in ((0o644, "OPERATOR_KEY_FILE"), (0o600, "SECRET_PEPPER_FILE")):
        file = tmp_path / name
        file.write_text("a secret")
        file.chmod(mode)
        monkeypatch.setenv(name, str(file))
    assert checks(healthy) == {"secrets"}
    (found,) = (each for each in examine(healthy) if each.check == "secrets")
    assert (found.severity, found.message.split()[0]) == ("advice", "OPERATOR_KEY_FILE")
    (tmp_path / "OPERATOR_KEY_FILE").chmod(0o640)
    assert checks(healthy) == set()


def test_a_month_that_is_not_closed_an_hour_after_its_end_is_named(healthy: Process) -> None:
    later = (utc_now().replace(day=1) + timedelta(days=32)).replace(day=3)
    healthy.shared_clock = SetClock(later)
    assert checks(healthy) == {"months"}
    assert any("months close" in each.message for each in examine(healthy))
    (month,) = healthy.month_end.overdue()
    healthy.month_end.close(month, healthy.cause())
    assert checks(healthy) == set()
    healthy.log.append(Month.close(month_of(later), healthy.cause()))  # It has not ended.
    assert checks(healthy) == {"months"}


def lose_keys(process: Process) -> None:
    shutil.rmtree(process.settings.signing_keys)
    for name in ("keys", "pepper", "secret_hasher", "webhook_key"):
        process.__dict__.pop(name, None)


def let_others_read_the_keys(process: Process) -> None:
    process.settings.signing_keys.chmod(0o755)


def lose_the_webhook_key(process: Process) -> None:
    (process.settings.signing_keys / "webhook-key").unlink()
    del process.__dict__["webhook_key"]


def make_keys_anew(process: Process) -> None:
    lose_keys(process)
    ensure_keys(process)
    record_keys(process)


def stop_a_read_model(process: Process) -> None:
    with process.views.writing() as connection:
        place = process.positions.get(connection, "jobs")
        assert place is not None
        process.positions.fail(connection, [place], "KeyError", process.clock())


def leave_read_models_behind(process: Process) -> None:
    process.organization()
    with process.views.writing() as connection:
        connection.exec_driver_sql("UPDATE follower_positions SET caught_up_at = 0")


def let_two_deposit(process: Process) -> None:
    its: Any = {"secret_hash": "0" * 64, "organization_id": None, "scopes": ["deposits"]}
    for name in ("payer", "gone"):
        process.accounts.register_client(process.cause(), client_id=name, **its)
    process.accounts.change_client("gone", lambda client: client.revoke(process.cause()))


def forget_the_backup(process: Process) -> None:
    process.notes.replace("backup", "1", utc_now() - timedelta(days=8))


@pytest.mark.parametrize(
    ("harm", "check", "words"),
    [
        (lose_keys, "keys", "SIGNING_KEYS"),
        (let_others_read_the_keys, "keys", "others have access"),
        (lose_the_webhook_key, "keys", "secrets of webhooks need it"),
        (make_keys_anew, "keys", "pepper is not that of before"),
        (stop_a_read_model, "read models", "jobs has stopped"),
        (leave_read_models_behind, "read models", "behind the log"),
        (forget_the_backup, "backup", "the last known backup"),
        (make_demo, "demo", "client revoke"),
        (let_two_deposit, "deposits", "client payer may deposit"),
    ],
)
def test_what_is_wrong_with_an_installation_is_said(
    healthy: Process, harm: Callable[[Process], object], check: str, words: str
) -> None:
    harm(healthy)
    if harm is not leave_read_models_behind:
        healthy.projector.catch_up()
    assert checks(healthy) == {check}
    assert words in " ".join(each.message for each in examine(healthy))


def test_whether_the_release_before_can_return_is_said_after_an_upgrade(
    installation: Installation,
) -> None:
    clock = SetClock(utc_now())
    process = installation.process(clock)
    assert "way back" not in checks(process), "there was no release before"
    process.organization()
    clock.forward(hours=1)
    process.notes.replace("counters", "", clock())
    assert "way back" not in checks(process), "it is a copy"
    process.notes.replace("counters", "upgraded", clock())

    def way_back() -> str:
        return next(each.message for each in examine(process) if each.check == "way back")

    assert way_back().startswith("release 514c2a3 can still return;")
    process.prices.set(7_000, process.cause())
    assert (
        "cannot return: `PRICE_PER_LOOKUP` or `prices lookup` has written price.opened"
        in way_back()
    )
    clock.forward(days=31)
    assert "way back" not in checks(process)


@postgresql_only("a file has no clock of its own")
def test_a_clock_that_is_off_is_said(healthy: Process) -> None:
    ask = healthy.views.server_time
    healthy.gate.query = lambda: ask() + timedelta(seconds=28)
    assert checks(healthy) == {"clock"}


def test_no_database_is_a_finding_and_no_failure(nowhere: Shell, tmp_path: Path) -> None:
    told = nowhere.json("doctor", status=1)
    assert [*told] == ["ok", "data"]
    assert told["ok"] is False
    assert told["data"][-1]["check"] == "database"
    assert [*tmp_path.iterdir()] == []


def test_a_process_on_servers_says_it_in_one_line_at_its_start() -> None:
    on_servers = {"DATABASE_URL": "postgresql://me@localhost/carrier"}
    line = warning_at_start(Settings.from_env(on_servers))
    assert line is not None
    assert "\n" not in line
    assert "NETWORK_PROVIDER is simulated" in line
    assert "NETWORK_BASE_PLAN is not set" in line
    assert warning_at_start(Settings.from_env({})) is None


AWAY = f"127.0.0.1:{free_port()}"


def test_a_process_names_database_broker_and_providers_and_no_password_at_its_start(
    shell: Shell,
) -> None:
    url, log = shell.home / "url", shell.home / "worker.log"
    url.write_text(f"postgresql://me:hunter2@{AWAY}/carrier\n")
    far = shell.having(
        DATABASE_URL="", DATABASE_URL_FILE=str(url), BROKER_URL=f"amqp://me:hunter2@{AWAY}/vhost"
    )
    with log.open("w") as file, far.start("worker", stderr=file, stdout=file) as process:
        wait_until(lambda: "worker begins: " in log.read_text())
        process.kill()
    told = f"database PostgreSQL carrier on {AWAY}; broker amqp://{AWAY}/vhost"
    assert f"{told}; lookups by offline; links by simulated" in log.read_text()
    assert "hunter2" not in log.read_text()


def test_a_log_in_a_file_beside_a_broker_is_a_fault(shell: Shell) -> None:
    beside = shell.having(BROKER_URL=f"amqp://{AWAY}")
    (found,) = (
        each for each in beside.json("doctor", status=1)["data"] if each["check"] == "sqlite"
    )
    assert (found["severity"], str(shell.database) in found["message"]) == ("fault", True)
    assert found["message"] in str(warning_at_start(Settings.from_env(beside.environment)))
    assert found["message"] in beside.run("migrate").stderr
