"""`client`: secrets are printed once, kept hashed only, rotated and revoked."""

from uuid import uuid4

import pytest

from domain.accounts.organization import FIRST_SCOPES, ApiClient, api_client_id, granted
from tests.app.cli.shell import Shell


def hashes_of(shell: Shell, client_id: str) -> list[str]:
    container = shell.container()
    found = container.log.get(ApiClient, api_client_id(client_id)).secret_hashes
    container.close()
    return found


def test_a_client_of_an_organization_has_all_scopes_unless_some_are_named(shell: Shell) -> None:
    organization = shell.new_organization()
    made = shell.json("client", "create", "--org", organization)
    assert [*made] == ["client_id", "client_secret", "organization", "scopes"]
    assert (made["organization"], made["scopes"]) == (str(organization), granted(FIRST_SCOPES))
    scopes = ["--scope", "wallet", "--scope", "lookup", "--scope", "wallet"]
    some = shell.json("client", "create", "--org", organization, *scopes)
    assert some["scopes"] == ["wallet", "lookup"]


def test_a_machine_to_machine_client_has_no_organization(shell: Shell) -> None:
    assert shell.json("client", "create", "--m2m")["organization"] is None


def test_only_a_machine_to_machine_client_gets_deposits_and_only_by_name(shell: Shell) -> None:
    deposits = ["--scope", "deposits"]
    refusal = shell.refusal("client", "create", "--org", shell.new_organization(), *deposits)
    assert "only a machine-to-machine client can have deposits" in refusal
    assert shell.json("client", "create", "--m2m", *deposits)["scopes"] == ["deposits"]
    assert "deposits" not in shell.json("client", "create", "--m2m")["scopes"]


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


def test_a_revoked_client_stays_listed_and_gets_no_new_secret(shell: Shell) -> None:
    made = shell.json("client", "create", "--m2m", "--scope", "links")
    for _ in range(2):
        assert shell.json("client", "revoke", made["client_id"])["revoked"] is True
    assert "revoked" in shell.refusal("client", "rotate-secret", made["client_id"])
    [listed] = shell.json("client", "list")["data"]
    assert listed.pop("created_at").endswith("Z")
    assert listed == {
        "client_id": made["client_id"],
        "organization": None,
        "scopes": ["links"],
        "revoked": True,
        "old_secret_ends": None,
    }


def test_people_are_told_that_the_secret_is_shown_once(shell: Shell) -> None:
    made = shell.run("client", "create", "--m2m").stdout
    assert "cannot be shown again" in made
    client_id = made.split()[1]
    rotated = shell.run("client", "rotate-secret", client_id).stdout
    assert "The secret before it ends in 24 h." in rotated
    assert "cls_" not in shell.run("client", "list").stdout


def test_what_is_unknown_is_refused(shell: Shell) -> None:
    assert "there is no organization" in shell.refusal("client", "create", "--org", uuid4())
    assert "there is no client cl_x" in shell.refusal("client", "revoke", "cl_x")
    assert "there is no client cl_x" in shell.refusal("client", "rotate-secret", "cl_x")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], "either --org or --m2m"),
        (["--org", str(uuid4()), "--m2m"], "either --org or --m2m"),
        (["--org", "acme"], "--org"),
        (["--m2m", "--scope", "everything"], "--scope"),
    ],
)
def test_a_wrong_argument_is_named(shell: Shell, arguments: list[str], named: str) -> None:
    assert named in shell.refusal("client", "create", *arguments, status=2)
