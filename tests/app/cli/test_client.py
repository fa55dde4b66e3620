"""`client`: secrets are printed once, kept hashed only, rotated and revoked."""

from domain.accounts.organization import ApiClient, api_client_id
from tests.app.cli.shell import Shell


def hashes_of(shell: Shell, client_id: str) -> list[str]:
    container = shell.container()
    found = container.log.get(ApiClient, api_client_id(client_id)).secret_hashes
    container.close()
    return found


def test_the_secret_is_kept_as_its_hash_only(shell: Shell) -> None:
    made = shell.json("client", "create", "--m2m")
    container = shell.container()
    assert hashes_of(shell, made["client_id"]) == [
        container.secret_hasher.hash(made["client_secret"])
    ]
    for file in shell.database.parent.rglob("*"):
        assert file.is_dir() or made["client_secret"].encode() not in file.read_bytes(), file


def test_a_rotation_keeps_the_secret_before_it_and_no_older_one(shell: Shell) -> None:
    first = shell.json("client", "create", "--m2m")
    second = shell.json("client", "rotate-secret", first["client_id"])
    third = shell.json("client", "rotate-secret", first["client_id"])
    assert second.keys() == first.keys()
    hasher = shell.container().secret_hasher
    hashes = hashes_of(shell, first["client_id"])
    known = [hasher.matches(each["client_secret"], hashes) for each in (first, second, third)]
    assert known == [None, *reversed(hashes)]
