"""`keys` and secrets: what is renewed, revoked, listed and kept."""

import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from app.security.key_file import KINDS
from domain.accounts.operator_acts import OperatorAct
from domain.accounts.organization import ApiClient
from projections.stores.notes import Notes
from tests.app.cli.shell import TIMEOUT_S, Shell


def acts(shell: Shell) -> list[tuple[str, str, str | None]]:
    """Return what operators did to keys, oldest first: act, subject and actor."""
    with closing(shell.container()) as container:
        events = [each.event for each in container.log.read(0, 1_000)]
    done = [each for each in events if isinstance(each, OperatorAct.Done)]
    return [(each.act, each.subject, each.actor) for each in done]


def listed(shell: Shell) -> list[tuple[str, str, str]]:
    rows = shell.json("keys", "list")["data"]
    return [(each["kind"], each["kid"], each["state"]) for each in rows]


def gone(*_: object) -> None:
    Path("/gone").stat()


def files(shell: Shell) -> set[bytes]:
    return {each.read_bytes() for each in (shell.home / "var" / "keys").iterdir()}


def test_those_who_only_sign_checkpoints_can_tell_their_key(nowhere: Shell) -> None:
    made = nowhere.json("keys", "rotate", "checkpoints")
    assert nowhere.json("keys", "list") == {"data": [made]}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_renewed_and_revoked_and_the_log_keeps_who_did_it(
    shell: Shell, kind: str
) -> None:
    first, second = (shell.json("keys", "rotate", kind)["kid"] for _ in range(2))
    before = {each: each.read_bytes() for each in (shell.home / "var" / "keys").iterdir()}
    done = shell.json("keys", "revoke", first, "--yes")
    assert (done["kind"], done["kid"], done["state"]) == (kind, first, "revoked")
    newest = shell.json("keys", "revoke", second, "--yes")
    assert newest["state"] == "revoked"
    *rest, (_, third, state) = [each for each in listed(shell) if each[0] == kind]
    assert {*rest} == {(kind, first, "revoked"), (kind, second, "revoked")}
    assert state in {"signing", "newest"}
    told = acts(shell)
    assert [each[:2] for each in told] == [
        ("key.renewed", f"{kind} {first}"),
        ("key.renewed", f"{kind} {second}"),
        ("key.revoked", f"{kind} {first}"),
        ("key.renewed", f"{kind} {third}"),
        ("key.revoked", f"{kind} {second}"),
    ]
    assert all(str(each[2]).startswith("os:") for each in told)
    left = files(shell)
    assert "no key" in shell.refusal("keys", "revoke", first, "--yes")
    assert files(shell) == left
    for file, content in before.items():  # As from a backup.
        if not file.exists():
            file.write_bytes(content)
    assert [each[2] for each in listed(shell) if each[1] == first] == ["revoked"]


def test_the_log_knows_who_renews_a_key_or_holds_a_copy_before_it_is_so(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.security.keys.write_file", gone)
    monkeypatch.setattr(Notes, "replace", gone)
    shell.refusal("keys", "rotate", "webhooks")
    shell.refusal("installation", "hold")
    assert [act for act, *_ in acts(shell)] == ["key.renewed", "installation.held"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_revocation_that_was_killed_is_ended_by_running_it_again(shell: Shell, kind: str) -> None:
    leaked, *_ = (shell.json("keys", "rotate", kind)["kid"] for _ in range(2))
    before = files(shell)
    with pytest.MonkeyPatch.context() as killed:
        killed.setattr(Path, "unlink", gone)
        shell.refusal("keys", "revoke", leaked, "--yes")
    assert before <= files(shell)
    assert shell.json("keys", "revoke", leaked, "--yes")["state"] == "revoked"
    assert len(before - files(shell)) == 1
    assert [act for act, *_ in acts(shell)].count("key.revoked") == 1


def test_what_ends_with_a_key_is_said_before_it_is_asked_for_again(shell: Shell) -> None:
    shell.json("client", "create", "--m2m")
    leaked = next(kid for kind, kid, _ in listed(shell) if kind == "pepper")
    run = shell.run("keys", "revoke", leaked, input="n\n", status=1)
    assert "secrets of 1 clients, keys of 0 operators" in run.stderr
    assert "nothing was revoked" in run.stderr
    assert ("pepper", leaked, "newest") in listed(shell)
    assert acts(shell) == []


def test_whoever_revokes_the_newest_pepper_keeps_the_own_key(shell: Shell) -> None:
    boss = shell.json("operator", "create", "boss", "--may", "keys", "--may", "money")
    as_boss = shell.having(OPERATOR_KEY=boss["key"])
    idle = as_boss.json("operator", "create", "idle", "--may", "money")
    client = as_boss.json("client", "create", "--m2m")
    leaked = next(kid for kind, kid, _ in listed(shell) if kind == "pepper")
    done = as_boss.json("keys", "revoke", leaked, "--yes")
    assert (done["clients"], done["operators"]) == ([client["client_id"]], ["idle"])
    assert as_boss.json("org", "create", "--name", "Acme")["status"] == "active"
    refused = shell.having(OPERATOR_KEY=idle["key"]).refusal("org", "create", "--name", "B")
    assert "replaced or revoked" in refused
    assert {actor for _, _, actor in acts(shell)} == {f"operator:{boss['id']}"}
    as_boss.json("operator", "rotate-key", idle["id"])


def test_notes_of_a_revoked_checkpoint_key_prove_nothing_by_themselves(shell: Shell) -> None:
    note = shell.home / "note.txt"
    shell.new_organization()
    shell.having(CHECKPOINT_LAG_S="0").run("audit", "checkpoint", "--out", note)
    (old,) = [each for each in shell.json("keys", "list")["data"] if each["kind"] == "checkpoints"]
    shell.run("keys", "revoke", old["kid"], "--yes")
    against = ["audit", "verify", "--against", note]
    refused = shell.json(*against, status=1)["checkpoints"][0]
    assert (refused["holds"], "was revoked on" in refused["reason"]) == (False, True)
    named = shell.run(*against, "--key", old["verifier"])
    assert "note.txt: holds" in named.stdout
    assert "was revoked on" in named.stderr
    shell.having(CHECKPOINT_LAG_S="0").run("audit", "checkpoint", "--out", note)
    assert shell.json(*against)["ok"]


def test_the_secret_is_kept_as_its_hash_only(shell: Shell) -> None:
    made = shell.json("client", "create", "--m2m")
    with closing(shell.container()) as container:
        kept = container.log.get(ApiClient, ApiClient.id_of(made["client_id"])).secret_hashes
        assert kept == [container.secret_hasher.hash(made["client_secret"])]
    for file in shell.database.parent.rglob("*"):
        assert file.is_dir() or made["client_secret"].encode() not in file.read_bytes(), file


def test_others_work_while_a_command_waits_for_an_answer_and_what_they_did_counts(
    shell: Shell,
) -> None:
    leaked = shell.json("keys", "rotate", "checkpoints")["kid"]
    with shell.start("keys", "revoke", leaked, stdin=subprocess.PIPE) as asked:
        assert asked.stderr is not None
        assert leaked in asked.stderr.readline()
        newest = shell.json("keys", "rotate", "checkpoints")["kid"]
        asked.communicate("y\n", timeout=TIMEOUT_S)
    assert asked.returncode == 0
    kept = [each[1:] for each in listed(shell) if each[0] == "checkpoints"]
    assert kept == [(leaked, "revoked"), (newest, "signing")]
