"""`projections`: how far the followers are, and rebuilds."""

import sqlite3

import pytest

from app.bootstrap.container import Container
from app.settings import Settings
from tests.app.cli.shell import Shell

MODELS = [model.name for model in Container(Settings.from_env({})).models]


def spoil(shell: Shell, statement: str) -> None:
    views = shell.database.with_name("service-views.db")
    with sqlite3.connect(views) as connection:
        assert connection.execute(statement).rowcount
    connection.close()


def test_the_status_tells_how_far_each_is_behind(shell: Shell) -> None:
    before = shell.json("projections", "status")["data"]
    assert [each["name"] for each in before] == sorted(MODELS)
    assert {(each["position"], each["behind"], each["failure"]) for each in before} == {
        (0, 0, None)
    }
    shell.new_organization()
    assert {each["behind"] for each in shell.json("projections", "status")["data"]} == {3}
    shell.run("org", "list")
    after = shell.json("projections", "status")["data"]
    assert {(each["position"], each["behind"]) for each in after} == {(3, 0)}


@pytest.mark.parametrize("chosen", ["organizations", "--all"])
def test_a_rebuild_replaces_what_was_wrong(shell: Shell, chosen: str) -> None:
    organization = shell.new_organization()
    shell.run("org", "list")
    spoil(shell, "UPDATE organizations SET name = 'spoilt'")
    assert shell.json("org", "list")["data"][0]["name"] == "spoilt"
    rebuilt = shell.json("projections", "rebuild", chosen)["data"]
    names = MODELS if chosen == "--all" else [chosen]
    assert rebuilt == [{"name": name, "position": 3} for name in names]
    [listed] = shell.json("org", "list")["data"]
    assert (listed["id"], listed["name"]) == (str(organization), "Acme")


def test_a_read_model_that_stopped_is_told_by_whoever_reads(shell: Shell) -> None:
    organization = shell.new_organization()
    shell.run("org", "list")
    spoil(shell, "DROP TABLE transactions")
    shell.run("wallet", "deposit", organization, "1", "--reference", "r")
    listed = shell.run("org", "list", "--json")
    assert listed.stdout.startswith('{"data": [{"id"')
    assert '"balance": "1.00"' in listed.stdout
    status = {each["name"]: each for each in shell.json("projections", "status")["data"]}
    failure = status["transactions"]["failure"]
    assert listed.stderr == f"Warning: transactions stopped at 3: {failure}\n"
    assert "wallet.deposited" in failure
    shell.run("projections", "rebuild", "transactions")
    assert shell.run("org", "list", "--json").stderr == ""
    assert shell.json("audit", "verify")["ok"] is True


@pytest.mark.parametrize("arguments", [[], ["wallets", "--all"], ["walets"]])
def test_a_wrong_argument_is_named(shell: Shell, arguments: list[str]) -> None:
    assert "NAME" in shell.refusal("projections", "rebuild", *arguments, status=2)
