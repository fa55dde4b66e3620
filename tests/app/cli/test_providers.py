"""`providers drain|resume`: an operator takes a provider out of new work, and lets it in again."""

from app.cli.session import user
from domain.accounts.providers import Provider
from tests.app.cli.shell import Shell


def kept(shell: Shell) -> list[type]:
    container = shell.container()
    events = [type(each.event) for each in container.log.read(0, 100)]
    container.close()
    return events


def test_who_drains_a_provider_is_kept_and_shown(shell: Shell) -> None:
    shown = shell.json("providers", "drain", "simulated")
    assert (shown["provider"], shown["drained"], shown["by"]) == ("simulated", True, user())
    again = shell.json("providers", "drain", "simulated")
    assert again == shown, "nothing has changed"
    assert shell.json("providers", "resume", "simulated") == {
        "provider": "simulated",
        "drained": False,
        "since": None,
        "by": None,
    }
    assert kept(shell) == [Provider.Registered, Provider.Drained, Provider.Resumed]


def test_a_provider_that_was_never_drained_leaves_no_trace_when_it_resumes(shell: Shell) -> None:
    assert not shell.json("providers", "resume", "offline")["drained"]
    assert kept(shell) == []


def test_only_known_providers_can_be_drained(shell: Shell) -> None:
    assert "'oracle' is not one of 'offline'" in shell.refusal(
        "providers", "drain", "oracle", status=2
    )


def test_doctor_names_what_is_drained(shell: Shell) -> None:
    shell.run("providers", "drain", "offline")
    found = shell.run("doctor", status=1).stdout
    assert f"offline is drained by {user()}" in found
