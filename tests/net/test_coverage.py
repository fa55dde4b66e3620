"""The net has no holes: every operation, status and command is recorded, or there is a reason."""

import json
import re
from collections.abc import Iterator, Mapping

import click
import pytest
from click.testing import CliRunner

from app.cli.root import Deferred, cli
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


def test_every_status_of_every_operation_is_recorded() -> None:
    done = CliRunner().invoke(cli, ["openapi", "--json"], prog_name="python -m app")
    recorded = {*exchanges()}
    known = {(method, status) for method, _, status in recorded}
    missing = [
        f"{each.method} {each.path} {status}"
        for each in operations(json.loads(done.stdout))
        for status in sorted(each.statuses - OF_EVERY_REQUEST.keys())
        if not any(
            (method, found) == (each.method, status) and each.pattern.fullmatch(path)
            for method, path, found in recorded
        )
    ]
    assert known
    assert sorted(missing) == sorted(UNRECORDED), "\n".join(missing)


UNRECORDED: Mapping[str, str] = {}
