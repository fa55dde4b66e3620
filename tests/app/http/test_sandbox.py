"""What a partner of a sandbox plays, and that nobody else notices any of it."""

import json
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise, product
from typing import Any
from uuid import UUID, uuid4

import pytest
from werkzeug.test import TestResponse

from app.bootstrap.sandbox import RESETS_MAX
from app.http import sandbox
from domain.cause import Cause
from domain.errors import IncompleteNetworkAnswer
from domain.links.bought_plan import BoughtPlan
from domain.links.change_plans import ChangeRequest
from domain.links.link import Link
from tests.app.http.buying import BASIC, FREE, LINKS, MISSING, MORE, Buyer, buyer
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, Tenant, code_of, fields_of
from tests.plan_files import import_plans, plan
from tests.projections.link_steps import LinkSteps
from tests.second_network import SECOND, add_to

# What they ask of a database tests/net/test_sandbox and the tests of the counters ask, too.
SANDBOX = "/v1/sandbox"
VALID = "+14155550100"
REQUEST = {"operation": "request", "failure": "link_busy"}
METHODS = ("GET", "HEAD", "POST", "PUT", "OPTIONS")


@pytest.fixture
def acme(service: Service) -> Buyer:
    return buyer(service)


def play(tenant: Tenant, link: dict[str, Any], action: str, **more: Any) -> TestResponse:
    return tenant.post(f"{SANDBOX}/links/{link['id']}", json={"action": action, **more})


def script(tenant: Tenant, operation: str, failure: str | None, **more: Any) -> TestResponse:
    body = {"operation": operation, "failure": failure, **more}
    return tenant.open("PUT", f"{SANDBOX}/failures", json=body)


def advance(tenant: Tenant, hours: int) -> TestResponse:
    return tenant.post(f"{SANDBOX}/clock", json={"hours": hours})


def failing(tenant: Tenant) -> list[dict[str, Any]]:
    following: list[dict[str, Any]] = tenant.get(SANDBOX).json["data"]["next"]
    return following


# Where there is no sandbox.


def test_outside_a_sandbox_its_paths_are_as_unknown_as_any_other(make_service: MakeService) -> None:
    service = make_service(SANDBOX="false", PATH_PREFIX="/below")
    tenant, sent = service.tenant(), {"X-Request-Id": "one"}
    of_all = {each.line.split()[1] for group in sandbox.GROUPS for each in group.operations}
    paths = [each.replace("<identifier>", MISSING) for each in of_all]
    assert len(paths) == 6

    def answer(method: str, path: str, headers: dict[str, str], data: bytes | None) -> Any:
        kind = "application/json" if data else None
        reply = service.client.open(
            path, method=method, headers={**sent, **headers}, data=data, content_type=kind
        )
        body = json.loads(reply.data) if reply.data else None
        for name in ("timestamp", "response_time_ms"):
            (body or {"meta": {}})["meta"].pop(name, None)
        told = {name: value for name, value in reply.headers.items() if name != "Content-Length"}
        return reply.status_code, told, body

    for prefix, path, method in product(("", "/below"), paths, METHODS):
        unknown = path.replace("sandbox", "nothing")
        for given in product(({}, tenant.headers), (None, b"{")):
            found = answer(method, prefix + path, *given)
            assert found == answer(method, prefix + unknown, *given), (method, path)
            assert found[0] == 404, (method, path)
    for document in ("/openapi.json", "/below/openapi.json"):
        assert SANDBOX not in service.client.get(document).text
    assert SANDBOX in make_service().client.get("/openapi.json").text


def test_what_was_scripted_in_a_sandbox_is_not_played_outside(make_service: MakeService) -> None:
    service = make_service(SANDBOX="false").start()
    shop, counters = buyer(service), service.container.counters
    counters.script_failure(shop.id, "lookup", "unavailable", 5, None)
    counters.script_failure(shop.id, "purchase", "no_endpoint", 5, None)
    counters.script_failure(shop.id, "request", "internal_error", 5, None)
    assert shop.look_up(VALID).status_code == 200
    assert shop.create(FREE).status_code == 201
    assert len(counters.scripted_failures(shop.id)) == 3


# Time.


def test_time_goes_on_within_bounds(acme: Buyer) -> None:
    for wrong in (0, -1, 8_761, 1.5, True, "1", None, [], 10**30):
        assert "hours" in fields_of(acme.post(f"{SANDBOX}/clock", json={"hours": wrong}))
    for _ in range(10):
        assert acme.post(f"{SANDBOX}/clock", json={"hours": 8_760.0}).status_code == 200
    assert fields_of(advance(acme, 1)) == {"hours": [sandbox.TOO_FAR]}
    assert acme.get(SANDBOX).json["data"]["ahead_hours"] == 87_600
    link = acme.link()
    own = acme.post(f"{SANDBOX}/clock", json={"hours": 1, "link_id": link["id"]})
    assert fields_of(own) == {"hours": [sandbox.TOO_FAR]}, "both clocks count"
    assert play(acme, link, "use", percent=50).json["data"]["data_used_mb"] >= 500


def test_time_passes_for_one_link_alone(acme: Buyer) -> None:
    service, rival = acme.service, buyer(acme.service)
    old, new, others = acme.link(), acme.link(), rival.link()
    clock = f"{SANDBOX}/clock"
    for link_id in (MISSING, others["id"]):
        sent = {"hours": 24, "link_id": link_id}
        for reply in acme.post(clock, json=sent), acme.get(f"{SANDBOX}?link_id={link_id}"):
            assert fields_of(reply) == {"link_id": [sandbox.NO_SUCH_LINK]}
    play(acme, old, "use", percent=1), play(acme, new, "use", percent=1)
    advance(acme, 1)
    reply = acme.post(clock, json={"hours": 24 * 8, "link_id": old["id"]})
    assert reply.json["data"]["ahead_hours"] == 24 * 8 + 1
    for each, ahead in ((old, 24 * 8 + 1), (new, 1)):
        state = acme.get(f"{SANDBOX}?link_id={each['id']}").json["data"]
        assert state["ahead_hours"] == ahead
    found = [acme.read(each).json["data"]["activations"][0]["status"] for each in (old, new)]
    assert found == ["expired", "active"]
    assert service.container.counters.simulated_ahead([rival.id]) == timedelta(0)


# A clean slate.


def reset(tenant: Tenant) -> TestResponse:
    return tenant.post(f"{SANDBOX}/reset")


def test_a_clean_slate_lists_nothing_that_has_ended_and_plays_nothing(acme: Buyer) -> None:
    rival, link = buyer(acme.service), acme.link(FREE)
    job, other = (each.finished_job([VALID])["job_id"] for each in (acme, rival))
    advance(acme, 24), script(acme, "lookup", "slow"), script(rival, "lookup", "slow")
    acme.look_up("+15005550004")
    assert acme.open("DELETE", f"{LINKS}/{link['id']}").status_code == 200
    before, entries = acme.balance(), acme.transactions()
    for _ in range(2):
        state = reset(acme).json["data"]
        assert (state["ahead_hours"], state["next"]) == (0, [])
    plan = f"plan_id={acme.plans[FREE]}"
    for query in ("", "?status=ended", f"?search={FREE}", f"?{plan}", "?sort=created_at"):
        assert acme.get(f"{LINKS}{query}").json["data"]["meta"]["total"] == 0, query
    assert acme.get(f"/number-lookup/bulk/{job}").json["data"]["status"] == "completed"
    assert acme.open("PATCH", f"{LINKS}/{link['id']}", json={"name": "x"}).status_code == 200
    assert acme.get(LINKS).json["data"]["data"] == []
    assert (acme.balance(), acme.transactions()) == (before, entries)
    assert code_of(acme.look_up("+15005550004")) == "NUMBER_LOOKUP_UNAVAILABLE", "the first again"
    assert (len(failing(rival)), rival.get(f"/number-lookup/bulk/{other}").status_code) == (1, 200)
    new = [acme.link(FREE)["id"] for _ in range(3)]
    page = acme.get(LINKS).json["data"]
    assert [each["id"] for each in page["data"]] == new[::-1]
    assert page["meta"]["total"] == 3


def test_only_a_slate_that_was_written_on_is_an_event(acme: Buyer) -> None:
    heads = [acme.service.container.log.head()]
    for is_written_on in (False, True, False):
        if is_written_on:
            acme.finished_job([VALID])
            heads.append(acme.service.container.log.head())
        assert reset(acme).status_code == 200
        heads.append(acme.service.container.log.head())
    assert [later > earlier for earlier, later in pairwise(heads)] == [False, True, True, False]
    for _ in range(RESETS_MAX - 1):
        Tenant.change(acme, lambda own: own.record(own.SandboxReset, acme.service.cause()))
    acme.finished_job([VALID]), advance(acme, 24)
    assert code_of(reset(acme)) == "RATE_LIMITED"
    assert acme.get(SANDBOX).json["data"]["ahead_hours"] == 24, "nothing was done"


def test_a_link_that_is_being_made_keeps_its_clock(still: Service) -> None:
    """Else the network would have made it in a time that is to come."""
    parts, acme = still.container, still.tenant()
    parts.projector.catch_up()
    advance(acme, 100)
    steps = LinkSteps(parts, acme.id).reserve()
    assert {code_of(reset(acme)), code_of(advance(acme, 1))} == {"SERVICE_UNAVAILABLE"}
    parts.projector.catch_up()
    assert code_of(reset(acme)) == "LINK_IN_USE"
    assert acme.get(SANDBOX).json["data"]["ahead_hours"] == 100
    steps.fail().release()
    parts.projector.catch_up()
    assert reset(acme).json["data"]["ahead_hours"] == 0


def test_a_link_that_lives_at_a_reset_stays_listed(acme: Buyer) -> None:
    """As one does that was bought at the same moment."""
    links = [acme.link(FREE)["id"] for _ in range(5)]
    for each in links[:4:2]:
        acme.open("DELETE", f"{LINKS}/{each}")
    Tenant.change(acme, lambda own: own.record(own.SandboxReset, acme.service.cause()))
    acme.service.until_projected("links")
    page = acme.get(LINKS, query_string={"per_page": 2}).json["data"]
    assert [page["meta"]["total"], *(each["id"] for each in page["data"])] == [3, *links[:-3:-1]]
    page = acme.get(LINKS, query_string={"per_page": 2, "page": 2}).json["data"]
    assert page["data"][0]["id"] == links[1]
    assert acme.link(FREE)["id"] == acme.get(LINKS).json["data"]["data"][0]["id"]


# What happens to a link.


def test_what_was_so_already_says_that_nothing_changed(acme: Buyer) -> None:
    link = acme.link(FREE)
    for action, more in (
        ("install", {}),
        ("roam", {"country_code": "DE"}),
        ("use", {"percent": 80}),
        ("expire", {"hours": 24}),
        ("suspend", {}),
        ("use", {"percent": 90}),
        ("deactivate", {}),
        ("expire", {}),
    ):
        changed = [play(acme, link, action, **more).json["data"]["changed"] for _ in range(2)]
        assert changed == [True, False], action


def test_a_plan_that_is_over_is_used_no_more(acme: Buyer) -> None:
    link = acme.link(FREE)
    [plan] = play(acme, link, "expire").json["data"]["activations"]
    over = [sandbox.OVER]
    assert fields_of(play(acme, link, "use", percent=100)) == {"action": over}
    named = play(acme, link, "use", percent=100, activation_id=plan["id"])
    assert fields_of(named) == {"activation_id": over}
    assert list(fields_of(play(acme, link, "roam", country_code="FR"))) == ["country_code"]
    assert acme.read(link).json["data"]["data_used_mb"] < 1


def test_a_plan_is_named_by_its_activation(acme: Buyer) -> None:
    link = acme.link()
    assert acme.change(link, add=[MORE]).status_code == 200
    first, second = (each["id"] for each in acme.read(link).json["data"]["activations"])
    for _ in range(2):
        play(acme, link, "use", percent=100, activation_id=second)
    activations = acme.read(link).json["data"]["activations"]
    used = {each["id"]: each["data_remaining_mb"] for each in activations}
    assert (used[first] > 999, used[second]) == (True, 0)
    unknown = play(acme, link, "use", percent=1, activation_id=MISSING)
    assert list(fields_of(unknown)) == ["activation_id"]


WRONG: list[tuple[dict[str, Any], set[str]]] = [
    ({"action": "use"}, {"percent"}),
    *[({"action": "use", "percent": each}, {"percent"}) for each in (0, 101, True, "80")],
    ({"action": "use", "percent": 1, "activation_id": "x"}, {"activation_id"}),
    ({"action": "roam"}, {"country_code"}),
    ({"action": "roam", "country_code": "XX"}, {"country_code"}),
    *[({"action": "expire", "hours": each}, {"hours"}) for each in (-1, 8_761)],
]


def test_an_action_says_all_that_it_needs_and_no_more(acme: Buyer) -> None:
    link = acme.link(FREE)
    for body, wrong in WRONG:
        reply = acme.post(f"{SANDBOX}/links/{link['id']}", json=body)
        assert fields_of(reply).keys() == wrong, body
    elsewhere = play(acme, acme.link(BASIC), "roam", country_code="US")
    assert fields_of(elsewhere).keys() == {"country_code"}


def test_only_the_simulated_network_can_be_played(
    make_service: MakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = make_service(**add_to({}, monkeypatch)).start()
    shop, plan_id = buyer(service), str(uuid4())
    offered = plan(SECOND, id=plan_id, network=SECOND, retail_price="0.00")
    import_plans(service.container, {**offered, "organization_id": str(shop.id)})
    service.until_projected("plans")
    link = shop.post(LINKS, json={"plan_id": plan_id}).json["data"]
    reply = play(shop, link, "install")
    assert (reply.status_code, code_of(reply)) == (409, "NOT_SUPPORTED_BY_NETWORK")


def test_a_network_that_has_forgotten_a_link_is_unavailable(service: Service, acme: Buyer) -> None:
    link = acme.link(FREE)
    network, stores = service.container.sandbox.network, service.container.stores
    for table in network.metadata.sorted_tables:
        if "endpoint_id" in table.c:
            with stores.writing() as connection:
                connection.execute(table.delete().where(table.c.iccid == link["iccid"]))
    assert code_of(play(acme, link, "install")) == "NETWORK_UNAVAILABLE"


# What fails.


def test_an_item_of_a_job_makes_three_attempts(acme: Buyer) -> None:
    script(acme, "lookup", "malformed", attempts=2)
    assert acme.finished_job([VALID])["failed_count"] == 0
    script(acme, "lookup", "malformed", attempts=3)
    job = acme.finished_job([VALID])
    assert (job["failed_count"], job["charge"]["refunded"]) == (1, "0.005")


def test_a_dry_run_uses_up_no_failure(acme: Buyer) -> None:
    script(acme, "purchase", "no_endpoint")
    dry = acme.post(f"{LINKS}?dry_run=true", json={"plan_id": acme.plans[BASIC]})
    assert (dry.status_code, acme.create().status_code, failing(acme)) == (200, 502, [])


def test_a_purchase_that_has_lost_a_race_counts_once(service: Service, acme: Buyer) -> None:
    parts, link = service.container, acme.link()
    found = parts.log.get(Link, UUID(link["id"]))
    script(acme, "purchase", "no_endpoint", attempts=2)
    played = list[str]()

    def beaten(owner: UUID, key: str | None, asked: BoughtPlan, cause: Cause) -> BoughtPlan:
        """Let another writer move the link between the decision and its commit."""
        chosen = parts.sandbox.play(owner, key, asked, cause)
        played.append(chosen.provider_plan_id)
        assert chosen.plan_id == asked.plan_id, "that is what the link has"
        if len(played) == 1:
            parts.link_readings.rename(found, "other", cause)
        return chosen

    change = ChangeRequest(acme.id, found.id, (), (UUID(acme.plans[MORE]),), None)
    with pytest.raises(IncompleteNetworkAnswer):
        replace(parts.link_plans, play=beaten).run(change, service.cause())
    assert played == ["sandbox-no-endpoint"] * 2
    assert failing(acme)[0]["attempts_left"] == 1


def test_a_failure_is_one_of_those_that_are_known_and_ends(acme: Buyer) -> None:
    its = {"operation": "lookup", "failure": "malformed"}
    for body, *wrong in (
        ({**its, "attempts": 0}, "attempts"),
        ({"operation": "change", "failure": "slow", "minutes": 1}, "minutes"),
        ({**its, "phone_number": "0160"}, "phone_number"),
        ({**REQUEST, "key_prefix": "two words"}, "key_prefix"),
    ):
        told = fields_of(acme.open("PUT", f"{SANDBOX}/failures", json=body))
        assert told.keys() == {*wrong}, body
    assert failing(acme) == []


def test_two_suites_script_side_by_side_and_each_meets_its_own(acme: Buyer) -> None:
    number, other = VALID, "+14155552671"
    script(acme, "lookup", "no_data", phone_number=number)
    script(acme, "purchase", "no_endpoint", key_prefix="one-")
    script(acme, "purchase", "provider_error", key_prefix="two-")
    script(acme, "request", "link_busy", plan_id=acme.plans[MORE])
    assert acme.look_up(other).status_code == 200
    assert code_of(acme.look_up(number)) == "NUMBER_LOOKUP_UNAVAILABLE"
    assert acme.look_up(number).status_code == 200
    assert acme.create(FREE).status_code == 201
    found = [code_of(acme.create(BASIC, f"{each}-1")) for each in ("two", "one")]
    assert found == ["PROVISIONING_ERROR", "PROVISIONING_FAILED"]
    assert acme.create(BASIC, "one-2").status_code == 201
    assert [each["only"] for each in failing(acme)] == [f"plan_id {acme.plans[MORE]}"]
    assert number not in acme.get(SANDBOX).text


def test_a_change_of_the_links_of_one_plan_fails_and_a_request_by_number_or_key(
    acme: Buyer,
) -> None:
    link, other = acme.link(FREE), acme.link(BASIC)
    script(acme, "change", "refused", plan_id=acme.plans[FREE])
    assert acme.post(f"{LINKS}/{other['id']}/suspend").status_code == 200
    assert acme.post(f"{LINKS}/{link['id']}/suspend").status_code == 502
    assert acme.post(f"{LINKS}/{link['id']}/suspend").status_code == 200
    script(acme, "request", "service_unavailable", phone_number=VALID)
    script(acme, "request", "internal_error", key_prefix="k-")
    script(acme, "request", "rate_limited")
    assert acme.get(WALLET).status_code == 429
    assert acme.get(WALLET).status_code == 200
    assert [acme.look_up(VALID).status_code for _ in range(2)] == [503, 200]
    assert [acme.create(FREE, "k-1").status_code for _ in range(2)] == [500, 201]


def test_what_is_scripted_at_once_is_bounded_and_one_can_be_ended(acme: Buyer) -> None:
    for each in range(sandbox.SCRIPTS_MAX):
        assert script(acme, "purchase", "slow", key_prefix=f"{each}-").status_code == 200
    assert fields_of(script(acme, "purchase", "slow")) == {"operation": [sandbox.TOO_MANY_SCRIPTS]}
    assert script(acme, "purchase", "no_esim", key_prefix="7-").status_code == 200
    for ended in ("none-", "7-"):
        assert script(acme, "purchase", None, key_prefix=ended).status_code == 200
    assert script(acme, "purchase", "slow").status_code == 200
    assert len(failing(acme)) == sandbox.SCRIPTS_MAX


def test_a_change_that_the_network_answers_too_late_leaves_the_link(
    acme: Buyer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("domain.links.driver.CALL_S", 1.0)
    rival = buyer(acme.service)
    for path, method in (("/suspend", "POST"), ("/cancel", "POST"), ("", "DELETE")):
        link, other = acme.link(FREE), rival.link(FREE)
        script(acme, "change", "slow")
        mine = acme.open(method, f"{LINKS}/{link['id']}{path}")
        theirs = rival.open(method, f"{LINKS}/{other['id']}{path}")
        assert (mine.status_code, theirs.status_code) == (502, 200), path
        assert (code_of(mine), failing(acme)) == ("PROVISIONING_ERROR", [])
        assert mine.json["error"]["details"]["reason"] == "deadline"
        assert acme.read(link).json["data"]["status"] == "active"


def test_what_needs_no_change_of_a_link_uses_up_no_attempt(make_service: MakeService) -> None:
    acme = buyer(make_service(PROVISIONING_DEADLINE_S="3").start())
    link = acme.link(FREE)
    script(acme, "change", "refused")
    assert acme.post(f"{LINKS}/{link['id']}/reactivate").status_code == 200
    assert play(acme, link, "suspend").status_code == 200
    assert acme.create("sandbox-slow").status_code == 502  # Its late endpoint is removed.
    assert acme.create("sandbox-no-endpoint").status_code == 502
    assert len(failing(acme)) == 1


# What is refused before it begins.

LOOKUP, WALLET = f"/number-lookup?phone_number=%2B{VALID[1:]}", "/v1/wallet"


def test_a_played_rate_limit_is_the_one_of_its_organization(make_service: MakeService) -> None:
    tenant = make_service(RATE_LIMIT_PER_MINUTE="7").start().tenant()
    script(tenant, "request", "rate_limited")
    reply = tenant.get(WALLET)
    assert (reply.status_code, code_of(reply)) == (429, "RATE_LIMITED")
    assert "More than 7 requests" in reply.json["error"]["message"]
    assert reply.headers["RateLimit-Policy"] == '"default";q=7;w=60'
    assert reply.headers["RateLimit"].startswith('"default";r=0;')


@pytest.mark.parametrize("how", sandbox.FAILURES["request"])
def test_nothing_is_done_and_the_key_stays_free(acme: Buyer, how: str) -> None:
    rival = buyer(acme.service)
    of_links = {"link_busy", "not_supported_by_network", "cancel_window_over", "link_in_use"}
    if how in of_links:
        link = acme.link(FREE)
        script(acme, "request", how)
        assert code_of(acme.post(f"{LINKS}/{link['id']}/cancel")) == how.upper()
        assert acme.post(f"{LINKS}/{link['id']}/cancel").status_code == 200
        return
    if how != "number_lookup_disabled":
        script(acme, "request", how, attempts=2)
        for reply in (acme.create(key="k-1", name="a"), acme.create("more", key="k-1")):
            assert code_of(reply) == how.upper()
            again = reply.status_code in {409, 429, 503}
            assert reply.json["error"].get("details", {}).get("retryable", False) is again
            assert ("Retry-After" in reply.headers) is again
        assert rival.create(key="k-1").status_code == 201
        assert acme.create(FREE, key="k-1").status_code == 201
        assert len(acme.get(LINKS).json["data"]["data"]) == 1
    if how != "config_error":
        script(acme, "request", how)
        assert code_of(acme.post(LOOKUP)) == how.upper()
    assert (acme.balance(), failing(acme)) == ("100.00", [])


def test_only_a_request_that_can_be_refused_so_uses_up_an_attempt(acme: Buyer) -> None:
    link = acme.link(FREE)
    script(acme, "request", "insufficient_balance", minutes=5)
    assert acme.get(WALLET).status_code == 200
    assert acme.create(FREE).status_code == 201  # It costs nothing.
    assert acme.change(link, remove=[link["activations"][0]["id"]]).status_code == 200
    dry = acme.post(f"{LINKS}?dry_run=true", json={"plan_id": acme.plans[BASIC]})
    for reply, price in (
        (dry, "4.50"),
        (acme.create(), "4.50"),
        (acme.change(link, add=[BASIC, MORE]), "6.50"),
        (acme.create_job([VALID, "+14155550101"]), "0.01"),
    ):
        assert code_of(reply) == "INSUFFICIENT_BALANCE"
        assert reply.json["error"]["details"]["required"] == price
    script(acme, "request", "config_error")
    assert acme.get(WALLET).status_code == 200  # It never has this code.
    assert code_of(acme.create(FREE)) == "CONFIG_ERROR"
    script(acme, "request", "service_unavailable")
    for wrong in (acme.get(f"{LINKS}/{MISSING}"), acme.post(LINKS, json={}), acme.get(SANDBOX)):
        assert wrong.status_code in {200, 404, 422}
    assert acme.service.token(acme.client_id)
    assert len(failing(acme)) == 2 - 1
    assert code_of(acme.get(WALLET)) == "SERVICE_UNAVAILABLE"
