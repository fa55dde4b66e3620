"""The net has no holes: every operation, status and command is recorded, or there is a reason."""

import json
import re
from collections.abc import Iterator, Mapping

import click
import pytest
from click.testing import CliRunner

from app.cli import root
from tests.net.operations import exchanges, operations
from tests.net.recording import RECORDINGS

OF_EVERY_REQUEST = {
    408: "the server cuts off what does not come to its end, whatever it asks for",
    413: "the server refuses a body by its length, whatever it is for",
    414: "the server refuses the target before it knows the operation",
    431: "the server refuses the head before it knows the operation",
    500: "an error of our own cannot be ordered",
    501: "the server refuses the method or encoding before it knows the operation",
}
SERVERS_OWN = "it takes no input, so only the server itself says this, as to every request"
IN_PROGRESS = "a twin waits for the first request as long as that may take, and gets its outcome"
ONLY_PATHS = "it has no resource in its path, so only a path that is not there is 404"
UNRECORDED: Mapping[str, str] = {
    **{
        f"GET {path} {status}": SERVERS_OWN
        for path in (
            "/.well-known/jwks.json",
            "/.well-known/oauth-authorization-server",
            "/livez",
            "/number-lookup/health",
            "/readyz",
        )
        for status in (400, 503)
        if (path, status) not in {("/readyz", 503), ("/number-lookup/health", 503)}
    },
    "POST /number-lookup 404": ONLY_PATHS,
    "POST /number-lookup/bulk 404": ONLY_PATHS,
    "POST /number-lookup 409": IN_PROGRESS,
    "POST /v1/links 409": IN_PROGRESS,
    "DELETE /v1/links/{identifier} 502": "a network that does not answer ends the link later",
    "POST /v1/links/{identifier}/cancel 502": "the network is asked before, and then it is a 503",
    "GET /v1/links/{identifier}/topup-plans 422": "it takes no input",
}


def run(*arguments: str) -> str:
    done = CliRunner().invoke(root.cli, arguments, prog_name=root.PROGRAM)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_every_status_of_every_operation_is_recorded() -> None:
    recorded = {*exchanges()}
    missing = {
        f"{each.method} {each.path} {status}"
        for each in operations(json.loads(run("openapi", "--json")))
        for status in sorted(each.statuses - OF_EVERY_REQUEST.keys())
        if not any(
            (method, found) == (each.method, status) and each.pattern.fullmatch(path)
            for method, path, found in recorded
        )
    }
    assert missing == UNRECORDED.keys()


@pytest.mark.parametrize("status", sorted(OF_EVERY_REQUEST.keys() - {500}))
def test_what_the_server_says_to_every_request_is_recorded(status: int) -> None:
    files = (RECORDINGS / "server").glob("*.txt")
    assert any(f"\n-> {status}\n" in file.read_text() for file in files)


def commands(group: click.Command, words: str = "") -> Iterator[str]:
    """Yield the words of every command below a group."""
    if isinstance(group, root.Deferred):
        group = group.load()
    if not isinstance(group, click.Group):
        yield words.strip()
        return
    for name, command in group.commands.items():
        yield from commands(command, f"{words} {name}")


def test_every_command_is_recorded() -> None:
    texts = [file.read_text() for file in RECORDINGS.rglob("*.txt")]
    titles = {title for text in texts for title in re.findall(r"^== (.*)$", text, re.MULTILINE)}
    missing = {
        command
        for command in commands(root.cli)
        if not any(f"{title} ".startswith(f"{command} ") for title in titles)
    }
    assert missing == set()


def test_every_recording_is_played() -> None:
    """The name of a recording is that of its scenario."""
    files = [file.relative_to(RECORDINGS) for file in RECORDINGS.rglob("*.txt")]
    orphans = [
        file
        for file in files
        if f"\ndef test_{file.stem}("
        not in (RECORDINGS.parent / f"test_{file.parent}.py").read_text()
    ]
    assert files
    assert orphans == []
