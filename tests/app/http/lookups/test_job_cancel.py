"""A job that is cancelled over HTTP, and the list of jobs."""

from threading import Thread
from uuid import UUID

import pytest

from domain.lookups.bulk_commands import SLICE_ITEMS
from domain.lookups.bulk_job import BulkJob
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, Tenant, code_of, fields_of
from tests.installation import numbers
from tests.support.erasing import erase_months

BULK = "/number-lookup/bulk"


@pytest.fixture
def still(make_service: MakeService) -> Tenant:
    """A tenant of a service whose workers stand still."""
    return make_service().tenant()


def new_job(tenant: Tenant, count: int = SLICE_ITEMS + 1) -> str:
    return str(tenant.create_job(numbers(count)).json["data"]["job_id"])


def work(tenant: Tenant, job_id: str, *slices: int) -> None:
    for each in slices:
        tenant.service.container.bulk_lookup.work(UUID(job_id), each)
    tenant.service.container.projector.catch_up()


def cancel(tenant: Tenant, job_id: str) -> dict[str, object]:
    reply = tenant.open("DELETE", f"{BULK}/{job_id}")
    assert reply.status_code == 200, reply.text
    data: dict[str, object] = reply.json["data"]
    return data


def test_a_cancelled_job_keeps_its_answers_and_gives_the_rest_back(still: Tenant) -> None:
    job_id = new_job(still)
    work(still, job_id, 1)
    told = cancel(still, job_id)
    assert told["charge"] == {
        "transaction_id": still.transactions(kind="bulk_lookup")[0]["id"],
        "amount": "1.255",
        "refunded": "1.25",
        "currency": "USD",
    }
    assert [told[name] for name in ("status", "processed_count", "failed_count")] == [
        "cancelled",
        1,
        0,
    ]
    assert told["cancelled_count"] == SLICE_ITEMS
    still.service.container.projector.catch_up()
    read = still.get(f"{BULK}/{job_id}")
    assert "Retry-After" not in read.headers
    items = read.json["data"].pop("items")
    assert [each["status"] for each in items] == ["cancelled"] * SLICE_ITEMS + ["completed"]
    assert items[0] == {
        "phone_number": numbers(1)[0],
        "status": "cancelled",
        "result": None,
        "error": None,
    }
    assert still.get(f"{BULK}/{job_id}?fields=summary").json["data"] == told
    assert still.balance() == "99.995"
    refund = still.transactions(kind="refund")[0]
    assert (refund["amount"], refund["reason"]) == ("1.25", "cancelled")
    assert refund["metadata"] == {"count": SLICE_ITEMS}


def test_again_is_the_same_and_takes_nothing(still: Tenant) -> None:
    job_id = new_job(still)
    first = cancel(still, job_id)
    head = still.service.container.log.head()
    assert cancel(still, job_id) == first
    assert still.service.container.log.head() == head


def test_a_free_job_is_cancelled_too(make_service: MakeService) -> None:
    tenant = make_service().tenant(balance=None, price="0")
    assert tenant.create_job(numbers(2)).json["data"]["charge"] is None
    assert cancel(tenant, new_job(tenant))["charge"] is None


def test_a_job_that_has_ended_is_a_409(still: Tenant) -> None:
    job_id = new_job(still, 1)
    work(still, job_id, 0)
    reply = still.open("DELETE", f"{BULK}/{job_id}")
    assert (reply.status_code, code_of(reply)) == (409, "JOB_FINISHED")
    assert reply.json["error"]["details"] == {"retryable": False}


def test_a_job_of_nobody_of_others_and_of_a_forgotten_time_is_a_404(still: Tenant) -> None:
    job_id, rival = new_job(still), still.service.tenant()
    paths = [f"{BULK}/{job_id}", f"{BULK}/none", f"{BULK}/{rival.id}"]
    assert {code_of(rival.open("DELETE", path)) for path in paths} == {"NOT_FOUND"}
    erase_months(still.service.container.vault, "9999-12")
    for path in (f"{BULK}/{job_id}", f"{BULK}/{job_id}?fields=summary"):
        assert code_of(still.get(path)) == "NOT_FOUND"
    assert code_of(still.open("DELETE", f"{BULK}/{job_id}")) == "NOT_FOUND"
    assert still.balance() == "98.745"


def test_a_body_that_cannot_be_read_cancels_nothing(still: Tenant) -> None:
    job_id = new_job(still)
    reply = still.open("DELETE", f"{BULK}/{job_id}", data=b"{", content_type="application/json")
    assert reply.status_code == 400
    log = still.service.container.log
    assert log.get(BulkJob, UUID(job_id)).finished_at is None


def test_twelve_at_once_are_one_refund(service: Service) -> None:
    tenant = service.tenant()
    job_id = new_job(tenant, 1_000)
    told = list[tuple[int, dict[str, object]]]()

    def ask() -> None:
        client = service.app.test_client()
        reply = client.delete(f"{BULK}/{job_id}", headers=tenant.headers)
        told.append((reply.status_code, reply.json["data"] if reply.status_code == 200 else {}))

    threads = [Thread(target=ask) for _ in range(12)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(told) == 12
    assert all(each == told[0] for each in told)
    assert told[0][0] in {200, 409}  # The workers may have been quicker than all of them.
    refunds = tenant.transactions(reference=job_id, kind="refund")
    assert len(refunds) == (told[0][0] == 200)


def test_a_replay_of_a_cancelled_job_is_the_first_202_again(still: Tenant) -> None:
    key = {"Idempotency-Key": "key-1"}
    first = still.create_job(numbers(3), **key)
    cancel(still, first.json["data"]["job_id"])
    again = still.create_job(numbers(3), **key)
    assert (again.status_code, again.headers["Idempotency-Replayed"]) == (202, "true")
    assert again.json["data"] == first.json["data"]


def test_jobs_are_listed_newest_first_without_their_items(still: Tenant) -> None:
    service = still.service
    jobs = [new_job(still, 2) for _ in range(3)]
    service.tenant().create_job(numbers(1))
    cancel(still, jobs[1])
    service.container.projector.catch_up()
    page = still.get(f"{BULK}?per_page=2").json["data"]
    assert page["meta"] == {"total": 3, "per_page": 2, "current_page": 1, "last_page": 2}
    assert [each["job_id"] for each in page["data"]] == [jobs[2], jobs[1]]
    for each in page["data"]:
        assert each == still.get(f"{BULK}/{each['job_id']}?fields=summary").json["data"]
    assert [
        each["job_id"] for each in still.get(f"{BULK}?per_page=2&page=2").json["data"]["data"]
    ] == [jobs[0]]
    assert still.get(f"{BULK}?page=9").json["data"]["data"] == []
    found = still.get(f"{BULK}?status=cancelled").json["data"]
    assert ([each["job_id"] for each in found["data"]], found["meta"]["total"]) == ([jobs[1]], 1)
    erase_months(service.container.vault, "9999-12")
    assert still.get(BULK).json["data"]["meta"]["total"] == 0


def test_filters_and_fields_that_are_unknown_are_refused(still: Tenant) -> None:
    job_id = new_job(still, 1)
    wrong = {
        f"{BULK}?status=done": "status",
        f"{BULK}?per_page=101": "per_page",
        f"{BULK}/{job_id}?fields=all": "fields",
        f"{BULK}/{job_id}/results?format=xml": "format",
        f"{BULK}/{job_id}/results?status=done": "status",
    }
    for path, name in wrong.items():
        assert list(fields_of(still.get(path))) == [name]
    for path in (f"{BULK}/none?fields=all", f"{BULK}/none/results?format=xml"):
        assert code_of(still.get(path)) == "NOT_FOUND"
