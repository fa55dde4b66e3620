"""`links`: what operators see of links, those that failed too, and of each what has happened."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest

from app.cli import links as links_module
from tests.app.cli.shell import Shell
from tests.installation import Process, SetClock
from tests.plan_files import plan, written
from tests.projections.link_steps import CODE, LinkSteps

SWITCHES = ("suspend", "reactivate", "end")


@pytest.fixture
def process(shell: Shell) -> Iterator[Process]:
    """The process of a service that runs beside the commands."""
    opened = Process(shell.container().settings, SetClock(datetime(2026, 3, 1, 12, tzinfo=UTC)))
    yield opened
    opened.close()


@pytest.fixture
def organization_id(process: Process) -> UUID:
    return process.organization()


def test_links_that_were_issued_elsewhere_are_taken_over_once(shell: Shell, tmp_path: Path) -> None:
    owner, (plans, links) = shell.new_organization(), (tmp_path / name for name in ("p", "l"))
    plans.write_bytes(written(plan("Old", enabled=False)))
    shell.run("plans", "import", plans)
    (offered,) = shell.json("plans", "list")["data"]
    bought_at = {"plan_id": offered["id"], "bought_at": "2025-11-01T10:00:00+01:00"}
    entry = {"organization_id": str(owner), "iccid": "8932042000000000017", "plans": [bought_at]}
    links.write_text(json.dumps({"links": [{**entry, "endpoint_id": "1000017"}]}))
    assert shell.json("links", "import", links) == {"created": 1, "unchanged": 0}
    assert shell.json("links", "import", links) == {"created": 0, "unchanged": 1}
    shown = shell.json("links", "show", entry["iccid"])
    assert shown["activations"][0]["bought_at"] == "2025-11-01T09:00:00.000Z"
    whats = [each["what"] for each in shown["timeline"]]
    assert whats[:3] == ["link.imported", "link.endpoint_created", "link.activated"]
    assert shown["timeline"][0]["facts"]["actor"].startswith("os:")
    assert shell.json("audit", "verify")["ok"]


def test_a_list_longer_than_one_read_is_whole(
    shell: Shell, process: Process, organization_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links_module, "CHUNK", 2)
    made = [str(LinkSteps(process, organization_id).activate().id) for _ in range(5)]
    assert [each["id"] for each in shell.json("links", "list")["data"]] == made[::-1]
    made.append(str(LinkSteps(process, organization_id).activate().id))
    assert [each["id"] for each in shell.json("links", "list")["data"]] == made[::-1]


def test_the_activation_code_is_never_shown(
    shell: Shell, process: Process, organization_id: UUID
) -> None:
    life = LinkSteps(process, organization_id).activate(lpa=None).store_lpa()
    for options in ([], ["--json"]):
        printed = shell.run("links", "show", life.id, *options).stdout
        assert "link.lpa_stored" in printed
        assert CODE.decode() not in printed
        assert "LPA:" not in printed


@pytest.mark.parametrize("identifier", ["van-7", "123", "8" * 23, "\uff18" * 19, ""])
def test_what_is_no_identifier_is_a_wrong_argument(shell: Shell, identifier: str) -> None:
    assert "neither" in shell.refusal("links", "show", identifier, status=2)


def test_a_held_installation_asks_no_network(
    shell: Shell, process: Process, organization_id: UUID
) -> None:
    link = LinkSteps(process, organization_id).activate()
    shell.run("installation", "hold")
    for command in (*(("links", each, link.id) for each in SWITCHES), ("providers", "check")):
        assert "is a held copy" in shell.refusal(*command)
