"""`keys`: rotation and what is listed; no tables are needed."""

import json

from tests.app.cli.shell import Shell


def test_the_newest_key_signs_and_the_one_before_it_still_verifies(nowhere: Shell) -> None:
    first = nowhere.json("keys", "rotate")
    second = nowhere.json("keys", "rotate")
    assert first["state"] == second["state"] == "signing"
    assert nowhere.json("keys", "list") == {"data": [{**first, "state": "verifying"}, second]}
    assert [*second] == ["kid", "algorithm", "created_at", "state", "verifier"]
    assert second["algorithm"] == "ES256"
    assert second["created_at"].endswith("Z")


def test_the_keys_of_checkpoints_are_listed_with_what_verifies_their_notes(nowhere: Shell) -> None:
    first = nowhere.json("keys", "rotate")
    older = nowhere.json("keys", "rotate", "--checkpoints")
    newer = nowhere.json("keys", "rotate", "--checkpoints")
    listed = nowhere.json("keys", "list")["data"]
    assert listed == [first, {**older, "state": "verifying"}, newer]
    name, kid, _ = newer["verifier"].split("+", 2)
    assert (name, kid, newer["algorithm"]) == ("127.0.0.1:8080", newer["kid"], "Ed25519")


def test_those_who_only_sign_checkpoints_can_tell_their_key(nowhere: Shell) -> None:
    made = nowhere.json("keys", "rotate", "--checkpoints")
    run = nowhere.run("keys", "list", "--json")
    assert json.loads(run.stdout) == {"data": [made]}
    assert run.stderr.startswith("Warning: SIGNING_KEYS: ")


def test_a_directory_that_is_not_there_is_named(nowhere: Shell) -> None:
    refusal = nowhere.refusal("keys", "list")
    assert refusal.startswith("SIGNING_KEYS: ")
    assert str(nowhere.home) in refusal


def test_a_directory_that_others_can_read_is_refused(nowhere: Shell) -> None:
    (nowhere.home / "var" / "keys").mkdir(parents=True, mode=0o755)
    assert "0700" in nowhere.refusal("keys", "rotate")
