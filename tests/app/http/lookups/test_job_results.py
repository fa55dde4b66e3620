"""The results of a job as a file: three forms, in order, while it runs and after."""

import csv
import io
from collections.abc import Iterator
from contextlib import ExitStack
from uuid import UUID

import pytest

from app.settings import DOWNLOADS_OF_ONE_MAX
from domain.lookups.bulk_commands import SLICE_ITEMS
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, Tenant, code_of
from tests.installation import numbers
from tests.support.erasing import erase_months

BULK = "/number-lookup/bulk"
DOWN = "+15005550001"
WANTED = ["+971508245915", DOWN, *numbers(SLICE_ITEMS), "+9991234567"]
Item = dict[str, object]


@pytest.fixture
def still(make_service: MakeService) -> Tenant:
    return make_service().tenant()


def begun_by(tenant: Tenant) -> str:
    """Return the path of a job whose first slice has ended; three items wait."""
    job_id = tenant.create_job(WANTED).json["data"]["job_id"]
    tenant.service.container.bulk_lookup.work(UUID(job_id), 0)
    tenant.service.container.projector.catch_up()
    return f"{BULK}/{job_id}"


@pytest.fixture
def path(still: Tenant) -> str:
    return begun_by(still)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenant]:
    """For tests that change nothing."""
    service = Service(tmp_path_factory.mktemp("results"))
    yield service.tenant()
    service.stop()


@pytest.fixture(scope="module")
def job(reader: Tenant) -> str:
    return begun_by(reader)


def items_of(tenant: Tenant, path: str) -> list[Item]:
    found: list[Item] = tenant.get(path).json["data"]["items"]
    return found


def test_csv_has_a_row_an_item_and_no_formulas(still: Tenant, path: str) -> None:
    reply = still.get(f"{path}/results?format=csv")
    assert reply.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert reply.headers["Content-Disposition"].endswith('.csv"')
    rows = [*csv.DictReader(io.StringIO(reply.text, newline=""))]
    assert reply.text.count("\r\n") == len(rows) + 1 == len(WANTED) + 1
    assert [each["phone_number"] for each in rows] == [f"'{number}" for number in WANTED]
    assert rows[0] == {
        "phone_number": "'+971508245915",
        "status": "completed",
        "valid": "true",
        "country_code": "AE",
        "national_format": "050 824 5915",
        "carrier_name": rows[0]["carrier_name"],
        "carrier_type": "mobile",
        "mcc": rows[0]["mcc"],
        "mnc": rows[0]["mnc"],
        "error": "",
    }
    first = items_of(still, path)[0]["result"]
    assert isinstance(first, dict)
    carrier = first["carrier"]
    assert rows[0]["carrier_name"] == carrier["name"]
    assert rows[1]["error"] == "The lookup service is unavailable."
    assert (rows[1]["status"], rows[1]["valid"]) == ("failed", "")
    assert (rows[-1]["status"], rows[-1]["valid"]) == ("pending", "")
    still.service.container.bulk_lookup.work(UUID(path.rpartition("/")[2]), 1)
    still.service.container.projector.catch_up()
    last = still.get(f"{path}/results?format=csv").text.splitlines()[-1]
    assert last == "'+9991234567,completed,false,,,,,,,"


@pytest.mark.parametrize(
    ("accept", "asked", "kind"),
    [
        ("text/csv", "", "text/csv"),
        ("application/x-ndjson", "", "application/x-ndjson"),
        ("application/x-ndjson; charset=utf-8", "", "application/x-ndjson"),
        ("text/csv;charset=UTF-8;q=0.9, application/json;q=0.8", "", "text/csv"),
        ("text/csv;header=present;q=0.1, application/json", "", "application/json"),
        ("application/x-ndjson;q=0.5, text/csv", "", "text/csv"),
        ("text/csv", "?format=json", "application/json"),
        ("image/png, */*", "", "application/json"),
        ("application/pdf", "?format=csv", "text/csv"),
        ("text/csv", "?format=", "text/csv"),
    ],
)
def test_the_form_is_chosen_by_accept_unless_the_query_says_it(
    reader: Tenant, job: str, accept: str, asked: str, kind: str
) -> None:
    reply = reader.get(f"{job}/results{asked}", headers={"Accept": accept})
    assert reply.mimetype == kind
    assert "Accept" in reply.headers["Vary"]


def test_it_holds_a_place_until_it_is_sent(reader: Tenant, job: str) -> None:
    downloads = reader.service.container.downloads
    with ExitStack() as stack:
        for _ in range(DOWNLOADS_OF_ONE_MAX):
            stack.enter_context(downloads.place(reader.id))
        refused = reader.get(f"{job}/results")
        assert (refused.status_code, code_of(refused)) == (429, "RATE_LIMITED")
    for _ in range(2 * DOWNLOADS_OF_ONE_MAX):
        assert reader.get(f"{job}/results").status_code == 200


def test_nobody_else_has_them_and_nobody_once_they_are_erased(still: Tenant, path: str) -> None:
    rival = still.service.tenant()
    for form in ("json", "csv", "ndjson"):
        assert code_of(rival.get(f"{path}/results?format={form}")) == "NOT_FOUND"
    erase_months(still.service.container.vault, "9999-12")
    for form in ("json", "csv", "ndjson"):
        assert code_of(still.get(f"{path}/results?format={form}")) == "NOT_FOUND"


def test_they_are_there_before_the_read_model_has_the_job(still: Tenant) -> None:
    job_id = still.create_job(WANTED).json["data"]["job_id"]
    assert len(still.get(f"{BULK}/{job_id}/results").json["data"]) == len(WANTED)
