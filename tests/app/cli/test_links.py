"""`links`: what operators see of links, those that failed too, and of each what has happened."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from app.cli import links as links_module
from domain.accounts.refund_by_hand import HandRefund
from domain.cause import Cause
from domain.ids import derive_id
from domain.links.network import Usage
from tests.app.cli.shell import Shell
from tests.installation import Process, SetClock
from tests.plan_files import plan, written
from tests.projections.link_steps import CODE, LinkSteps, bought

MSISDN = "+883510012345678"


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
    links.write_text(json.dumps({"links": [entry]}))
    missing = "links[0]: endpoint_id: is missing: the network gives each link one"
    assert shell.refusal("links", "import", links) == missing
    links.write_text(json.dumps({"links": [{**entry, "endpoint_id": "1000017"}]}))
    assert shell.json("links", "import", links, "--dry-run") == {"created": 1, "unchanged": 0}
    assert shell.json("links", "list") == {"data": []}
    assert shell.json("links", "import", links) == {"created": 1, "unchanged": 0}
    assert shell.json("links", "import", links) == {"created": 0, "unchanged": 1}
    shown = shell.json("links", "show", entry["iccid"])
    assert shown["activations"][0]["bought_at"] == "2025-11-01T09:00:00.000Z"
    whats = [each["what"] for each in shown["timeline"]]
    assert whats[:3] == ["link.imported", "link.endpoint_created", "link.activated"]
    assert shown["timeline"][0]["facts"]["actor"].startswith("os:")
    assert shell.json("audit", "verify")["ok"]


def test_without_links_there_are_none(shell: Shell) -> None:
    assert shell.json("links", "list") == {"data": []}
    assert shell.run("links", "list").stdout == "There are none.\n"


def test_the_list_shows_what_was_done_a_moment_ago_newest_first(
    shell: Shell, process: Process, organization_id: UUID
) -> None:
    other = process.organization()
    LinkSteps(process, organization_id).reserve().fail()
    first = LinkSteps(process, organization_id, "Van 7", bought("Europe 5 GB")).activate()
    second = LinkSteps(process, other, None, bought("Asia 1 GB")).activate()
    first.switch("suspended").change(add=[bought("Top-up")]).do()
    shown = {
        "id": str(first.id),
        "organization": str(organization_id),
        "name": "Van 7",
        "iccid": first.iccid,
        "status": "suspended",
        "plans": ["Europe 5 GB", "Top-up"],
        "created_at": "2026-03-01T12:00:00.000Z",
    }
    listed = shell.json("links", "list")["data"]
    assert [each["id"] for each in listed] == [str(second.id), str(first.id)]
    assert listed[1] == shown
    assert shell.json("links", "list", "--org", organization_id) == {"data": [shown]}
    table = shell.run("links", "list").stdout.splitlines()
    assert table[0].split() == [name.upper() for name in shown]
    assert table[1].split()[2] == "-"
    assert "Europe 5 GB, Top-up" in table[2]


def test_a_list_longer_than_one_read_is_whole(
    shell: Shell, process: Process, organization_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links_module, "CHUNK", 2)
    made = [str(LinkSteps(process, organization_id).activate().id) for _ in range(5)]
    assert [each["id"] for each in shell.json("links", "list")["data"]] == made[::-1]
    made.append(str(LinkSteps(process, organization_id).activate().id))
    assert [each["id"] for each in shell.json("links", "list")["data"]] == made[::-1]


def test_the_links_of_an_unknown_organization_are_refused(shell: Shell) -> None:
    stranger = uuid4()
    assert str(stranger) in shell.refusal("links", "list", "--org", stranger)
    assert "--org" in shell.refusal("links", "list", "--org", "acme", status=2)


def test_a_link_is_shown_by_its_id_and_by_its_iccid(
    shell: Shell, process: Process, organization_id: UUID
) -> None:
    life = LinkSteps(process, organization_id, "Van 7").activate()
    process.readings.keep_usage(
        organization_id, life.id, Usage("active", [], process.clock(), msisdn=MSISDN)
    )
    shown = shell.json("links", "show", life.id)
    assert shell.json("links", "show", life.iccid) == shown
    assert shell.json("links", "show", str(life.id).upper()) == shown
    assert {name: each for name, each in shown.items() if not isinstance(each, list)} == {
        "id": str(life.id),
        "organization": str(organization_id),
        "name": "Van 7",
        "stage": "active",
        "status": "active",
        "iccid": life.iccid,
        "msisdn": MSISDN,
        "network": "simulated",
        "endpoint_id": f"endpoint-{life.iccid}",
        "sponsor_profile": {"id": "sp-1", "name": "Ærø", "color": "#1F6FEB"},
        "failure": None,
        "requested_at": "2026-03-01T12:00:00.000Z",
        "deadline": "2026-03-01T12:00:15.000Z",
        "created_at": "2026-03-01T12:00:00.000Z",
        "installed_at": None,
        "first_used_at": None,
        "open_change": None,
    }


def test_a_link_is_shown_with_its_plans_and_what_was_paid(
    shell: Shell, process: Process, organization_id: UUID
) -> None:
    plan = bought("Europe 5 GB", "4.50")
    life = LinkSteps(process, organization_id, plan=plan).activate()
    first = life.link.current_activations[0].id
    life.change([first], [bought("Asia 1 GB")]).do().do()
    shown = shell.json("links", "show", life.id)
    assert shown["activations"][0] == {
        "activation": str(first),
        "plan": str(plan.plan_id),
        "name": "Europe 5 GB",
        "provider_plan_id": "europe-5-gb",
        "price": "4.50",
        "mb": 5000,
        "days": 30,
        "addon_id": "addon-1",
        "bought_at": "2026-03-01T12:00:00.000Z",
        "removed_at": "2026-03-01T12:00:00.000Z",
    }
    assert [each["name"] for each in shown["activations"]] == ["Europe 5 GB", "Asia 1 GB"]
    positions = [each["position"] for each in shown["timeline"]]
    assert positions == sorted(positions)
    charge = next(each for each in shown["timeline"] if each["what"] == "wallet.charged")
    assert charge["at"] == "2026-03-01T12:00:00.000Z"
    assert (charge["facts"]["amount"], charge["facts"]["currency"]) == ("4.50", "USD")


def test_a_failed_link_is_shown_by_its_id_with_all_that_happened(
    shell: Shell, process: Process, organization_id: UUID
) -> None:
    life = LinkSteps(process, organization_id).reserve().begin()
    life.fail(process.clock()).remove_endpoint()
    assert shell.json("links", "show", life.iccid)["id"] == str(life.id)
    life.release()
    shown = shell.json("links", "show", life.id)
    assert (shown["stage"], shown["status"], shown["failure"]) == (
        "ended",
        None,
        "PROVISIONING_ERROR",
    )
    assert shown["activations"] == []
    told = {each["what"]: each["facts"] for each in shown["timeline"]}
    assert told["wallet.refunded"]["amount"] == told["wallet.charged"]["amount"] == "4.00"
    assert told["link.endpoint_removed"]["endpoint_id"] == "endpoint-late"
    assert shell.json("links", "list") == {"data": []}
    assert shell.json("links", "show", life.iccid) == shown
    assert "no link" in shell.refusal("links", "show", "8988000000000000000")


def test_a_link_under_way_is_shown_too(
    shell: Shell, process: Process, organization_id: UUID
) -> None:
    life = LinkSteps(process, organization_id)
    shown = shell.json("links", "show", life.id)
    assert (shown["stage"], shown["iccid"], shown["created_at"]) == ("requested", None, None)
    assert [each["what"] for each in shown["timeline"]] == ["link.requested"]


def test_people_get_facts_activations_and_a_line_for_each_event(
    shell: Shell, process: Process, organization_id: UUID
) -> None:
    life = LinkSteps(process, organization_id, "Van 7").activate()
    change = life.change([life.link.current_activations[0].id], [bought("Asia", "1.25")])
    change.do().start().fail().finish()
    facts, activations, timeline = shell.run("links", "show", life.id).stdout.split("\n\n")
    assert f"iccid            {life.iccid}\n" in facts
    assert "Europe 5 GB" in activations
    lines = timeline.splitlines()
    assert lines[0].split() == ["POSITION", "AT", "WHAT", "MONEY", "WHO", "FACTS"]
    assert len(lines) == 1 + len(shell.json("links", "show", life.id)["timeline"])
    requested = next(line for line in lines if "plan_change.requested" in line)
    assert "amount 1.25, currency USD" in requested
    created = next(line for line in lines if "link.endpoint_created" in line)
    assert f"endpoint_id endpoint-{life.iccid}, addon_id addon-1, adopted no" in created


def test_a_cancelled_link_shows_what_it_cost_and_what_came_back_in_order(
    shell: Shell, process: Process, organization_id: UUID
) -> None:
    life = LinkSteps(process, organization_id, "Van 7").activate().rename("Van 8")
    change = life.change([], [bought("Asia", "1.25")]).do_all()
    by_hand = HandRefund(
        derive_id("transaction", life.id), "t-1", "a complaint", 500_000, {"link_id": str(life.id)}
    )
    cause = Cause(process.clock(), "request-9", "operator:anna")
    process.accounts.refund(life.id, by_hand, cause)
    life.intend_end("cancel").finish()
    facts, _, timeline = shell.run("links", "show", life.id).stdout.split("\n\n")
    assert re.search(r"^name +Van 8$", facts, re.MULTILINE)
    assert re.search(r"^status +ended$", facts, re.MULTILINE)
    told = [line.split()[2:5] for line in timeline.splitlines()[1:]]
    money = [(what, f"{sum_} {unit}") for what, sum_, unit in told if what.startswith("wallet.")]
    assert money == [
        ("wallet.charged", "-4.00 USD"),
        ("wallet.charged", "-1.25 USD"),
        ("wallet.refunded", "+0.50 USD"),
        ("wallet.refunded", "+3.50 USD"),
        ("wallet.refunded", "+1.25 USD"),
    ]
    (ended,) = (line for line in timeline.splitlines() if " link.ended " in line)
    assert "reason cancelled" in ended
    assert "refunded 3.50" in ended
    (hand,) = (line for line in timeline.splitlines() if "refunded_by_hand" in line)
    assert "operator:anna" in hand
    assert str(change.id) in timeline


def test_the_activation_code_is_never_shown(
    shell: Shell, process: Process, organization_id: UUID
) -> None:
    life = LinkSteps(process, organization_id).activate(lpa=None).store_lpa()
    for options in ([], ["--json"]):
        printed = shell.run("links", "show", life.id, *options).stdout
        assert "link.lpa_stored" in printed
        assert CODE.decode() not in printed
        assert "LPA:" not in printed


def test_what_is_not_there_is_refused(shell: Shell) -> None:
    assert "no link" in shell.refusal("links", "show", uuid4())
    assert "no link" in shell.refusal("links", "show", "8988247000000000017")


@pytest.mark.parametrize("identifier", ["van-7", "123", "8" * 23, "\uff18" * 19, ""])
def test_what_is_no_identifier_is_a_wrong_argument(shell: Shell, identifier: str) -> None:
    assert "neither" in shell.refusal("links", "show", identifier, status=2)


def test_a_real_process_prints_one_object(shell: Shell, process: Process) -> None:
    life = LinkSteps(process, process.organization()).activate()
    status, out, err = shell.process("links", "show", life.id, "--json")
    assert (status, err) == (0, "")
    assert json.loads(out)["id"] == str(life.id)
