"""`links`: what operators see of links, those that failed too, and of each what has happened."""

from collections.abc import Iterator
from datetime import UTC, datetime
from uuid import UUID

import pytest

from app.cli import links as links_module
from domain.accounts.organization import Organization
from tests.app.cli.shell import Shell
from tests.installation import Process, SetClock
from tests.projections.link_steps import CODE, LinkSteps, bought

STATUSES = ("suspended", "active", "ended")


@pytest.fixture
def process(shell: Shell) -> Iterator[Process]:
    """The process of a service that runs beside the commands."""
    opened = Process(shell.container().settings, SetClock(datetime(2026, 3, 1, 12, tzinfo=UTC)))
    yield opened
    opened.close()


def test_a_list_longer_than_one_read_is_whole_and_a_change_in_it_names_its_link(
    shell: Shell, process: Process, organization_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links_module, "CHUNK", 2)
    made = [str(LinkSteps(process, organization_id).activate().id) for _ in range(5)]
    assert [each["id"] for each in shell.json("links", "list")["data"]] == made[::-1]
    life = LinkSteps(process, organization_id).activate()
    made.append(str(life.id))
    assert [each["id"] for each in shell.json("links", "list")["data"]] == made[::-1]
    change = life.change(add=[bought()])
    (its,) = shell.json("links", "list", "--unfinished")["data"]
    assert (its["kind"], its["id"], its["link"]) == ("plan_change", str(change.id), made[-1])


def test_a_link_is_found_by_the_esim_that_it_had_last_and_one_of_before_a_reset_has_ended(
    shell: Shell, process: Process, organization_id: UUID
) -> None:
    life = LinkSteps(process, organization_id).reserve().fail().release()
    assert shell.json("links", "show", life.iccid)["id"] == str(life.id)
    over = LinkSteps(process, organization_id).activate().finish()
    owner = process.log.get(Organization, organization_id)
    owner.record(Organization.SandboxReset, process.cause())
    process.log.append(owner)
    ((its_id, status),) = ((e["id"], e["status"]) for e in shell.json("links", "list")["data"])
    assert (its_id, status) == (str(over.id), "ended")


def test_the_activation_code_is_never_shown(
    shell: Shell, process: Process, organization_id: UUID
) -> None:
    life = LinkSteps(process, organization_id).activate(lpa=None).store_lpa()
    for options in ([], ["--json"]):
        printed = shell.run("links", "show", life.id, *options).stdout
        assert "link.lpa_stored" in printed
        assert CODE.decode() not in printed
        assert "LPA:" not in printed


def test_what_is_no_identifier_is_a_wrong_argument(shell: Shell) -> None:
    for identifier in ("van-7", "123", "8" * 23, "\uff18" * 19, ""):
        assert "neither" in shell.refusal("links", "show", identifier, status=2)


def test_a_held_installation_asks_no_network(
    shell: Shell, process: Process, organization_id: UUID
) -> None:
    link = LinkSteps(process, organization_id).activate()
    shell.run("installation", "hold")
    others = (("providers", "check"), ("plans", "sync", "simulated"))
    changes = [("links", "set", link.id, "--status", each) for each in STATUSES]
    for command in (*changes, *others):
        assert "is a held copy" in shell.refusal(*command)
