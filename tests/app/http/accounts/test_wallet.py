"""The balance and the transactions of an organization."""

from collections.abc import Iterator
from datetime import date, timedelta
from functools import partial

import pytest

from app.http.edge import replies
from app.http.edge.paging import PAGE_MAX, PAST_ALL
from projections.engine.freshness import wait_until_projected
from projections.models.transactions import KINDS
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, Tenant, code_of, fields_of
from tests.installation import PATIENCE_S

NUMBER = "+971508245915"
DOWN = "+15005550001"
TRANSACTIONS = "/v1/transactions"


@pytest.fixture(scope="module")
def spender(service: Service) -> Tenant:
    """Deposit 10.00, three lookups, a job with one failed item, a correction: seven entries."""
    tenant = service.tenant(balance="10.00")
    for _ in range(3):
        tenant.look_up(NUMBER)
    tenant.finished_job([NUMBER, DOWN])
    service.container.accounts.adjust(
        tenant.id, -1_000_000, "Correction", service.cause(), reference="c-1"
    )
    return tenant


def job_of(tenant: Tenant) -> str:
    return str(tenant.transactions(kind="bulk_lookup")[0]["reference"]["id"])


@pytest.mark.any_database
def test_the_balance_is_a_decimal_with_its_currency(service: Service) -> None:
    tenant = service.tenant(balance="12.5")
    assert tenant.get("/v1/wallet").json["data"] == {"balance": "12.50", "currency": "USD"}


@pytest.mark.any_database
def test_an_organization_without_a_wallet_has_none_to_read(service: Service) -> None:
    reply = service.tenant(balance=None).get("/v1/wallet")
    assert (reply.status_code, code_of(reply)) == (404, "NOT_FOUND")


def test_the_stream_of_one_without_a_wallet_is_empty(service: Service) -> None:
    reply = service.tenant(balance=None).get(TRANSACTIONS)
    assert reply.json["data"] == {
        "data": [],
        "meta": {"total": 0, "per_page": 50, "current_page": 1, "last_page": 1},
    }


def test_entries_are_newest_first_with_a_sequence_without_gaps(spender: Tenant) -> None:
    entries = spender.transactions()
    assert [entry["sequence"] for entry in entries] == [7, 6, 5, 4, 3, 2, 1]
    assert [entry["kind"] for entry in entries] == [
        "adjustment",
        "refund",
        "bulk_lookup",
        "lookup",
        "lookup",
        "lookup",
        "deposit",
    ]
    assert [entry["direction"] for entry in entries] == ["debit", "credit"] + ["debit"] * 4 + [
        "credit"
    ]
    positions = [entry["position"] for entry in entries]
    assert positions == sorted(positions, reverse=True)
    assert entries[0]["balance_after"] == spender.balance() == "8.98"


@pytest.mark.any_database
def test_an_entry_has_the_fields_of_the_contract(spender: Tenant) -> None:
    charge = spender.transactions(kind="bulk_lookup")[0]
    assert charge.pop("id")
    assert charge.pop("charged_at").endswith("Z")
    assert charge.pop("position") > 0
    assert charge == {
        "sequence": 5,
        "kind": "bulk_lookup",
        "amount": "0.01",
        "direction": "debit",
        "currency": "USD",
        "plan_name": None,
        "description": "Bulk number lookup",
        "reference": {"type": "job", "id": job_of(spender)},
        "metadata": {"count": 2, "price_per_lookup": "0.005"},
        "balance_after": "9.975",
    }


def test_one_entry_can_be_read_by_its_id(spender: Tenant) -> None:
    entry = spender.transactions()[2]
    assert spender.get(f"{TRANSACTIONS}/{entry['id']}").json["data"] == entry


@pytest.mark.any_database
@pytest.mark.parametrize(
    "transaction_id", ["none", "8c1f0c7e-5b1f-4a5e-8a44-0f6f6f0e2d11", "0" * 32, "%00"]
)
def test_a_transaction_that_does_not_exist_is_a_404(spender: Tenant, transaction_id: str) -> None:
    reply = spender.get(f"{TRANSACTIONS}/{transaction_id}")
    assert (reply.status_code, code_of(reply)) == (404, "NOT_FOUND")


def pages(tenant: Tenant, **query: object) -> Iterator[list[int]]:
    page = last = 1
    while page <= last:
        reply = tenant.get(TRANSACTIONS, query_string={**query, "page": page})
        last = reply.json["data"]["meta"]["last_page"]
        yield [entry["sequence"] for entry in reply.json["data"]["data"]]
        page += 1


@pytest.mark.parametrize("per_page", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("query", [{}, {"from": "2000-01-01T00:00:00Z"}])
def test_pages_neither_repeat_nor_skip(
    spender: Tenant, per_page: int, query: dict[str, str]
) -> None:
    found = list(pages(spender, per_page=per_page, **query))
    assert [sequence for page in found for sequence in page] == [7, 6, 5, 4, 3, 2, 1]
    assert len(found) == -(-7 // per_page)


@pytest.mark.any_database
def test_a_page_tells_where_it_stands(spender: Tenant) -> None:
    reply = spender.get(f"{TRANSACTIONS}?page=2&per_page=3")
    assert reply.json["data"]["meta"] == {
        "total": 7,
        "per_page": 3,
        "current_page": 2,
        "last_page": 3,
    }


@pytest.mark.parametrize("page", [8, 1000, PAGE_MAX])
@pytest.mark.parametrize("kind", ["", "lookup"])
def test_a_page_past_the_end_is_empty(spender: Tenant, page: int, kind: str) -> None:
    reply = spender.get(TRANSACTIONS, query_string={"page": page, "per_page": 100, "kind": kind})
    assert reply.status_code == 200
    assert reply.json["data"]["data"] == []


NO_PAGES = [
    "0",
    "-1",
    "1.0",
    "1e2",
    "one",
    "",
    " 1",
    "1_0",
    "+1",
    "\u0661",
    "9" * 30,
    "0x1",
    "true",
]


@pytest.mark.any_database
@pytest.mark.parametrize("name", ["page", "per_page"])
def test_a_page_out_of_range_is_refused(spender: Tenant, name: str) -> None:
    for value in NO_PAGES:
        reply = spender.get(TRANSACTIONS, query_string={name: value})
        assert list(fields_of(reply)) == [name], value


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("page=0", "Must be a whole number, 1 or more."),
        ("page=-1", "Must be a whole number, 1 or more."),
        (f"page={PAGE_MAX + 1}", PAST_ALL),
        ("per_page=0", "Must be a whole number from 1 to 100."),
        ("per_page=-1", "Must be a whole number from 1 to 100."),
        ("per_page=101", "Must be a whole number from 1 to 100."),
        ("per_page=1&per_page=2", "Must be given once."),
        ("kind=lookup&kind=refund", "Must be given once."),
    ],
)
def test_what_a_page_may_be_is_told_in_words_that_help(
    spender: Tenant, query: str, told: str
) -> None:
    assert [*fields_of(spender.get(f"{TRANSACTIONS}?{query}")).values()] == [[told]]


@pytest.mark.any_database
def test_what_is_not_read_may_come_twice(spender: Tenant) -> None:
    assert spender.get(f"{TRANSACTIONS}?utm=1&utm=2").status_code == 200


@pytest.mark.any_database
def test_too_many_per_page_are_refused(spender: Tenant) -> None:
    assert list(fields_of(spender.get(f"{TRANSACTIONS}?per_page=101"))) == ["per_page"]


def test_entries_can_be_filtered_by_kind(spender: Tenant) -> None:
    counts = {kind: len(spender.transactions(kind=kind)) for kind in KINDS}
    assert {kind: count for kind, count in counts.items() if count} == {
        "deposit": 1,
        "lookup": 3,
        "bulk_lookup": 1,
        "refund": 1,
        "adjustment": 1,
    }


def test_entries_can_be_filtered_by_reference(spender: Tenant) -> None:
    entries = spender.transactions(reference=job_of(spender))
    assert [entry["kind"] for entry in entries] == ["refund", "bulk_lookup"]
    assert spender.transactions(reference="none") == []


def test_from_includes_its_moment_and_to_excludes_it(spender: Tenant) -> None:
    times = {entry["sequence"]: entry["charged_at"] for entry in spender.transactions()}
    adjusted_at, deposited_at = times[7], times[1]
    assert spender.transactions(**{"from": adjusted_at})[0]["sequence"] == 7
    before = spender.transactions(to=adjusted_at)
    assert 7 not in [entry["sequence"] for entry in before]
    everything = spender.transactions(**{"from": deposited_at, "to": "9999-12-31T23:59:59Z"})
    assert len(everything) == 7
    assert spender.transactions(to=deposited_at) == []


@pytest.mark.any_database
@pytest.mark.parametrize(
    "moment",
    [
        "2000-01-01T00:00:00Z",
        "2000-01-01T00:00:00+00:00",
        "2000-01-01T05:30:00.123456+05:30",
        "0001-01-01T00:00:00+14:00",
        "2000-01-01 00:00:00-08:00",
    ],
)
def test_a_moment_may_have_any_offset(spender: Tenant, moment: str) -> None:
    assert len(spender.transactions(**{"from": moment})) == 7
    assert spender.transactions(to=moment) == []


@pytest.mark.any_database
def test_the_plus_of_an_offset_may_arrive_as_a_space(spender: Tenant) -> None:
    reply = spender.get(f"{TRANSACTIONS}?from=2000-01-01T00:00:00+02:00")
    assert reply.json["data"]["meta"]["total"] == 7


NO_MOMENTS = [
    "2026-01-01T00:00:00",
    "20260101",
    "2026-W01-1",
    "2026-02-30",
    "yesterday",
    "1760000000",
    "2026-13-01T00:00Z",
]


@pytest.mark.any_database
@pytest.mark.parametrize("name", ["from", "to"])
def test_a_moment_without_an_offset_is_refused(spender: Tenant, name: str) -> None:
    for moment in NO_MOMENTS:
        told = fields_of(spender.get(TRANSACTIONS, query_string={name: moment}))
        assert list(told) == [name], moment
        assert "such as 2026-11-21" in told[name][0]


@pytest.mark.any_database
def test_a_date_is_its_first_instant_in_utc(service: Service) -> None:
    tenant = service.tenant(balance="1.00")
    [deposit] = tenant.transactions()
    today = date.fromisoformat(deposit["charged_at"][:10])
    tomorrow = str(today + timedelta(days=1))
    assert len(tenant.transactions(**{"from": str(today), "to": tomorrow})) == 1
    assert tenant.transactions(to=str(today)) == []
    assert tenant.transactions(**{"from": tomorrow}) == []


@pytest.mark.any_database
@pytest.mark.parametrize(
    "query",
    [
        "kind=tip",
        "kind=Lookup",
        "kind=lookup&kind=refund",
        "reference=" + "r" * 256,
        "reference=a%00",
    ],
)
def test_a_filter_that_names_nothing_is_refused(spender: Tenant, query: str) -> None:
    (field,) = fields_of(spender.get(f"{TRANSACTIONS}?{query}"))
    assert query.startswith(field)


@pytest.mark.any_database
def test_an_empty_filter_is_none(spender: Tenant) -> None:
    reply = spender.get(f"{TRANSACTIONS}?kind=&from=&to=&reference=")
    assert reply.json["data"]["meta"]["total"] == 7


def test_what_was_just_charged_is_read_at_once(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reads wait for the read model; for how long is the rule of other tests."""
    patient = partial(wait_until_projected, wait_s=PATIENCE_S)
    monkeypatch.setattr(replies, "wait_until_projected", patient)
    tenant = service.tenant(balance="1.00")
    for spent in range(1, 21):
        charge = tenant.look_up(NUMBER).json["meta"]["charge"]["transaction_id"]
        assert tenant.get(f"{TRANSACTIONS}/{charge}").status_code == 200
        assert tenant.transactions()[0]["id"] == charge
        assert tenant.balance() == f"{1 - spent * 0.005:.3f}".removesuffix("0")


def test_while_the_projector_stands_still_the_balance_comes_from_the_log(
    make_service: MakeService,
) -> None:
    tenant = make_service().tenant(balance="3.00")
    tenant.look_up(NUMBER)
    assert tenant.balance() == "2.995"


def test_a_charge_that_the_read_model_does_not_have_yet_is_not_called_unknown(
    make_service: MakeService,
) -> None:
    tenant = make_service().tenant()
    charge = tenant.look_up(NUMBER).json["meta"]["charge"]["transaction_id"]
    reply = tenant.get(f"{TRANSACTIONS}/{charge}")
    assert (reply.status_code, reply.json["error"]["details"]["retryable"]) == (503, True)
    assert "Retry-After" in reply.headers


def test_a_projector_that_stands_still_delays_a_read_only_a_little(
    make_service: MakeService,
) -> None:
    tenant = make_service().tenant()
    reply = tenant.get(TRANSACTIONS)
    assert reply.status_code == 200
    assert 200 <= reply.json["meta"]["response_time_ms"] < 2_000
