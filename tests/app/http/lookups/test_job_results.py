"""The results of a job as a file: three forms, in order, while it runs and after."""

import csv
import gzip
import io
import json
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


def test_json_has_the_items_of_the_job_and_a_file_name(reader: Tenant, job: str) -> None:
    reply = reader.get(f"{job}/results")
    assert reply.json["success"] is True
    assert reply.json["data"] == items_of(reader, job)
    assert reply.json["meta"]["request_id"] == reply.headers["X-Request-Id"]
    name = f'attachment; filename="job-{job.rpartition("/")[2]}.json"'
    assert reply.headers["Content-Disposition"] == name
    assert reply.headers["Content-Type"] == "application/json"


def test_ndjson_has_an_item_a_line(reader: Tenant, job: str) -> None:
    reply = reader.get(f"{job}/results?format=ndjson")
    lines = reply.text.splitlines()
    assert [json.loads(each) for each in lines] == items_of(reader, job)
    assert reply.headers["Content-Type"] == "application/x-ndjson"
    assert reply.headers["Content-Disposition"].endswith('.ndjson"')


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


@pytest.mark.parametrize("form", ["json", "csv", "ndjson"])
@pytest.mark.parametrize(
    ("status", "count"),
    [("completed", SLICE_ITEMS - 1), ("failed", 1), ("pending", 3), ("cancelled", 0)],
)
def test_items_of_one_status_are_sent_alone(
    reader: Tenant, job: str, form: str, status: str, count: int
) -> None:
    text = reader.get(f"{job}/results?format={form}&status={status}").text
    if form == "json":
        assert [each["status"] for each in json.loads(text)["data"]] == [status] * count
    else:
        assert len(text.splitlines()) == count + (form == "csv")


def test_a_cancelled_item_is_a_result_as_well(still: Tenant, path: str) -> None:
    assert still.open("DELETE", path).status_code == 200
    still.service.container.projector.catch_up()
    told = still.get(f"{path}/results?status=cancelled").json["data"]
    assert [each["phone_number"] for each in told] == WANTED[SLICE_ITEMS:]


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


def test_an_accept_that_cannot_be_met_is_told_what_can(reader: Tenant, job: str) -> None:
    reply = reader.get(f"{job}/results", headers={"Accept": "application/pdf"})
    assert (reply.status_code, code_of(reply)) == (406, "NOT_ACCEPTABLE")
    served = "application/json, text/csv, application/x-ndjson"
    assert reply.json["error"]["message"].endswith(f": {served}.")


def test_it_is_compressed_for_who_takes_gzip(reader: Tenant, job: str) -> None:
    plain = reader.get(f"{job}/results?format=csv")
    packed = reader.get(f"{job}/results?format=csv", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.data) == plain.data
    assert len(packed.data) * 3 < len(plain.data)


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


class TestLookups:
    """An earlier lookup, read again."""

    def test_it_is_the_same_answer_and_costs_nothing(self, still: Tenant) -> None:
        first = still.look_up("+971508245915").json
        again = still.get(f"/number-lookup/lookups/{first['meta']['lookup_id']}")
        assert again.status_code == 200
        assert again.json["data"] == first["data"]
        told = {"lookup_id", "source", "as_of", "provider", "charge"}
        assert told <= again.json["meta"].keys()
        assert {name: again.json["meta"][name] for name in told} == {
            name: first["meta"][name] for name in told
        }
        assert still.balance() == "99.995"

    def test_a_free_one_tells_no_charge(self, make_service: MakeService) -> None:
        tenant = make_service().tenant(balance=None, price="0")
        lookup_id = tenant.look_up("+971508245915").json["meta"]["lookup_id"]
        again = tenant.get(f"/number-lookup/lookups/{lookup_id}").json
        assert "charge" not in again["meta"]

    def test_others_the_unknown_and_the_erased_are_404(self, still: Tenant) -> None:
        lookup_id = still.look_up("+971508245915").json["meta"]["lookup_id"]
        job_id = still.create_job(["+971508245915"]).json["data"]["job_id"]
        rival = still.service.tenant()
        assert code_of(rival.get(f"/number-lookup/lookups/{lookup_id}")) == "NOT_FOUND"
        for unknown in (job_id, "none", str(rival.id)):
            assert code_of(still.get(f"/number-lookup/lookups/{unknown}")) == "NOT_FOUND"
        erase_months(still.service.container.vault, "9999-12")
        assert code_of(still.get(f"/number-lookup/lookups/{lookup_id}")) == "NOT_FOUND"
