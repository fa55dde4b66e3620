"""The walk of the README, over HTTP."""

import json

from tests.installation import wait_until
from tests.scenarios.partner import Partner
from tests.scenarios.system import ROOT


def walk(partner: Partner) -> None:
    """Do what the README tells the reader to do."""
    assert partner.authorize().json["token_type"] == "Bearer"
    single = partner.ask("POST", "/number-lookup?phone_number=%2B447400123456")
    assert single.data["country_code"] == "GB"
    assert single.json["meta"]["charge"]["amount"] == "0.005"
    walk_a_job(partner)
    walk_a_link(partner)
    wallet = partner.ask("GET", "/v1/wallet").data
    newest = partner.ask("GET", "/v1/transactions?per_page=5").data["data"][0]
    assert newest["balance_after"] == wallet["balance"]
    assert newest["kind"] == "topup"


def walk_a_job(partner: Partner) -> None:
    sent = json.loads((ROOT / "tests/data/numbers.json").read_bytes())
    reply = partner.ask("POST", "/number-lookup/bulk", sent, {"Idempotency-Key": "my-first-job"})
    assert reply.status == 202, reply
    job = f"/number-lookup/bulk/{reply.data['job_id']}"
    wait_until(lambda: partner.ask("GET", job).data["status"] == "completed")
    assert partner.ask("GET", job).data["processed_count"] == 1000
    again = partner.ask("POST", "/number-lookup/bulk", sent, {"Idempotency-Key": "my-first-job"})
    assert again.data == reply.data
    partner.promised.jobs[reply.data["job_id"]] = 1000


def walk_a_link(partner: Partner) -> None:
    plan = partner.ask("GET", "/v1/plans?country=FR").data["data"][0]
    created = partner.ask("POST", "/v1/links", {"plan_id": plan["id"], "name": "Trip to Paris"})
    assert created.status == 201, created
    link = created.data
    assert link["lpa_profile"].startswith("LPA:1$")
    path = f"/v1/links/{link['id']}"
    topup = partner.ask("GET", f"{path}/topup-plans").data[0]["id"]
    assert partner.ask("PUT", f"{path}/plans", {"add": [topup]}).status == 200
    assert len(partner.ask("GET", path).data["activations"]) == 2
    partner.promised.links[link["id"]] = link["iccid"]
