"""The balance, its threshold and the transactions of an organization."""

import pytest

from app.http.edge.input import PAGE_MAX, PAST_ALL
from domain.accounts.organization import Organization
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, Tenant, fields_of

NUMBER = "+971508245915"
TRANSACTIONS = "/v1/transactions"
NO_PAGES = "0|-1|1.5|1e2|one||1 0|1_0|+1|\u0661|0x1|true|" + "9" * 30
NO_MOMENTS = (
    "2026-01-01T00:00:00 20260101 2026-W01-1 2026-02-30 yesterday 1760000000 2026-13-01T00:00Z"
)
NO_FILTERS = ["kind=tip", "kind=Lookup", "reference=" + "r" * 256, "reference=a%00"]
WHOLE, UP_TO = "Must be a whole number, 1 or more.", "Must be a whole number from 1 to 100."
WORDS = {
    "page=0": WHOLE,
    f"page={PAGE_MAX + 1}": PAST_ALL,
    "per_page=0": UP_TO,
    "per_page=101": UP_TO,
    "per_page=1&per_page=2": "Must be given once.",
    "kind=lookup&kind=refund": "Must be given once.",
}


def test_what_cannot_be_meant_is_refused_in_words_that_help(acme: Tenant) -> None:
    for name in ("page", "per_page"):
        for value in NO_PAGES.split("|"):
            reply = acme.get(TRANSACTIONS, query_string={name: value})
            assert [*fields_of(reply)] == [name], value
    for name in ("from", "to"):
        for value in NO_MOMENTS.split():
            told = fields_of(acme.get(TRANSACTIONS, query_string={name: value}))
            assert [*told] == [name], value
            assert "such as 2026-11-21" in told[name][0]
    for query in NO_FILTERS:
        assert [*fields_of(acme.get(f"{TRANSACTIONS}?{query}"))] == [query.partition("=")[0]]
    for query, words in WORDS.items():
        assert [*fields_of(acme.get(f"{TRANSACTIONS}?{query}")).values()] == [[words]]


MOMENTS = [
    "2000-01-01T00:00:00Z",
    "2000-01-01T00:00:00+00:00",
    "2000-01-01T00:00:00 02:00",  # The plus of an offset may arrive as a space.
    "2000-01-01T05:30:00.123456+05:30",
    "0001-01-01T00:00:00+14:00",
    "2000-01-01 00:00:00-08:00",
]


def test_a_moment_may_have_any_offset_and_a_page_may_be_past_the_end(service: Service) -> None:
    tenant = service.tenant(balance="1.00")
    service.until_projected("transactions")
    for moment in MOMENTS:
        assert len(tenant.transactions(**{"from": moment})) == 1
        assert tenant.transactions(to=moment) == []
    for page in (2, 1000, PAGE_MAX):
        assert tenant.transactions(page=page, kind="") == []
        assert tenant.transactions(page=page, kind="lookup") == []
    assert tenant.get(f"{TRANSACTIONS}?utm=1&utm=2").status_code == 200, "it is not read"


def test_while_the_projector_stands_still_the_log_answers_and_reads_are_delayed_only_a_little(
    make_service: MakeService,
) -> None:
    tenant = make_service().tenant(balance="3.00")
    charge = tenant.look_up(NUMBER).json["meta"]["charge"]["transaction_id"]
    assert tenant.balance() == "2.995"
    reply = tenant.get(f"{TRANSACTIONS}/{charge}")  # It is not called unknown.
    assert (reply.status_code, reply.json["error"]["details"]["retryable"]) == (503, True)
    assert "Retry-After" in reply.headers
    reply = tenant.get(TRANSACTIONS)
    assert reply.status_code == 200
    assert 200 <= reply.json["meta"]["response_time_ms"] < 2_000


def test_a_threshold_above_the_balance_is_told_with_that_balance(service: Service) -> None:
    tenant = service.tenant(balance="9.75")
    for threshold in ("9.75", "10"):
        reply = tenant.open("PATCH", "/v1/account", json={"low_balance_threshold": threshold})
        assert reply.status_code == 200, reply.text
    events = service.container.log.history(tenant.id)
    told = [each for each in events if isinstance(each, Organization.LowBalanceThresholdSet)]
    balances = [(each.balance_micros, each.currency) for each in told]
    assert balances == [(None, None), (9_750_000, "USD")]


@pytest.mark.each_database
def test_what_is_behind_a_sequence_comes_oldest_first(service: Service) -> None:
    paid = service.tenant(balance="1.00")
    for index in range(6):
        paid.deposit(f"{index + 2}.00")
    service.container.projector.catch_up()
    every = [*reversed(paid.transactions())]
    for after in (0, 2, 6, 7, 10**12):
        query = {"after_sequence": after}
        page = paid.get(TRANSACTIONS, query_string={**query, "per_page": 2, "page": 2}).json["data"]
        assert page["data"] == every[after + 2 : after + 4]
        assert page["meta"]["total"] == max(0, len(every) - after)
        csv = paid.get(TRANSACTIONS, query_string=query, headers={"Accept": "text/csv"})
        sequences = [int(line.split(",")[0]) for line in csv.text.splitlines()[1:]]
        assert sequences == [each["sequence"] for each in every[after:]]


def test_a_sequence_stands_alone(acme: Tenant) -> None:
    for other in ("kind=deposit", "from=2026-01-01", "reference=a"):
        refused = fields_of(acme.get(f"{TRANSACTIONS}?after_sequence=1&{other}"))
        words = "Must be given without kind, from, to and reference."
        assert refused == {"after_sequence": [words]}
    assert [*fields_of(acme.get(f"{TRANSACTIONS}?after_sequence=-1"))] == ["after_sequence"]
