"""`client`: a secret is printed once, and kept hashed only."""

from contextlib import closing

from domain.accounts.organization import ApiClient, api_client_id
from tests.app.cli.shell import Shell


def test_the_secret_is_kept_as_its_hash_only(shell: Shell) -> None:
    made = shell.json("client", "create", "--m2m")
    with closing(shell.container()) as container:
        kept = container.log.get(ApiClient, api_client_id(made["client_id"])).secret_hashes
        assert kept == [container.secret_hasher.hash(made["client_secret"])]
    for file in shell.database.parent.rglob("*"):
        assert file.is_dir() or made["client_secret"].encode() not in file.read_bytes(), file
