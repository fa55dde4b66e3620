"""`backup` and `restore`: what the documents say, of a service that is being charged meanwhile."""

import json
import os
import re
import resource
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from stat import S_IMODE
from uuid import UUID

import pytest

from app.http.application import create_app
from app.processes.backup import MANIFEST
from app.settings import Settings
from tests.app.cli.shell import ROOT, Shell
from tests.house.load import at_work
from tests.house.partner import Partner
from tests.house.running import Served
from tests.installation import LOOK_S, Process, numbers, wait_until
from tests.servers.databases import Databases
from tests.servers.running import NotInstalled, newest

BLOCK = re.compile(r"```sh\n(.*?)```", re.DOTALL)


def documented(page: str, words: str) -> str:
    """Return the lines of a document that hold these words, as a newcomer copies them."""
    text = (ROOT / page).read_text("utf-8")
    return next(block for block in BLOCK.findall(text) if words in block)


def as_written(home: Shell, script: str, folder: Path) -> str:
    """Run lines of a document, in other folders than it names; return what they print."""
    python = shlex.quote(sys.executable)
    for shown, own in (
        ("/var/backups/carrier-links", str(folder / "backups")),
        ("/srv/restored", str(folder / "restored")),
        (".venv/bin/python", python),
        ("\npython ", f"\n{python} "),
    ):
        script = script.replace(shown, own)
    try:
        programs = str(newest("usr/lib/postgresql/*/bin/pg_dump").parent)
    except NotInstalled:
        programs = ""
    environment = os.environ | home.environment
    environment["PATH"] = f"{programs}:{os.environ['PATH']}"
    done = subprocess.run(
        ["/bin/bash", "-euc", script],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def opens(place: Shell, partner: Partner, job: str) -> None:
    """Show that tokens, secrets and personal data of before are good in another place."""
    process = Process(Settings.from_env(place.environment))
    try:
        client = create_app(process).test_client()
        read = client.get(f"/number-lookup/bulk/{job}", headers=partner.headers())
        assert read.json["data"]["items"][0]["phone_number"] == numbers(1)[0]
        form = {"grant_type": "client_credentials"}
        basic = {"Authorization": partner.basic}
        assert client.post("/auth/token", data=form, headers=basic).status_code == 200
    finally:
        process.close()


@pytest.mark.soak
def test_the_backup_of_the_readme_holds_what_was_answered_before_it(
    nowhere: Shell, tmp_path: Path
) -> None:
    backup, restore = documented("README.md", "app backup").split("\n", 1)
    with closing(Served(nowhere)) as serving:
        partner, rich = serving.partner(), (serving.demo["organization"], "1000000")
        serving.shell.run("wallet", "deposit", *rich, "--reference", "wire 1")
        with at_work(partner, 1):
            wait_until(lambda: len(partner.promised.charges) > 3)
            before, (job, *_) = [*partner.promised.charges], partner.promised.jobs
            wait_until(lambda: partner.has_ended(job))
            as_written(serving.shell, backup, tmp_path)
            assert len(partner.promised.charges) > len(before), "nobody wrote meanwhile"
        serving.stop()
    said = as_written(serving.shell, restore, tmp_path)
    assert re.search(r"^ok +yes$", said, re.MULTILINE)
    place = serving.shell.having(
        DATABASE_URL=f"sqlite:///{tmp_path}/restored/service.db",
        SIGNING_KEYS=str(tmp_path / "restored" / "keys"),
    )
    held = {each["id"] for each in place.json("audit", "replay")["data"]}
    assert held.issuperset(before)
    opens(place, partner, job)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installation with a client and money, and a backup of it; tests take copies."""
    home = tmp_path_factory.mktemp("made")
    shell = Shell(home)
    shell.run("migrate")
    organization = shell.new_organization()
    shell.run("client", "create", "--org", organization)
    shell.run("wallet", "deposit", organization, "1", "--reference", "wire 1")
    shell.run("backup", home / "one")
    return home


@pytest.fixture
def paid(nowhere: Shell, made: Path) -> Shell:
    """An installation with a client and money."""
    shutil.copytree(made / "var", nowhere.home / "var")
    return nowhere


@pytest.fixture
def elsewhere(paid: Shell, tmp_path: Path) -> Shell:
    """An empty place."""
    return paid.having(
        DATABASE_URL=f"sqlite:///{tmp_path}/new/service.db", SIGNING_KEYS=f"{tmp_path}/new/keys"
    )


@pytest.fixture
def copy(made: Path, tmp_path: Path) -> Path:
    """A backup of it."""
    return Path(shutil.copytree(made / "one", tmp_path / "backups" / "one"))


def test_nobody_else_can_read_a_backup_or_what_is_restored(
    copy: Path, elsewhere: Shell, tmp_path: Path
) -> None:
    elsewhere.run("restore", copy)
    for directory in (copy, copy / "keys", tmp_path / "new" / "keys"):
        assert S_IMODE(directory.stat().st_mode) == 0o700
    secret = [*copy.rglob("*"), *(tmp_path / "new").rglob("*")]
    assert {S_IMODE(file.stat().st_mode) for file in secret if file.is_file()} == {0o600}


def test_a_backup_without_the_keys_in_use_is_refused(paid: Shell, tmp_path: Path) -> None:
    (Path(paid.environment["SIGNING_KEYS"]) / "pepper").rename(tmp_path / "pepper")
    assert "holds no pepper" in paid.refusal("backup", tmp_path / "b")


def test_a_backup_beside_the_keys_is_no_key(paid: Shell, tmp_path: Path) -> None:
    for place in (Path(paid.environment["SIGNING_KEYS"]) / "one", tmp_path / "two"):
        paid.run("backup", place)
        assert not [*(place / "keys").glob("*.*")]


def test_a_place_in_the_backup_is_refused(copy: Path, elsewhere: Shell) -> None:
    places = {"DATABASE_URL": f"sqlite:///{copy}/a.db", "SIGNING_KEYS": f"{copy}/keys"}
    for name, place in places.items():
        refused = elsewhere.having(**{name: place}).refusal("restore", copy)
        assert (refused.startswith(name), "in the backup" in refused) == (True, True)


def test_a_disk_that_fills_up_leaves_nothing(paid: Shell, tmp_path: Path) -> None:
    target, (before, most) = tmp_path / "full" / "b", resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, most))
    try:
        assert "log.db" in paid.refusal("backup", target)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))
    assert list(target.parent.iterdir()) == []


def test_a_backup_that_is_killed_is_never_taken_for_one(
    paid: Shell, elsewhere: Shell, tmp_path: Path
) -> None:
    grow(paid.database, megabytes=30)
    target = tmp_path / "killed" / "b"
    with paid.start("backup", target) as started:
        wait_until(lambda: any(target.parent.glob("*/log.db")), look_s_max=LOOK_S)
        started.send_signal(signal.SIGKILL)
    left = list(target.parent.iterdir())
    assert [each.name.startswith("b.unfinished-") for each in left] == [True]
    assert "unfinished" in elsewhere.refusal("restore", left[0])
    assert not elsewhere.database.exists()
    paid.run("backup", target)


def grow(database: Path, megabytes: int) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE padding (bytes BLOB)")
        for _ in range(megabytes):
            connection.execute("INSERT INTO padding VALUES (zeroblob(1000000))")
        connection.commit()


@pytest.mark.parametrize("name", ["service.db", "service-views.db", "service-stores.db-wal"])
def test_a_place_with_files_is_refused(
    copy: Path, elsewhere: Shell, tmp_path: Path, name: str
) -> None:
    file = tmp_path / "new" / name
    file.parent.mkdir()
    file.write_bytes(b"precious")
    assert name in elsewhere.refusal("restore", copy)
    assert [each.name for each in file.parent.iterdir()] == [name]
    assert file.read_bytes() == b"precious"


def test_other_keys_are_not_overwritten_and_the_same_ones_are_no_hindrance(
    copy: Path, elsewhere: Shell, tmp_path: Path
) -> None:
    keys = tmp_path / "new" / "keys"
    shutil.copytree(copy / "keys", keys)
    (keys / "pepper").write_text("0" * 64)
    assert "pepper is there already" in elsewhere.refusal("restore", copy)
    assert not elsewhere.database.exists()
    shutil.copy(copy / "keys" / "pepper", keys)
    elsewhere.run("restore", copy)


def test_a_backup_that_was_altered_or_is_not_whole_is_refused(copy: Path, elsewhere: Shell) -> None:
    for name in ("log.db", "stores.db", "keys/pepper"):
        file = copy / name
        whole = file.read_bytes()
        file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        assert str(file) in elsewhere.refusal("restore", copy)
        file.unlink()
        assert str(file) in elsewhere.refusal("restore", copy)
        file.write_bytes(whole)
    for text in ("", "[]", "{}", '{"format": 1}'):
        (copy / MANIFEST).write_text(text)
        assert "cannot be read" in elsewhere.refusal("restore", copy)
    assert not elsewhere.database.parent.exists()


@pytest.mark.parametrize("change", ["format", "tables", "event"])
def test_a_backup_of_a_newer_release_is_refused(
    paid: Shell, elsewhere: Shell, tmp_path: Path, change: str
) -> None:
    if change == "event":
        columns = "(originator_id, originator_version, topic, state)"
        row = (UUID(int=1).hex, 1, "wallet.painted", b"{}")
        paid.rewrite(f"INSERT INTO stored_events {columns} VALUES (?, ?, ?, ?)", *row)  # noqa: S608  # Words of our own.
    paid.run("backup", tmp_path / "b")
    manifest = tmp_path / "b" / MANIFEST
    told = json.loads(manifest.read_bytes())
    if change == "format":
        told["format"] += 1
    elif change == "tables":
        told["tables"]["personal_keys"] += 1
    manifest.write_text(json.dumps(told))
    assert "newer release" in elsewhere.refusal("restore", tmp_path / "b")
    assert not elsewhere.database.parent.exists()


def test_a_pepper_that_is_a_setting_has_to_be_the_same(
    paid: Shell, elsewhere: Shell, tmp_path: Path
) -> None:
    peppered = paid.having(SECRET_PEPPER="one")
    peppered.run("backup", tmp_path / "b")
    told = elsewhere.having(SECRET_PEPPER="two").run("restore", tmp_path / "b")
    assert "SECRET_PEPPER" in told.stderr
    again = elsewhere.having(
        SECRET_PEPPER="one",
        DATABASE_URL=f"sqlite:///{tmp_path}/third/service.db",
        SIGNING_KEYS=f"{tmp_path}/third/keys",
    )
    assert again.run("restore", tmp_path / "b").stderr == ""


def test_a_damaged_log_is_restored_but_told(paid: Shell, elsewhere: Shell, tmp_path: Path) -> None:
    changed = "CAST(replace(state, '1000000', '2000000') AS BLOB)"
    paid.rewrite(f"UPDATE stored_events SET state = {changed} WHERE topic = 'deposit.made'")  # noqa: S608  # Words of our own.
    paid.run("backup", tmp_path / "b")
    restored = elsewhere.json("restore", tmp_path / "b", status=1)
    assert restored["ok"] is False
    assert restored["failures"]


def test_a_copy_is_held_before_its_tables_are_made(
    copy: Path, elsewhere: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.processes.backup.migrate", lambda *_: Path("/gone").stat())
    elsewhere.refusal("restore", copy)
    with closing(elsewhere.container()) as container:
        assert container.gate.is_held()


def test_on_postgresql_it_says_what_to_run_and_a_restore_knows_another_database(
    nowhere: Shell, tmp_path: Path, databases: Databases
) -> None:
    url, other, empty = (databases.new() for _ in range(3))
    secret = url.replace("@", ":p%40ss@", 1) if "://postgres@" in url else url
    shell = nowhere.having(DATABASE_URL=secret)
    shell.run("migrate")
    shell.new_organization()
    dump, restore = shell.json("backup", tmp_path / "b")["commands"]
    assert (dump.split()[0], restore.split()[0]) == ("pg_dump", "pg_restore")
    assert "p%40ss" not in dump + restore
    assert "p@ss" not in dump + restore
    assert dump.replace("/b/", "/c/") in shell.run("backup", tmp_path / "c").stdout
    place = shell.having(DATABASE_URL=other, SIGNING_KEYS=str(tmp_path / "keys"))
    waits = place.json("restore", tmp_path / "b", status=1)
    assert (waits["ok"], len(waits["commands"])) == (False, 1)
    place.run("migrate")
    place.new_organization()
    assert "not that of the backup" in place.refusal("restore", tmp_path / "b")
    as_written(shell, dump, tmp_path)
    place = place.having(DATABASE_URL=empty)
    as_written(place, place.json("restore", tmp_path / "b", status=1)["commands"][0], tmp_path)
    assert place.json("restore", tmp_path / "b")["ok"] is True
    for each in (url, other, empty):
        databases.drop(each)
