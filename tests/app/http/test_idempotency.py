"""The same key and the same request: one outcome, one charge."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from domain.commands import single_lookup
from domain.ids import derive_id
from domain.number_lookup import number_lookup_id
from projections.database import Database
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, Tenant, code_of, fields_of

NUMBER = "+971508245915"
OTHER = "+14155552671"
SLOW = "+15005550002"
DOWN = "+15005550001"


@pytest.fixture
def tenant(service: Service) -> Tenant:
    return service.tenant(balance="1.00")


def test_a_lookup_is_charged_once(tenant: Tenant) -> None:
    first = tenant.look_up(NUMBER, **{"Idempotency-Key": "k"})
    again = tenant.look_up(NUMBER, **{"Idempotency-Key": "k"})
    assert "Idempotency-Replayed" not in first.headers
    assert again.headers["Idempotency-Replayed"] == "true"
    assert first.status_code == again.status_code == 200
    assert first.json["data"] == again.json["data"]
    own = {"timestamp", "response_time_ms", "request_id"}
    for name in first.json["meta"].keys() - own:
        assert first.json["meta"][name] == again.json["meta"][name]
    assert tenant.balance() == "0.995"


def test_the_body_and_the_query_make_the_same_request(tenant: Tenant) -> None:
    headers = {"Idempotency-Key": "k"}
    first = tenant.look_up(NUMBER, **headers)
    again = tenant.post("/number-lookup", json={"phone_number": NUMBER}, headers=headers)
    assert first.json["meta"]["lookup_id"] == again.json["meta"]["lookup_id"]


def test_a_job_is_made_and_charged_once(tenant: Tenant) -> None:
    first = tenant.create_job([NUMBER, OTHER], **{"Idempotency-Key": "k"})
    again = tenant.create_job([NUMBER, OTHER], **{"Idempotency-Key": "k"})
    assert "Idempotency-Replayed" not in first.headers
    assert again.headers["Idempotency-Replayed"] == "true"
    assert (first.status_code, first.json["data"]) == (again.status_code, again.json["data"])
    assert first.headers["Location"] == again.headers["Location"]
    assert tenant.balance() == "0.99"


def test_another_request_with_the_key_is_refused(tenant: Tenant) -> None:
    key = {"Idempotency-Key": "k"}
    tenant.look_up(NUMBER, **key)
    tenant.create_job([NUMBER, OTHER], **key)
    for reply in (tenant.look_up(OTHER, **key), tenant.create_job([OTHER, NUMBER], **key)):
        assert (reply.status_code, code_of(reply)) == (422, "IDEMPOTENCY_KEY_REUSED")


def test_a_key_belongs_to_one_organization(tenant: Tenant, rival: Tenant) -> None:
    mine = tenant.look_up(NUMBER, **{"Idempotency-Key": "shared"})
    theirs = rival.look_up(OTHER, **{"Idempotency-Key": "shared"})
    assert (mine.status_code, theirs.status_code) == (200, 200)
    assert "Idempotency-Replayed" not in theirs.headers


def test_a_request_that_took_nothing_frees_its_key(service: Service) -> None:
    tenant = service.tenant(balance="0")
    key = {"Idempotency-Key": "k"}
    assert tenant.look_up(NUMBER, **key).status_code == 402
    assert tenant.create_job([NUMBER], **key).status_code == 402
    tenant.deposit("1.00")
    assert tenant.look_up(DOWN, **key).status_code == 503
    assert tenant.look_up(OTHER, **key).status_code == 200
    assert tenant.create_job([OTHER], **key).status_code == 202


def test_twins_at_the_same_moment_get_one_outcome(tenant: Tenant) -> None:
    def ask(_: int) -> tuple[str, str]:
        client = tenant.service.app.test_client()
        headers = {**tenant.headers, "Idempotency-Key": "twins"}
        reply = client.post(
            "/number-lookup", query_string={"phone_number": NUMBER}, headers=headers
        )
        return reply.json["meta"]["lookup_id"], reply.json["meta"]["charge"]["transaction_id"]

    with ThreadPoolExecutor(8) as pool:
        outcomes = set(pool.map(ask, range(8)))
    assert len(outcomes) == 1
    assert tenant.balance() == "0.995"


def test_a_key_whose_first_request_still_runs_refuses_another_request(tenant: Tenant) -> None:
    key = {"Idempotency-Key": "k"}
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(slow_lookup, tenant, key)
        stores = tenant.service.container.stores
        tenant.service.until(lambda: lease_count(stores) > 0)
        assert code_of(tenant.look_up(OTHER, **key)) == "IDEMPOTENCY_KEY_REUSED"
        assert running.result() == 200
    assert tenant.balance() == "0.995"


def test_a_first_request_that_does_not_end_in_time_is_a_409(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = tenant.service.container
    lease = number_lookup_id(tenant.id, "k")
    fingerprint = derive_id("fingerprint", lease, NUMBER).hex[:4]
    until = parts.clock() + timedelta(seconds=50)
    assert parts.leases.acquire(lease, parts.accounts.new_id(), fingerprint, until) is None
    monkeypatch.setattr(single_lookup, "WAIT_S", 0.05)
    reply = tenant.look_up(NUMBER, **{"Idempotency-Key": "k"})
    assert (reply.status_code, code_of(reply)) == (409, "IDEMPOTENCY_IN_PROGRESS")
    assert reply.json["error"]["details"] == {"retryable": True}
    assert reply.headers["Retry-After"] == "1"


def slow_lookup(tenant: Tenant, key: dict[str, str]) -> int:
    client = tenant.service.app.test_client()
    query = {"phone_number": SLOW}
    reply = client.post("/number-lookup", query_string=query, headers={**tenant.headers, **key})
    return reply.status_code


def lease_count(stores: Database) -> int:
    with stores.reading() as connection:
        found: int = connection.exec_driver_sql("SELECT count(*) FROM leases").scalar_one()
    return found


@pytest.mark.parametrize("key", ["k", "!", "~", "k" * 255, "a/b=c+d,e;f"])
def test_a_key_may_hold_any_visible_ascii(tenant: Tenant, key: str) -> None:
    assert tenant.look_up(NUMBER, **{"Idempotency-Key": key}).status_code == 200


@pytest.mark.parametrize("key", ["", " ", "two words", "k" * 256, "é", "tab\t", "\x7f"])
def test_any_other_key_is_refused(tenant: Tenant, key: str) -> None:
    for reply in (
        tenant.look_up(NUMBER, **{"Idempotency-Key": key}),
        tenant.create_job([NUMBER], **{"Idempotency-Key": key}),
    ):
        assert list(fields_of(reply)) == ["Idempotency-Key"]
    assert tenant.balance() == "1.00"


def test_reads_ignore_the_key(tenant: Tenant) -> None:
    assert tenant.get("/v1/wallet", headers={"Idempotency-Key": "two words"}).status_code == 200


def test_an_erased_lookup_is_not_replayed(make_service: MakeService) -> None:
    service = make_service()
    tenant = service.tenant(balance="1.00")
    key = {"Idempotency-Key": "k"}
    assert tenant.look_up(NUMBER, **key).status_code == 200
    service.container.vault.erase("9999-12")
    assert tenant.look_up(NUMBER, **key).status_code == 404
    wallet = service.container.accounts.wallet(tenant.id)
    assert wallet.balance_micros == 995_000
