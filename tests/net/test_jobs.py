"""Bulk jobs."""

import pytest

from tests.net.net import Net, Partner

pytestmark = pytest.mark.each_database

PATH = "/number-lookup/bulk"
NUMBERS = ("+14155552671", "+447400123456", "+15005550001", "+12")


def test_a_job_runs_to_its_end(net: Net, acme: Partner) -> None:
    created = acme.post(PATH, {"phone_numbers": NUMBERS})
    job = f"{PATH}/{created.data['job_id']}"
    net.until(lambda: acme.data(job)["finished_at"])
    read = acme.get(job)
    acme.get(job, If_None_Match=read.headers["etag"])
    acme.get(job, If_None_Match='W/"other"')
    summary = acme.get(f"{job}?fields=summary")
    acme.get(job, If_None_Match=summary.headers["etag"])
    acme.get(f"{job}?fields=everything&other=1")
    acme.call("DELETE", job)
    acme.get("/v1/wallet")
    acme.get("/v1/transactions")


def test_the_results_of_a_job(acme: Partner) -> None:
    job = f"{PATH}/{acme.job(*NUMBERS)['job_id']}/results"
    acme.get(job)
    acme.get(f"{job}?format=csv")
    acme.get(f"{job}?format=ndjson")
    acme.get(job, Accept="text/csv")
    acme.get(job, Accept="application/x-ndjson")
    acme.get(f"{job}?status=failed", Accept="application/json;q=0.1, text/csv;header=present")
    acme.get(f"{job}?format=csv&status=failed", Accept="application/pdf")
    acme.get(f"{job}?format=&status=failed", Accept="text/csv;charset=UTF-8;q=0.9, image/png")
    acme.get(f"{job}?status=failed")
    acme.get(f"{job}?status=completed&format=csv")
    acme.get(f"{job}?status=pending")
    acme.get(f"{job}?status=lost")
    acme.get(f"{job}?format=xml")
    acme.get(job, Accept="image/png")
    acme.get(job, Accept_Encoding="gzip")


def test_a_job_that_fails_as_a_whole(acme: Partner) -> None:
    job = acme.job("+15005550001", "+15005550003")
    acme.get(f"{PATH}/{job['job_id']}")
    acme.get("/v1/transactions")


def test_a_job_is_cancelled_and_refunded(acme: Partner) -> None:
    slow = [f"+1500555000{last}" for last in (2,)] + [f"+1415555{last:04}" for last in range(300)]
    body = {"phone_numbers": slow[:1]}
    job = f"{PATH}/{acme.ask('POST', PATH, body, Idempotency_Key='k-1').data['job_id']}"
    running = acme.get(f"{job}?fields=summary")
    acme.get(f"{job}?fields=summary", If_None_Match=running.headers["etag"])
    cancelled = acme.call("DELETE", job)
    assert cancelled.data["status"] == "cancelled"
    acme.call("DELETE", job)
    acme.get(job)
    acme.get(f"{job}/results?status=cancelled&format=csv")
    acme.post(PATH, body, Idempotency_Key="k-1")
    acme.get("/v1/transactions")
    acme.get("/v1/wallet")


def test_inputs_that_are_refused(net: Net, acme: Partner) -> None:
    for body in (
        {},
        {"phone_numbers": "+14155552671"},
        {"phone_numbers": []},
        {"phone_numbers": ["+14155552671", "415", "+14155552671", 7, None]},
        {"phone_numbers": ["+14155552671"], "name": "x"},
        [],
    ):
        acme.post(PATH, body)
    acme.post(f"{PATH}?dry_run=true", {"phone_numbers": ["+14155552671"]})
    reply = acme.ask("POST", PATH, {"phone_numbers": [f"+1415{n:07}" for n in range(1001)]})
    net.note("a job of 1001 numbers", f"-> {reply.status}", reply.json["error"]["message"])
    acme.post(PATH, body="", Content_Type="application/json")
    acme.post(PATH, body="phone_numbers=1", Content_Type="application/x-www-form-urlencoded")
    acme.get(f"{PATH}/nonsense")
    acme.get(f"{PATH}/8c1f0c7e-5b1f-4a5e-8a44-0f6f6f0e2d11")
    acme.call("DELETE", f"{PATH}/8c1f0c7e-5b1f-4a5e-8a44-0f6f6f0e2d11")
    acme.get(f"{PATH}/8c1f0c7e-5b1f-4a5e-8a44-0f6f6f0e2d11/results")


def test_jobs_are_listed_page_by_page(acme: Partner, rival: Partner) -> None:
    for count in range(1, 6):
        acme.job(*(f"+1415555{count}{index:03}" for index in range(count)))
    acme.job("+15005550001")
    acme.get(PATH)
    acme.get(f"{PATH}?per_page=2")
    acme.get(f"{PATH}?per_page=2&page=3")
    acme.get(f"{PATH}?per_page=2&page=4")
    acme.get(f"{PATH}?status=failed")
    acme.get(f"{PATH}?status=completed&per_page=1&page=2")
    acme.get(f"{PATH}?status=lost")
    acme.get(f"{PATH}?per_page=0")
    acme.get(f"{PATH}?per_page=101&page=0")
    acme.get(f"{PATH}?page=x&sort=up")
    rival.get(PATH)


def test_what_money_decides(net: Net) -> None:
    acme = net.partner("0.01")
    acme.post(PATH, {"phone_numbers": ["+14155552671", "+14155552672", "+14155552673"]})
    job = acme.job("+14155552671", "+14155552672")
    acme.get(f"{PATH}/{job['job_id']}?fields=summary")
    net.partner("", name="Walletless").post(PATH, {"phone_numbers": ["+14155552671"]})
    free = net.partner("", "--price", "0", name="Free")
    job = free.job("+14155552671")
    free.get(f"{PATH}/{job['job_id']}")


def test_one_key_is_one_job(net: Net, acme: Partner) -> None:
    body = {"phone_numbers": ["+14155552671", "+447400123456"]}
    first = acme.post(PATH, body, Idempotency_Key="k-1")
    net.until(lambda: acme.data(f"{PATH}/{first.data['job_id']}")["finished_at"])
    acme.post(PATH, body, Idempotency_Key="k-1")
    acme.post(PATH, {"phone_numbers": body["phone_numbers"][::-1]}, Idempotency_Key="k-1")
    acme.get("/v1/wallet")


def test_nobody_sees_the_job_of_another(acme: Partner, rival: Partner) -> None:
    job = f"{PATH}/{acme.job('+14155552671')['job_id']}"
    rival.get(job)
    rival.get(f"{job}/results")
    rival.call("DELETE", job)


def test_operators_see_and_cancel_jobs(net: Net, acme: Partner) -> None:
    done = acme.job("+14155552671")["job_id"]
    body = {"phone_numbers": ["+15005550002"]}
    slow = acme.ask("POST", PATH, body).data["job_id"]
    net.run("jobs", "cancel", slow)
    net.run("jobs", "cancel", slow)
    net.run("jobs", "cancel", done)
    net.run("jobs", "list", "--org", acme.id)
    acme.get(f"{PATH}/{slow}")
    acme.get("/v1/wallet")
