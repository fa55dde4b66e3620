"""The timeline of a link: every event about it, with what operators need and no activation code."""

import json
from base64 import b64encode
from uuid import UUID, uuid4

import pytest

from projections.models.timelines import TimelineEntry
from tests.installation import Process
from tests.projections.histories import look_up
from tests.projections.link_steps import CODE, LPA, LinkSteps, bought, charge_fee


def timeline(process: Process, link_id: UUID) -> list[TimelineEntry]:
    process.projector.catch_up()
    with process.views.reading() as connection:
        return process.timelines.of_link(connection, link_id)


def topics(process: Process, link_id: UUID) -> list[str]:
    return [each.what for each in timeline(process, link_id)]


@pytest.mark.any_database
def test_a_creation_is_told_with_its_esim_and_its_charge(
    process: Process, organization_id: UUID
) -> None:
    life = LinkSteps(process, organization_id, plan=bought("Europe 5 GB", "4.50")).activate()
    LinkSteps(process, organization_id).activate()
    look_up(process, organization_id)
    told = timeline(process, life.id)
    assert sorted(each.what for each in told) == [
        "esim.reserved",
        "link.activated",
        "link.endpoint_created",
        "link.endpoint_requested",
        "link.esim_reserved",
        "link.requested",
        "wallet.charged",
    ]
    assert [each.position for each in told] == sorted({each.position for each in told})
    assert {each.at for each in told} == {process.clock()}
    facts = {each.what: each.facts for each in told}
    assert {each["request_id"] for each in facts.values()} == {"request-1"}
    charge = facts["wallet.charged"]
    assert (charge["kind"], charge["amount"], charge["currency"]) == ("activation", "4.50", "USD")
    price = facts["link.requested"]
    assert (price["amount"], price["currency"]) == ("4.50", "USD")
    assert price["transaction_id"] == charge["transaction_id"]
    assert price["deadline"] == "2026-03-01T12:00:15Z"
    assert facts["link.esim_reserved"]["iccid"] == life.iccid
    assert facts["link.endpoint_requested"]["until"] == "2026-03-01T12:00:05Z"
    made = facts["link.endpoint_created"]
    assert (made["endpoint_id"], made["addon_id"], made["adopted"]) == (
        f"endpoint-{life.iccid}",
        "addon-1",
        False,
    )
    assert facts["link.activated"]["plan"] == "Europe 5 GB"
    assert facts["link.activated"]["provider_plan_id"] == "europe-5-gb"


@pytest.mark.any_database
def test_a_failed_link_is_told_to_its_end(process: Process, organization_id: UUID) -> None:
    life = LinkSteps(process, organization_id).reserve().begin()
    life.fail(process.clock()).remove_endpoint().release()
    told = timeline(process, life.id)
    assert [each.what for each in told][-7:] == [
        "link.provisioning_failed",
        "esim.quarantined",
        "wallet.refunded",
        "link.endpoint_found",
        "link.endpoint_removed",
        "link.esim_released",
        "esim.released",
    ]
    facts = {each.what: each.facts for each in told}
    failure, refund = facts["link.provisioning_failed"], facts["wallet.refunded"]
    assert failure["code"] == "PROVISIONING_ERROR"
    assert failure["details"] == {"why": "no answer"}
    assert failure["refunded"] == refund["amount"] == "4.00"
    assert failure["transaction_id"] == refund["transaction_id"]
    assert refund["currency"] == "USD"
    assert facts["link.endpoint_removed"]["endpoint_id"] == "endpoint-late"
    assert facts["esim.quarantined"]["until"] == "2026-03-01T12:00:00Z"
    assert "esim.released" in facts


def test_a_plan_change_is_told_step_by_step(process: Process, organization_id: UUID) -> None:
    life = LinkSteps(process, organization_id).activate()
    first = life.link.current_activations[0]
    before = len(timeline(process, life.id))
    change = life.change([first.id], [bought("Asia", "1.00"), bought("Africa", "2.00")])
    change.do().do().start().fail().finish()
    told = timeline(process, life.id)[before:]
    assert [each.what for each in told].count("wallet.charged") == 2
    facts = {each.what: each.facts for each in told}
    asked = facts["plan_change.requested"]
    assert asked["change_id"] == facts["link.change_opened"]["change_id"] == str(change.id)
    assert asked["remove"] == [
        {
            "activation_id": str(first.id),
            "plan": "Europe 5 GB",
            "provider_plan_id": "europe-5-gb",
        }
    ]
    assert [(each["plan"], each["amount"]) for each in asked["add"]] == [
        ("Asia", "1.00"),
        ("Africa", "2.00"),
    ]
    assert facts["link.plan_removed"]["activation_id"] == str(first.id)
    added = asked["add"][0]["activation_id"]
    assert facts["link.plan_added"]["activation_id"] == added
    assert facts["plan_change.plan_addition_done"]["addon_id"] == f"addon-{added}"
    failure = facts["plan_change.failed"]
    assert (failure["code"], failure["index"]) == ("PROVISIONING_ERROR", 2)
    assert [each["refunded"] for each in failure["refunds"]] == ["2.00"]
    assert facts["wallet.refunded"]["amount"] == "2.00"
    assert {"plan_change.plan_removal_done", "plan_change.finished"} < set(facts)
    assert "link.change_closed" in facts


@pytest.mark.any_database
def test_a_monthly_fee_is_told_of_each_of_its_links(
    process: Process, organization_id: UUID
) -> None:
    links = [LinkSteps(process, organization_id).activate() for _ in range(3)]
    charge_fee(process, organization_id, "2026-03", [links[0].id, links[2].id])
    last = [timeline(process, each.id)[-1] for each in links]
    assert [each.what == "wallet.charged" for each in last] == [True, False, True]
    assert last[0] == last[2]
    assert last[0].facts["amount"] == "1.00"
    assert last[0].facts["description"] == "monthly_link_fee"
    assert "charged_link_ids" not in str(last[0].facts)


def test_a_status_is_told_with_its_intent(process: Process, organization_id: UUID) -> None:
    life = LinkSteps(process, organization_id).activate().switch("suspended")
    life.intend("active").settle("inactive").see("active", process.clock())
    told = [(each.what, each.facts.get("status")) for each in timeline(process, life.id)[-6:]]
    assert told == [
        ("link.status_requested", "suspended"),
        ("link.suspended", None),
        ("link.status_requested", "active"),
        ("link.status_kept", "inactive"),
        ("link.status_seen", "active"),
        ("link.installed", None),
    ]


@pytest.mark.any_database
def test_an_activation_code_is_told_of_but_never_shown(
    process: Process, organization_id: UUID
) -> None:
    stored = LinkSteps(process, organization_id).activate(lpa=None).store_lpa()
    assert topics(process, stored.id)[-1] == "link.lpa_stored"
    whole = LinkSteps(process, organization_id).activate()
    facts = [each.facts for life in (stored, whole) for each in timeline(process, life.id)]
    text = json.dumps(facts).replace("2026-03-01T", "")
    assert "endpoint_id" in text
    for part in ("lpa", LPA.month, b64encode(CODE).decode(), CODE.decode()):
        assert part not in text


@pytest.mark.any_database
def test_a_link_that_never_was_has_no_timeline(process: Process) -> None:
    assert timeline(process, uuid4()) == []
