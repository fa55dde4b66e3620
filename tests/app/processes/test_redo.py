"""What an older copy of the log must be told again stands in a list apart from it, by ids alone."""

import json
from pathlib import Path
from stat import S_IMODE

import pytest

from app.processes import redo, runtime
from app.processes.redo import LIST
from app.settings import Settings, WrongSetting
from domain.accounts.operator_acts import Erasure, OperatorAct, Part
from domain.accounts.operators import Operator
from domain.links.link import Link
from tests.app.cli.shell import Shell
from tests.app.cli.test_privacy import JANUARY, NUMBER, ask
from tests.app.http.service import Service
from tests.installation import Installation, Process, wait_until
from tests.projections.link_steps import LinkSteps


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    directory = tmp_path / "redo"
    directory.mkdir(mode=0o700)
    return directory


def again(process: Process) -> list[str]:
    found = redo.undone(process)
    assert found is not None
    return [each.again for each in found]


def told_in(answer: dict[str, list[dict[str, str]]]) -> set[str]:
    return {each["again"] for each in answer["redo"]}


def test_a_restored_copy_says_what_must_be_done_again_and_what_was_is_left_out(
    nowhere: Shell, listed: Path, tmp_path: Path
) -> None:
    shell = nowhere.having(REDO_DIR=str(listed))
    shell.run("migrate")
    organization = shell.new_organization("--name", "Smith & Sons")
    revoked, rotated = (
        shell.json("client", "create", "--org", organization)["client_id"] for _ in range(2)
    )
    key = shell.json("keys", "rotate")["kid"]
    job = ask(shell, organization, JANUARY)
    shell.run("backup", tmp_path / "one")
    shell.run("privacy", "erase", "--org", organization, "--number", NUMBER)
    shell.run("keys", "rotate")
    shell.run("keys", "revoke", key, "--yes")
    shell.run("client", "revoke", revoked)
    shell.run("client", "rotate-secret", rotated)
    copy = shell.having(
        DATABASE_URL=f"sqlite:///{tmp_path}/new/service.db", SIGNING_KEYS=f"{tmp_path}/new/keys"
    )
    restored = told_in(copy.json("restore", tmp_path / "one"))
    (looked_up,) = {each for each in restored if each.startswith("privacy erase --lookup ")}
    assert restored == {
        looked_up,
        f"privacy erase --job {job}",
        "keys rotate signing",
        f"keys revoke {key}",
        f"client revoke {revoked}",
        f"client rotate-secret {rotated}",
    }
    copy.run("client", "revoke", revoked)
    copy.run(*looked_up.split())
    left = told_in(copy.json("installation", "hold", "--end"))
    assert left == restored - {f"client revoke {revoked}", looked_up}
    text = (listed / LIST).read_text()
    assert not [each for each in (NUMBER, NUMBER[1:], "Smith") if each in text]
    assert {S_IMODE(each.stat().st_mode) for each in listed.iterdir()} == {0o600}


def test_an_act_is_listed_once_and_told_to_a_log_that_lacks_it(
    installation: Installation, listed: Path, tmp_path: Path
) -> None:
    installation.environment["REDO_DIR"] = str(listed)
    keeping = installation.process()
    organization, cause = keeping.organization(), keeping.cause()
    link = LinkSteps(keeping, organization).reserve().begin().activate().link.id
    assert not redo.collect(keeping)
    keeping.log.append(Erasure.make(organization, [Part("2024-01.0001", [link])], cause))
    keeping.log.append(Erasure.make(organization, [Part("2023-12.0001"), Part("2024-01")], cause))
    for _ in range(2):
        keeping.log.append(OperatorAct.of("key.revoked", "pepper abc", cause))
    keeping.log.append(OperatorAct.of("installation.held", "installation", cause))
    handed_over = keeping.log.get(Link, link)
    handed_over.hand_over(keeping.new_id(), cause)
    handed_over.hand_over(None, cause)
    keeping.log.append(handed_over)
    assert not redo.collect(keeping)
    facts = {"name": "boss", "may": [], "key_hash": "one"}
    boss = Operator.begin(Operator.Registered, cause, Operator.id_of(1), **facts)
    boss.rotate_key("two", cause)
    boss.revoke(cause)
    keeping.log.append(boss)
    assert not redo.collect(keeping)
    assert len(json.loads((listed / LIST).read_bytes())["acts"]) == 7
    assert again(keeping) == []
    made = Installation(tmp_path / "other", REDO_DIR=str(listed))
    told = again(made.process())
    made.close()
    assert told == [
        f"privacy erase --link {link}",
        f"privacy erase --before 2024-02 --org {organization}",
        "keys revoke abc",
        f"its organization: DELETE /v1/links/{link}/handover",
        f"operator rotate-key {boss.id}",
        f"operator revoke {boss.id}",
    ]


def test_the_clock_lists_what_partners_rotate(
    tmp_path: Path, listed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "REDO_S", 1.0)  # A minute: nobody waits for it.
    service = Service(tmp_path, REDO_DIR=str(listed)).start()
    try:
        tenant = service.tenant()
        path = f"/v1/webhooks/{tenant.webhook()}/rotate-secret"
        assert tenant.post(path).status_code == 200
        file = listed / LIST
        wait_until(lambda: file.exists() and f"POST {path}" in file.read_text())
    finally:
        service.stop()


@pytest.mark.parametrize("is_file", [False, True])
def test_a_directory_that_is_missing_hinders_no_command(
    nowhere: Shell, tmp_path: Path, *, is_file: bool
) -> None:
    shell = nowhere.having(REDO_DIR=str(tmp_path / "not-mounted"))
    if is_file:
        (tmp_path / "not-mounted").touch()
    shell.run("migrate")
    done = shell.run("keys", "rotate")
    assert all(each in done.stderr for each in ("REDO_DIR", "not-mounted"))
    assert "not-mounted is missing" in shell.run("doctor", status=1).stdout
    released = shell.run("installation", "hold", "--end")
    assert "no list" in released.stdout


@pytest.mark.parametrize("place", ["keys", "keys/redo", "."])
def test_a_directory_that_a_backup_would_hold_is_refused(tmp_path: Path, place: str) -> None:
    with pytest.raises(WrongSetting, match="REDO_DIR"):
        Settings.from_env(
            {"SIGNING_KEYS": str(tmp_path / "keys"), "REDO_DIR": str(tmp_path / place)}
        )
