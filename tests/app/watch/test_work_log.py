"""Each message that is worked on is one line and one count, and names the request behind it."""

import logging
from uuid import UUID

import pytest
from dramatiq import Worker
from prometheus_client import generate_latest

from app.watch import logging as observability
from domain.lookups.bulk_job import BulkRequest
from tests.app.cli.shell import ROOT
from tests.installation import PRICE_MICROS, CountingProvider, Installation, Process, numbers
from workers.routes import Message


def work_on(process: Process, message: Message) -> None:
    process.publisher.publish(message)
    # One thread: with two, the slice that is taken second may have its line first.
    worker = Worker(process.broker, worker_timeout=10, worker_threads=1)
    worker.start()
    for queue in list(process.broker.queues):
        process.broker.queues[queue].join()
    worker.stop()


def job_of(process: Process, request_id: str, organization_id: UUID | None = None) -> str:
    owner = organization_id or process.organization()
    wanted = BulkRequest(owner, numbers(2), PRICE_MICROS, "USD", None)
    return str(process.bulk_jobs.accept(wanted, process.cause(request_id))[0].id)


def lines(caplog: pytest.LogCaptureFixture, *job_ids: str) -> list[dict[str, object]]:
    """Return the lines about these jobs; a service of other tests may be at work meanwhile."""
    found = [vars(record) for record in caplog.records if record.name == "app.work"]
    return [each for each in found if each.get("job_id") in job_ids]


@pytest.fixture(autouse=True)
def information(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "app.work")
    caplog.handler.addFilter(observability.add_work)


def test_a_slice_is_a_line_with_its_job_and_the_request_that_asked_for_it(
    installation: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    process = installation.process(provider=CountingProvider())
    job_id = job_of(process, "asked-by-me")
    work_on(process, Message("work_slice", "lookup", (job_id, 0)))
    (line,) = lines(caplog, job_id)
    assert (line["msg"], line["command"]) == ("worked", "work_slice")
    assert (line["job_id"], line["slice_index"]) == (job_id, 0)
    assert (line["outcome"], line["request_id"]) == ("done", "asked-by-me")
    assert line["levelname"] == "INFO"
    assert float(str(line["duration_ms"])) > 0
    text = generate_latest(process.metrics.registry("worker")).decode()
    assert 'messages_worked_total{actor="work_slice",outcome="done"} 1.0' in text


def test_a_message_that_fails_is_a_line_with_the_kind_of_its_error(
    installation: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    provider = CountingProvider()
    provider.bug = ZeroDivisionError("a bug")
    process = installation.process(provider=provider)
    job_id = job_of(process, "asked-by-me")
    work_on(process, Message("work_slice", "lookup", (job_id, 0)))
    assert [(each["outcome"], each["error"]) for each in lines(caplog, job_id)] == [
        ("failed", "ZeroDivisionError")
    ]


def test_the_page_of_messages_that_are_given_up_names_the_line_of_each() -> None:
    book = (ROOT / "docs" / "operations.md").read_text("utf-8")
    page = " ".join(book.partition("### MessagesGivenUp\n")[2].partition("\n#")[0].split())
    assert "`worked`" in page


def test_after_its_end_no_line_names_the_work() -> None:
    with observability.working(command="work_link", link_id="1", request_id="r"):
        record = logging.makeLogRecord({"msg": "during"})
        assert observability.add_work(record)
        assert vars(record)["request_id"] == "r"
    record = logging.makeLogRecord({"msg": "after"})
    observability.add_work(record)
    assert not hasattr(record, "request_id")
    assert not hasattr(record, "command")


def test_a_line_names_the_slice_that_was_worked_on_whatever_the_message_names(
    installation: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    process = installation.process(provider=CountingProvider())
    owner = process.organization()
    waiting, named = job_of(process, "first", owner), job_of(process, "second", owner)
    process.projector.catch_up()
    work_on(process, Message("work_slice", "lookup", (named, 0)))
    line = lines(caplog, waiting, named)[0]
    assert (line["job_id"], line["slice_index"]) == (waiting, 0)
    assert line["request_id"] == "first"
