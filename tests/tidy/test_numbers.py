"""The numbers in the documents are those of the code: sentences, written with the constants."""

import re
from datetime import timedelta

import pytest

from app.adapters.lookups.sandbox import SLOW_S
from app.adapters.networks.airalo import network as airalo
from app.adapters.networks.esimgo import network as esimgo
from app.adapters.remote import connection, limits
from app.adapters.remote.api import RemoteRules
from app.adapters.remote.login import LOGIN_PAUSE_S
from app.bootstrap.container import IN_FLIGHT_MAX, IN_FLIGHT_WAIT_S
from app.bootstrap.providers import ESIMGO
from app.bootstrap.sandbox import HOURS_MAX, RESETS_MAX
from app.http import catalogue, sandbox, tokens
from app.http.accounts import input as account_input
from app.http.edge import input as edge_input
from app.http.edge.input import BODY_BYTES_MAX, PAGE_MAX, PER_PAGE_MAX
from app.http.edge.replies import IGNORED_MAX
from app.http.edge.request import NAME_CHARS_MAX, REQUEST_ID, SHORT_HEADER_CHARS_MAX
from app.http.finance import routes as finance_routes
from app.http.links import input as link_input
from app.http.links import traveller
from app.http.lookups import input as lookup_input
from app.http.server import connection as server
from app.http.server import gateway, threads
from app.http.webhooks import events
from app.processes.stopping import CLEAN_END_S
from app.security import throttle
from app.settings import DOWNLOADS_MAX, DOWNLOADS_OF_ONE_MAX, HTTP_THREADS, WAITING_MAX, Settings
from domain.accounts import committer
from domain.accounts.organization import OLD_ENDS_MAX, ROTATIONS_MAX, THRESHOLDS_MAX
from domain.limiter import share_of
from domain.links import driver, notifications, readings
from domain.links.link import HANDOVERS_MAX, RENAMES_MAX
from domain.lookups import answers, bulk_job, single
from domain.money import format_amount
from domain.webhooks.commands import REDELIVERED_MAX
from domain.webhooks.destination import URL_CHARS_MAX
from domain.webhooks.endpoint import CHANGES_MAX, ENDPOINTS_MAX
from projections.stores.counters import SIMULATED_AHEAD_MAX
from tests.tidy.source import ROOT
from workers import work

KIB, MIB = 1024, 1024 * 1024


def _most(pattern: str) -> int:
    """Return how many characters the last part of a pattern allows."""
    return int(re.findall(r",([0-9]+)\}", pattern)[-1])


READ, FAILS = "docs/path-of-a-request.md", "docs/reliability.md"
PROVIDERS = "docs/providers/README.md"
AIRALO_PAGE = "docs/providers/airalo.md"
ESIMGO_PAGE = "docs/providers/esimgo.md"
NUMERALS = {3: "three", 8: "eight", 10: "ten"}
IN_WORDS = {3: "three", 5: "five"}
ORDINALS = {4: "fourth", 5: "fifth", 6: "sixth"}
DEFAULTS = Settings.from_env({})
PARTNERS, API = "docs/partners", "app/http/edge/openapi.md"
HEAD = f"over {server.HEADERS_MAX} headers, or over {server.HEAD_BYTES_MAX // KIB} KiB of them"
*RESTS, LAST = (f"{rest.total_seconds():g}" for rest in work.PAUSES)


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ("ARCHITECTURE.md", f"{HTTP_THREADS} threads, of which {threads.COMPUTING_MAX} compute"),
        (READ, f"one message per slice of {bulk_job.SLICE_ITEMS} numbers"),
        (READ, f"at most {IN_WORDS[answers.CALLS_MAX]} times per item"),
        (FAILS, f"rests for {', '.join(RESTS)} and {LAST} s between its starts"),
        (FAILS, f"After {committer.SETTLE_S:g} s the reply is 503"),
        (FAILS, f"exits after {CLEAN_END_S:g} s"),
        (READ, f"{threads.COMPUTING_MAX} compute, up to {HTTP_THREADS} may wait"),
        (READ, f"lookups under way in the threads of each process: {IN_FLIGHT_MAX}."),
        ("docs/deployment.md", f"complete requests to {HTTP_THREADS} others"),
        ("docs/deployment.md", f"a body over {BODY_BYTES_MAX // MIB} MiB"),
        (
            "docs/deployment.md",
            f"{server.HEAD_BYTES_MAX // KIB} KiB or of over {server.HEADERS_MAX} headers",
        ),
        ("docs/deployment.md", f"{threads.WAITING_MAX:,} requests wait for a thread"),
        ("docs/deployment.md", f"over {server.BUFFERED_BYTES_MAX // MIB} MiB are held"),
        ("docs/deployment.md", f"({DEFAULTS.keep_alive_s} s; a proxy should do so sooner)"),
        ("docs/deployment.md", f"when a process has {server.CONNECTIONS_MAX:,}"),
        (AIRALO_PAGE, f"not tried again for {LOGIN_PAUSE_S:g} s"),
        (AIRALO_PAGE, f"after {NUMERALS[airalo.SETTLES_AFTER.seconds // 60]} minutes"),
        (AIRALO_PAGE, f"up to {airalo.ORDERS_PER_PAGE * airalo.ORDER_PAGES_MAX:,} orders"),
        (ESIMGO_PAGE, f"waits for its turn no longer than {ESIMGO.read_pace_s:g} s"),
        (ESIMGO_PAGE, f"{NUMERALS[ESIMGO.calls_per_s]} on average"),
        (ESIMGO_PAGE, f"at most {NUMERALS[ESIMGO.calls_per_s + ESIMGO.burst]} in any second"),
        (ESIMGO_PAGE, f"at most every {NUMERALS[notifications.FRESH.seconds]} seconds"),
        (FAILS, f"at most every {NUMERALS[notifications.FRESH.seconds]} seconds"),
        (ESIMGO_PAGE, f"{NUMERALS[esimgo.CONNECTED_FOR.seconds // 3600]} hours old"),
        (ESIMGO_PAGE, f"may take {NUMERALS[esimgo.SETTLES_AFTER.seconds // 60]} minutes"),
        (PROVIDERS, f"the handshake get {connection.CONNECT_S:g} s"),
        (PROVIDERS, f"{limits.PAUSE_S_MAX / 60:g} minutes at most"),
        (PROVIDERS, f"at most {RemoteRules().calls_max} calls under way"),
        (PROVIDERS, f"more than {RemoteRules().body_bytes_max // MIB} MiB"),
        (API, f"`per_page` (1 to {PER_PAGE_MAX})"),
        (f"{PARTNERS}/errors.md", f"larger than {BODY_BYTES_MAX // MIB} MiB"),
        (f"{PARTNERS}/errors.md", f"over {server.HEAD_BYTES_MAX // KIB} KiB"),
        (f"{PARTNERS}/errors.md", HEAD),
        (f"{PARTNERS}/errors.md", f"at most {edge_input.PROBLEMS_MAX} problems"),
        (f"{PARTNERS}/errors.md", f"names are cut at {NAME_CHARS_MAX} characters"),
        (f"{PARTNERS}/errors.md", f"more than {edge_input.MEMBERS_MAX} members"),
        (f"{PARTNERS}/errors.md", f"`meta.ignored` names the first {IGNORED_MAX}"),
        (f"{PARTNERS}/limits.md", f"or more than {threads.WAITING_MAX} requests wait"),
        (f"{PARTNERS}/conventions.md", f"`per_page` (1 to {PER_PAGE_MAX})"),
        (f"{PARTNERS}/idempotency.md", f"(1 to {_most(edge_input.KEY)} visible ASCII characters"),
        (f"{PARTNERS}/sandbox.md", f"it answers after {SLOW_S:g} seconds"),
        (f"{PARTNERS}/jobs.md", f"up to {DEFAULTS.bulk_numbers_max} unless this installation"),
        (f"{PARTNERS}/esim.md", f"({DEFAULTS.provisioning_deadline_s} seconds unless"),
        (f"{PARTNERS}/idempotency.md", f"({DEFAULTS.provisioning_deadline_s} seconds unless"),
    ],
)
def test_a_number_in_a_document_is_that_of_the_code(document: str, sentence: str) -> None:
    text = " ".join((ROOT / document).read_text("utf-8").split())
    assert sentence in text


def test_the_readme_has_the_figures_of_kills_and_speed() -> None:
    text = " ".join((ROOT / "README.md").read_text("utf-8").split())
    row = r"^\| [^|]*kill(?:[^|]* at (\d+) of the points)?[^|]* \| (\d+) \| 0 \| 0 \|"
    rows = re.findall(row, (ROOT / FAILS).read_text("utf-8"), re.MULTILINE)
    kills, places = sum(int(runs) for _, runs in rows), sum(int(points or 1) for points, _ in rows)
    assert f"{kills} kills at {places} places" in text
    speed = (ROOT / "docs/speed.md").read_text("utf-8")
    (first,) = re.findall(r"^\| lookup, one organization \|[^|]+\|([^|]+)", speed, re.MULTILINE)
    ratios = [float(ratio) for ratio in re.findall(r"= ([\d.]+\d)", first)]
    assert f"takes {min(ratios)} to {max(ratios)} of the processor time" in text


SECOND = timedelta(seconds=1)
LIMITS = {  # Each row of the tables for partners, and no other: what is limited, and how.
    "body": f"{BODY_BYTES_MAX // MIB} MiB",
    "URL and headers together": f"{server.HEAD_BYTES_MAX // KIB} KiB",
    "headers": f"{server.HEADERS_MAX}",
    "`Accept`, `Accept-Encoding`, `Accept-Language`, `Content-Type`, `Prefer`, `User-Agent`": (
        f"{SHORT_HEADER_CHARS_MAX} characters each"
    ),
    "members of an object in a body": f"{edge_input.MEMBERS_MAX}",
    "a token request": f"{tokens.FORM_BYTES_MAX // KIB} KiB",
    "parameters of a token request": f"{tokens.FIELDS_MAX}",
    "`Idempotency-Key`": f"{_most(edge_input.KEY)} visible ASCII characters",
    "`X-Request-Id`": f"{_most(REQUEST_ID)} characters",
    "digits of a `phone_number`": f"{_most(lookup_input.PATTERN) + 1}",
    "`max_age` of a lookup": f"{lookup_input.MAX_AGE_S} s",
    "`phone_numbers` of a job": f"{DEFAULTS.bulk_numbers_max} by default",
    "`name` of a link": f"{link_input.NAME_CHARS_MAX} characters",
    "`add` and `remove` of a change of plans, together": f"{link_input.CHANGES_MAX} entries",
    "`search` of links and plans": f"{edge_input.TEXT_CHARS_MAX} characters",
    "`reference` of transactions": f"{edge_input.TEXT_CHARS_MAX} characters",
    "`reference` of a deposit": (
        f"{edge_input.TEXT_CHARS_MAX} ASCII characters, spaces within too"
    ),
    "`amount` of play money in a sandbox": format_amount(sandbox.DEPOSIT_MICROS_MAX),
    "`hours` in a sandbox": (
        f"{HOURS_MAX} in one request, {SIMULATED_AHEAD_MAX // sandbox.HOUR} in all"
    ),
    "`percent` in a sandbox": "100",
    "`attempts` in a sandbox": f"{sandbox.ATTEMPTS_MAX}",
    "`minutes` in a sandbox": f"{sandbox.MINUTES_MAX}",
    "failures scripted at once in a sandbox": f"{sandbox.SCRIPTS_MAX}",
    "`size` of a QR code": f"{link_input.QR_SIZE_MAX}",
    "`expires_in` of a traveller's page": f"{link_input.LASTS_MAX_S} s",
    "`top_up_url` of a traveller's page": f"{URL_CHARS_MAX} characters",
    "`url` of a webhook": f"{URL_CHARS_MAX} characters",
    "`description` of a webhook": f"{link_input.NAME_CHARS_MAX} characters",
    "`old_ends_in`, in seconds": f"{OLD_ENDS_MAX // SECOND}",
    "webhooks of an organization": f"{ENDPOINTS_MAX}",
    "`per_page` of any list": f"{PER_PAGE_MAX}",
    "`limit` of events": f"{events.LIMIT_MAX}",
    "`wait` for events, in seconds": f"{events.WAIT_MAX_S}",
    "deliveries sent again by one request": f"{REDELIVERED_MAX}, the oldest first",
    "groups of `/v1/usage`": f"{finance_routes.ROWS_MAX}",
    "`page` of any list; `after_sequence`": f"{PAGE_MAX}",
    "single lookups under way, in each process": f"{IN_FLIGHT_MAX}",
    "how long one more waits for a place": f"{IN_FLIGHT_WAIT_S:g} s",
    "requests that wait for their turn, in each process": (
        f"{share_of(threads.WAITING_MAX)} of {threads.WAITING_MAX} places"
    ),
    "pictures of activation codes drawn at a time, in each process": "1",
    "numbers of all jobs that have no outcome yet": f"{DEFAULTS.job_items_open_max} by default",
    "requests in a minute, all but those for tokens": (
        "any number by default; where there is a limit, replies tell it"
    ),
    "what is spent in a calendar month (UTC)": (
        "none by default, see [Money](money.md#a-limit-for-each-month)"
    ),
    "new names of one link": f"{RENAMES_MAX} a day (UTC)",
    "new addresses of one link's page": f"{HANDOVERS_MAX} a day (UTC)",
    "requests to one traveller's page, from anywhere": f"{traveller.PER_MINUTE} in a minute",
    "resets of a sandbox in which anything had ended": f"{RESETS_MAX} a day (UTC)",
    "changes of `low_balance_threshold`": f"{THRESHOLDS_MAX} a day (UTC)",
    "new secrets of one client": f"{ROTATIONS_MAX} a day (UTC)",
    "changes of one webhook, its secret included; new webhooks": f"{CHANGES_MAX} a day (UTC)",
    "requests that wait for the network, in each process": (
        f"{share_of(WAITING_MAX)} of {WAITING_MAX} places"
    ),
    "downloads of transactions and of the results of jobs, in each process": (
        f"{DOWNLOADS_OF_ONE_MAX} of {DOWNLOADS_MAX} places"
    ),
    "reads of events that wait, in each process": (
        f"{events.WAITING_OF_ONE_MAX}, of {events.WAITING_MAX} in all"
    ),
    "wrong secrets of one client from one address": (
        f"{throttle.FAILURES_MAX} in {throttle.WINDOW // SECOND} s"
    ),
    "wrong secrets of all clients from one address": (
        f"{throttle.ADDRESS_FAILURES_MAX} in {throttle.WINDOW // SECOND} s"
    ),
    "a request that comes in, head and body": f"{DEFAULTS.request_read_s} s by default",
    "a reply that you do not take": f"{server.WRITE_S:g} s",
    "a download from its first byte to its last": f"{gateway.STREAM_S:g} s",
    "a connection without a request": f"{DEFAULTS.keep_alive_s} s by default",
    "a token": f"{DEFAULTS.token_ttl_s} s by default, see `expires_in`",
    "a purchase or a change of plans": f"{DEFAULTS.provisioning_deadline_s} s by default",
    "suspend, reactivate, end and cancel": f"{driver.WITHIN_S:g} s",
    "a read of a link at the network": f"{readings.READ_S:g} s",
    "the age of usage in a list": f"{DEFAULTS.readings_refresh_s} s by default",
    "a network status that is given again": f"{readings.STATUS_FRESH // SECOND} s",
    "a lookup that waits for the first one with its key": f"{single.WAIT_S:g} s",
}
PAGES = {  # How many make a page, unless the client says so.
    f"{catalogue.PlanQuery().fields['per_page'].load_default} plans",
    f"{account_input.TransactionQuery().fields['per_page'].load_default} transactions",
    f"{link_input.LinkQuery().fields['per_page'].load_default} links",
    f"{link_input.HistoryQuery().fields['per_page'].load_default} entries of a link's history",
}


def test_the_limits_that_partners_are_told_are_those_of_the_code_and_none_is_left_out() -> None:
    text = (ROOT / PARTNERS / "limits.md").read_text("utf-8")
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| [^|]+ \|$", text, re.MULTILINE)
    told = [row for row in rows if row not in {("What", "Limit"), ("---", "---")}]
    assert told == [*LIMITS.items()], "limits.md and LIMITS have the same rows in the same order"
    [pages] = re.findall(r"^Without `per_page` a page has (.+)\.$", text, re.MULTILINE)
    assert {*re.split(", or |, ", pages)} == PAGES


def test_the_time_that_clients_are_told_to_give_is_enough_for_what_ends_well() -> None:
    told = "Give lookups, purchases and changes of a link 30 seconds, and reads 10"
    for document in ("limits.md", "conventions.md"):
        text = " ".join((ROOT / PARTNERS / document).read_text("utf-8").split())
        assert told in text
    lookup_s = IN_FLIGHT_WAIT_S + single.LEASE.total_seconds()
    assert max(lookup_s, DEFAULTS.provisioning_deadline_s, driver.WITHIN_S) < 30
    assert readings.READ_S < 10


def test_the_token_operation_tells_how_many_wrong_secrets_are_too_many() -> None:
    told = " ".join((tokens.issue_token.__doc__ or "").split())
    assert f"After {IN_WORDS[throttle.FAILURES_MAX]} wrong secrets" in told
    assert f"after {throttle.ADDRESS_FAILURES_MAX} of any clients" in told


def test_one_organization_holds_half_of_the_places_wherever_it_is_told() -> None:
    assert share_of(WAITING_MAX) * 2 == WAITING_MAX
    assert WAITING_MAX * 2 == HTTP_THREADS
    for document in ("docs/operations.md", READ):
        assert "at most half" in (ROOT / document).read_text("utf-8"), document


def test_a_slice_has_a_rest_between_all_of_its_starts() -> None:
    assert len(work.PAUSES) == bulk_job.STARTS_MAX - 1
    told = (ROOT / FAILS).read_text("utf-8")
    assert f"after the {ORDINALS[bulk_job.STARTS_MAX]} start" in told
