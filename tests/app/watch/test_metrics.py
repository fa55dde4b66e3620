"""What operators watch: lag, failures, work, requests and money; a scrape outlives the database."""

import re
from contextlib import suppress
from dataclasses import replace
from threading import Event
from uuid import uuid4

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from app.adapters.circuit import FAILURES_MAX
from app.bootstrap import providers
from app.bootstrap.container import Container
from app.watch import gauges
from app.watch.gauges import PREFIX, ProcessName
from domain.blocking import WouldBlock
from domain.catalogue.plan import SIMULATED
from domain.errors import (
    Conflict,
    InsufficientBalance,
    NumberLookupUnavailable,
    Refused,
    ServiceUnavailable,
)
from domain.lookups.bulk_job import SLICE_ITEMS
from domain.lookups.single import LookupRequest
from domain.provider_errors import Unavailable
from projections.engine.positions import Positions
from tests.faulty_network import FaultyNetwork
from tests.installation import (
    PATIENCE_S,
    PRICE_MICROS,
    CountingProvider,
    Installation,
    Process,
    SetClock,
    numbers,
)
from tests.projections.looking import register

OFFLINE = 'lookup_provider_up{provider="offline"}'
NETWORK = 'network_provider_up{{provider="{}"}}'


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every question be answered, however slow the machine is."""
    monkeypatch.setattr(gauges, "ANSWER_S", PATIENCE_S)


def scrape(process: Process, role: ProcessName = "serve") -> dict[str, float]:
    """Return what a scrape shows, by names without our prefix."""
    lines = generate_latest(process.metrics.registry(role)).decode().splitlines()
    values = (line.rsplit(" ", 1) for line in lines if line.startswith(PREFIX))
    return {name.removeprefix(PREFIX): float(value) for name, value in values}


def test_every_metric_has_our_prefix_but_those_of_every_program_in_python(process: Process) -> None:
    process.metrics.count("webhook_attempts", "2xx")
    text = generate_latest(process.metrics.registry("serve")).decode()
    assert f'\n{PREFIX}webhook_attempts_total{{outcome="2xx"}} 1.0\n' in text
    lines = [line for line in text.splitlines() if not line.startswith(("#", PREFIX))]
    assert lines
    assert all(line.startswith("process_") for line in lines)
    assert not re.findall(r"(?m)^# HELP \S+ ?$", text), "nothing else says what it is"


@pytest.mark.each_database
def test_followers_show_how_far_they_are_behind(process: Process) -> None:
    register(process, 3)
    assert scrape(process)['follower_lag_events{name="wallets"}'] == 3
    process.projector.catch_up()
    assert scrape(process)['follower_lag_events{name="wallets"}'] == 0


def test_a_read_model_is_as_late_as_it_was_last_at_the_end(installation: Installation) -> None:
    clock = SetClock()
    process = installation.process(clock)
    process.projector.step()
    clock.forward(seconds=7)
    assert scrape(process)['follower_lag_seconds{name="wallets"}'] == 7
    process.projector.step()
    assert scrape(process)['follower_lag_seconds{name="wallets"}'] == 0


@pytest.mark.each_database
def test_the_dispatcher_is_as_late_as_the_oldest_event_it_has_not_followed(
    installation: Installation,
) -> None:
    clock = SetClock()
    process = installation.process(clock)
    with process.views.writing() as connection:
        Positions().start(connection, "dispatcher", 1, None)
    assert scrape(process)['follower_lag_seconds{name="dispatcher"}'] == 0
    process.organization(amount="")
    clock.forward(seconds=90)
    process.organization(amount="")
    assert scrape(process)['follower_lag_seconds{name="dispatcher"}'] == 90


def test_a_read_model_that_has_stopped_shows(process: Process) -> None:
    process.client(None)
    with process.views.writing() as connection:
        connection.exec_driver_sql("DROP TABLE api_clients")  # No view reads it.
    process.projector.catch_up()
    shown = scrape(process)
    assert shown['follower_failed{name="api_clients"}'] == 1
    assert shown['follower_failed{name="wallets"}'] == 0


@pytest.mark.each_database
def test_work_that_does_not_move_shows(installation: Installation) -> None:
    clock = SetClock()
    process = installation.process(clock)
    assert scrape(process)["oldest_unfinished_job_seconds"] == 0
    job_id = process.create_job(process.organization(), numbers(SLICE_ITEMS + 1))
    clock.forward(seconds=3)
    process.bulk_lookup.work(job_id, 1)
    process.projector.catch_up()
    clock.forward(seconds=5)
    shown = scrape(process)
    assert shown["oldest_unfinished_job_seconds"] == 8
    assert shown["oldest_unfinished_job_idle_seconds"] == 5
    assert shown["oldest_unfinished_link_seconds"] == 0
    assert [shown[OFFLINE], shown[NETWORK.format("simulated")]] == [1, 1]


def test_the_open_circuit_of_a_network_shows(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def remote(container: Container) -> FaultyNetwork:
        network = FaultyNetwork(providers.simulated(container))
        network.name, network.remote = "remote", True
        network.before("find_endpoint", *[Unavailable()] * FAILURES_MAX)
        network.before("probe", *[Unavailable()] * 1_000)  # It stays open.
        return network

    monkeypatch.setitem(providers.NETWORKS, "remote", remote)
    installation.environment |= {"NETWORK_PROVIDER": "remote,simulated", "SANDBOX": "false"}
    process = installation.process()
    assert scrape(process)[NETWORK.format("remote")] == 1
    for _ in range(FAILURES_MAX):
        with pytest.raises(Unavailable):
            process.network.find_endpoint("8900", timeout_s=1.0)
    shown = scrape(process)
    assert [shown[NETWORK.format("remote")], shown[NETWORK.format("simulated")]] == [0, 1]
    assert shown[OFFLINE] == 1


def sources(process: Process) -> list[float]:
    shown = scrape(process)
    kinds = ("live", "cache", "unavailable")
    return [shown.get(f'lookups_total{{source="{each}"}}', 0) for each in kinds]


def test_lookups_are_counted_by_their_source(installation: Installation) -> None:
    process = installation.process(provider=CountingProvider(down=["+15005550001"], remote=True))
    organization_id = process.organization()
    for number in ("+447400123456", "+447400123456", "+15005550001"):
        with suppress(NumberLookupUnavailable):
            process.look_up(organization_id, number)
    assert sources(process) == [1, 1, 1]
    assert scrape(process)['charges_total{kind="lookup"}'] == 2


def test_a_lookup_that_a_thread_does_again_is_counted_once(installation: Installation) -> None:
    process = installation.process(provider=CountingProvider(down=["+14150000001"]))
    organization_id = process.organization("0.01")  # It is enough for two.
    lookups = replace(process.single_lookup, leases=None)  # As without a sandbox.

    def ask(number: str, key: str | None) -> None:
        """Begin it; what has not come to a commit is done by a thread."""
        wanted = LookupRequest(organization_id, number, PRICE_MICROS, "USD", key)
        try:
            begun, has_ended = lookups.prepare(wanted, process.cause()), Event()
            begun.submit(has_ended.set, int)
            assert has_ended.wait(PATIENCE_S)
            begun.result()
        except (WouldBlock, Conflict, Refused):
            lookups.run(wanted, process.cause())

    ask("+14150000009", "a")
    ask("+14150000009", "a")  # The key gives the first answer again.
    assert sources(process) == [1, 0, 0]
    with pytest.raises(NumberLookupUnavailable):
        ask("+14150000001", None)
    assert sources(process) == [1, 0, 1]
    ask("+14150000009", None)
    with pytest.raises(InsufficientBalance):
        ask("+14150000009", None)
    assert sources(process) == [2, 0, 1]


def test_places_that_are_held_show_and_those_given_back_do_not(process: Process) -> None:
    with process.waiting[SIMULATED].slot(uuid4()):
        assert scrape(process)["http_waiting_places_in_use"] == 1
    with pytest.raises(ServiceUnavailable), process.waiting[SIMULATED].slot(uuid4()):
        raise ServiceUnavailable
    shown = scrape(process)
    assert shown["http_waiting_places_in_use"] == 0
    assert shown["http_waiting_places"] == 40


def test_a_process_shows_only_what_it_does(process: Process) -> None:
    projector = scrape(process, "projector")
    assert 'follower_lag_events{name="wallets"}' in projector
    assert not any(name.startswith(("http_", "charges", "queue_")) for name in projector)
    assert OFFLINE not in projector
    assert 'queue_messages{queue="lookup"}' in scrape(process, "clock")


def test_a_scrape_outlives_the_database(process: Process) -> None:
    with process.views.writing() as connection:
        connection.exec_driver_sql("DROP TABLE follower_positions")
    shown = scrape(process)
    assert shown[OFFLINE] == 1
    assert shown['scrape_part_reached{part="followers"}'] == 0
    assert shown['scrape_part_reached{part="work"}'] == 1
    assert not any(name.startswith("follower") for name in shown)


def test_no_label_could_hold_an_id_or_a_number(process: Process) -> None:
    text = generate_latest(process.metrics.registry("serve")).decode()
    labels = {
        label
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        for label in sample.labels
    }
    known = {"kind", "outcome", "source", "name", "part", "queue", "store", "provider", "reason"}
    known |= {"release", "python"}
    implementation = {"implementation", "major", "minor", "patchlevel", "version"}
    assert labels <= known | implementation
