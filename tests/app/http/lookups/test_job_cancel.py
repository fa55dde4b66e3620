"""A job that is cancelled over HTTP, and the list of jobs."""

from tests.app.http.conftest import MakeService
from tests.installation import numbers

BULK = "/number-lookup/bulk"


def test_a_replay_of_a_cancelled_job_is_the_first_202_again(make_service: MakeService) -> None:
    still = make_service().tenant()
    key = {"Idempotency-Key": "key-1"}
    first = still.create_job(numbers(3), **key)
    cancelled = still.open("DELETE", f"{BULK}/{first.json['data']['job_id']}")
    assert cancelled.status_code == 200
    again = still.create_job(numbers(3), **key)
    assert (again.status_code, again.headers["Idempotency-Replayed"]) == (202, "true")
    assert again.json["data"] == first.json["data"]
