"""The results of a job as a file: three forms, in order, while it runs and after."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from uuid import UUID

import pytest

from app.http.lookups.results import TYPES
from app.settings import DOWNLOADS_OF_ONE_MAX
from domain.lookups.bulk_commands import SLICE_ITEMS
from domain.personal import Sealed
from projections.stores.personal_keys import PersonalKeys
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, Tenant, code_of
from tests.installation import numbers

BULK = "/number-lookup/bulk"
DOWN = "+15005550001"
WANTED = ["+971508245915", DOWN, *numbers(SLICE_ITEMS), "+9991234567"]


@pytest.fixture
def still(make_service: MakeService) -> Tenant:
    return make_service().tenant()


def begun_by(tenant: Tenant) -> str:
    """Return the path of a job whose first slice has ended; three items wait."""
    job_id = tenant.create_job(WANTED).json["data"]["job_id"]
    tenant.service.container.bulk_lookup.work(UUID(job_id), 0)
    tenant.service.container.projector.catch_up()
    return f"{BULK}/{job_id}"


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenant]:
    """For tests that change nothing."""
    service = Service(tmp_path_factory.mktemp("results"))
    yield service.tenant()
    service.stop()


@pytest.fixture(scope="module")
def job(reader: Tenant) -> str:
    return begun_by(reader)


def test_it_holds_a_place_until_it_is_sent(reader: Tenant, job: str) -> None:
    downloads = reader.service.container.downloads
    with ExitStack() as stack:
        for _ in range(DOWNLOADS_OF_ONE_MAX):
            stack.enter_context(downloads.slot(reader.id))
        refused = reader.get(f"{job}/results")
        assert (refused.status_code, code_of(refused)) == (429, "RATE_LIMITED")
    for _ in range(2 * DOWNLOADS_OF_ONE_MAX):
        assert reader.get(f"{job}/results").status_code == 200


@pytest.mark.parametrize("wanted", TYPES)
def test_what_is_erased_while_they_are_read_is_not_found(
    reader: Tenant, job: str, monkeypatch: pytest.MonkeyPatch, wanted: str
) -> None:
    opened, read = list[Sealed](), PersonalKeys.open

    def open_once(vault: PersonalKeys, owner: UUID, subject: UUID, sealed: Sealed) -> Any:
        """Open the numbers; the results have no key any more."""
        opened.append(sealed)
        return read(vault, owner, subject, sealed) if len(opened) == 1 else None

    monkeypatch.setattr(PersonalKeys, "open", open_once)
    assert code_of(reader.get(f"{job}/results?format={wanted}")) == "NOT_FOUND"
    assert len(opened) == 2


def test_they_are_there_before_the_read_model_has_the_job(still: Tenant) -> None:
    job_id = still.create_job(WANTED).json["data"]["job_id"]
    assert len(still.get(f"{BULK}/{job_id}/results").json["data"]) == len(WANTED)
