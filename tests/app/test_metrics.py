"""What operators watch: lag, failures, work and requests; a scrape outlives the database."""

from prometheus_client import generate_latest

from domain.commands.bulk_create import BulkRequest
from tests.installation import PRICE_MICROS, Process, numbers
from tests.projections.looking import register


def scrape(process: Process) -> dict[str, float]:
    lines = generate_latest(process.metrics.registry).decode().splitlines()
    values = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in values}


def test_followers_show_how_far_they_are_behind(process: Process) -> None:
    register(process, 3)
    assert scrape(process)['follower_lag_events{name="wallets"}'] == 3
    process.projector.catch_up()
    assert scrape(process)['follower_lag_events{name="wallets"}'] == 0


def test_a_read_model_that_has_stopped_shows(process: Process) -> None:
    register(process, 1)
    with process.views.writing() as connection:
        connection.exec_driver_sql("DROP TABLE organizations")
    process.projector.catch_up()
    shown = scrape(process)
    assert shown['follower_failed{name="organizations"}'] == 1
    assert shown['follower_failed{name="wallets"}'] == 0


def test_work_that_does_not_move_shows(process: Process) -> None:
    assert scrape(process)["oldest_unfinished_job_idle_seconds"] == 0
    organization_id = process.organization()
    wanted = BulkRequest(organization_id, numbers(2), PRICE_MICROS, "USD", None)
    process.bulk_create.run(wanted, process.cause())
    process.projector.catch_up()
    assert scrape(process)["oldest_unfinished_job_idle_seconds"] > 0
    assert scrape(process)["lookup_provider_up"] == 1


def test_requests_are_counted_by_route_and_status(process: Process) -> None:
    process.metrics.answered("GET", "/v1/wallet", 200, 0.01)
    process.metrics.answered("GET", "/v1/wallet", 200, 0.01)
    name = 'http_requests_total{method="GET",route="/v1/wallet",status="200"}'
    assert scrape(process)[name] == 2


def test_a_scrape_outlives_the_database(process: Process) -> None:
    with process.views.writing() as connection:
        connection.exec_driver_sql("DROP TABLE follower_positions")
    shown = scrape(process)
    assert "lookup_provider_up" in shown
    assert not any(name.startswith("follower") for name in shown)
