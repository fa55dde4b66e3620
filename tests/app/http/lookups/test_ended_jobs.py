"""An ended job that was read before: the same bytes for its owner, and gone with an erasure."""

from functools import partial
from threading import Lock
from uuid import UUID, uuid4

import pytest

from app.bootstrap.container import Container
from app.http.lookups import ended_jobs
from app.http.lookups.ended_jobs import PART, EndedJobs, Shown
from tests.app.http.service import Service, Tenant, code_of
from tests.support.erasing import erase_months

NUMBERS = ["+14155550100", "+971508245915", "+15005550001"]


def ended_job(tenant: Tenant) -> str:
    """Return the path of a job that has ended and was read."""
    job_id = tenant.create_job(NUMBERS).json["data"]["job_id"]
    tenant.service.container.bulk_lookup.work(UUID(job_id), 0)
    tenant.service.container.projector.catch_up()
    path = f"/number-lookup/bulk/{job_id}"
    assert tenant.get(path).json["data"]["status"] == "completed"
    return path


def kept(tenant: Tenant, path: str) -> Shown | None:
    jobs = tenant.service.app.extensions[PART]
    return jobs.find(tenant.id, UUID(path.rpartition("/")[2]))


@pytest.mark.any_database
def test_it_is_opened_once_and_told_alike(still: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    tenant = still.tenant()
    path = ended_job(tenant)
    first = kept(tenant, path)
    monkeypatch.setattr(still.container.vault, "open", None)  # Whoever opens it now fails.
    again = tenant.get(path)
    assert again.json["data"]["job_id"] == path.rpartition("/")[2]
    assert first.data in again.data
    assert [each["phone_number"] for each in again.json["data"]["items"]] == NUMBERS
    assert tenant.get(path, headers={"If-None-Match": again.headers["ETag"]}).status_code == 304


def test_another_process_erases_it_within_the_second_that_a_key_is_held(
    still: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = still.tenant()
    path = ended_job(tenant)
    tag = tenant.get(path).headers["ETag"]
    held_s = "projections.stores.personal_keys.HELD_S"
    monkeypatch.setattr(held_s, 60.0)  # The erasure may take longer than a second.
    other = Container(still.container.settings)
    erase_months(other.vault, "9999-12")
    other.close()
    assert tenant.get(path).status_code == 200  # The key is held still.
    monkeypatch.setattr(held_s, 0.0)
    for headers in ({}, {"If-None-Match": tag}):
        assert code_of(tenant.get(path, headers=headers)) == "NOT_FOUND"
    assert kept(tenant, path) is None


@pytest.mark.any_database
def test_nobody_else_gets_it_and_none_is_kept_that_has_not_ended(still: Service) -> None:
    tenant, rival = still.tenant(), still.tenant()
    path = ended_job(tenant)
    assert code_of(rival.get(path)) == "NOT_FOUND"
    assert kept(tenant, path) is not None
    begun = f"/number-lookup/bulk/{tenant.create_job(NUMBERS).json['data']['job_id']}"
    assert tenant.get(begun).json["data"]["finished_at"] is None
    assert kept(tenant, begun) is None


@pytest.mark.any_database
def test_a_job_whose_table_says_something_else_is_read_anew(still: Service) -> None:
    tenant = still.tenant()
    path = ended_job(tenant)
    jobs: EndedJobs = tenant.service.app.extensions[PART]
    was = kept(tenant, path)
    jobs.keep(tenant.id, UUID(path.rpartition("/")[2]), was._replace(state=b"{}", data=b"{}"))
    assert tenant.get(path).json["data"]["status"] == "completed"
    assert kept(tenant, path) == was


@pytest.mark.any_database
def test_what_was_unread_for_longest_makes_room() -> None:
    jobs, owner, ids = EndedJobs(bytes_max=10), uuid4(), [uuid4() for _ in range(3)]
    for each in ids[:2]:
        jobs.keep(owner, each, Shown(b"", b"12345"))
    assert jobs.find(owner, ids[0]) is not None
    jobs.keep(owner, ids[2], Shown(b"", b"123"))
    assert [jobs.find(owner, each) is not None for each in ids] == [True, False, True]
    jobs.keep(owner, ids[1], Shown(b"", b"12345678901"))
    assert [jobs.find(owner, each) is not None for each in ids] == [False, False, False]


class SlipIn:
    """A lock that, when it is first let go, lets another caller in before anybody else."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.other: partial[None] | None = None

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        other, self.other = self.other, None
        if other is not None:
            other()


@pytest.mark.any_database
def test_a_job_that_two_readers_keep_at_once_is_counted_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lock, owner, ids = SlipIn(), uuid4(), [uuid4() for _ in range(2)]
    monkeypatch.setattr(ended_jobs, "Lock", lambda: lock)
    jobs, five = EndedJobs(bytes_max=10), Shown(b"", b"12345")
    lock.other = partial(jobs.keep, owner, ids[0], five)
    for each in ids:
        jobs.keep(owner, each, five)
    assert [jobs.find(owner, each) for each in ids] == [five, five]
