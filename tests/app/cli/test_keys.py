"""`keys`: rotation and what is listed; no tables are needed."""

from tests.app.cli.shell import Shell


def test_the_newest_key_signs_and_the_one_before_it_still_verifies(nowhere: Shell) -> None:
    first = nowhere.json("keys", "rotate")
    second = nowhere.json("keys", "rotate")
    assert first["state"] == second["state"] == "signing"
    assert nowhere.json("keys", "list") == {"data": [{**first, "state": "verifying"}, second]}
    assert [*second] == ["kid", "algorithm", "created_at", "state"]
    assert second["algorithm"] == "ES256"
    assert second["created_at"].endswith("Z")


def test_a_directory_that_is_not_there_is_named(nowhere: Shell) -> None:
    refusal = nowhere.refusal("keys", "list")
    assert refusal.startswith("SIGNING_KEYS: ")
    assert str(nowhere.home) in refusal


def test_a_directory_that_others_can_read_is_refused(nowhere: Shell) -> None:
    (nowhere.home / "var" / "keys").mkdir(parents=True, mode=0o755)
    assert "0700" in nowhere.refusal("keys", "rotate")
