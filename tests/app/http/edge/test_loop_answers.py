"""Lookups that the loop answers without a thread, and each way in which a thread takes over."""

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.client import HTTPConnection
from itertools import pairwise
from threading import Event, current_thread
from typing import Any
from uuid import uuid4

import pytest
from eventsourcing.persistence import OperationalError, StoredEvent
from flask import Request
from hypothesis import given
from hypothesis import strategies as st

import domain.accounts.committer
from app.http.docs import DOCUMENT
from app.http.edge.request import query_of
from app.http.server import threads
from app.http.server.loop import Environ
from app.security import key_store
from app.security.authorization import TRUSTED, Authorizer, Memory
from domain.blocking import WouldBlock
from domain.cause import Cause
from domain.lookups.single import LookupRequest, NumberLookup, PendingLookup, SingleLookup
from tests.app.http.described import described, differences
from tests.app.http.over_http import Behind, received, send
from tests.app.http.service import Service, Tenant
from tests.seeds import Seed
from tests.servers.guard import wait_for
from tests.servers.running import accepts

NUMBER, OTHER = "+971508245915", "+14155552671"
KEY = "Idempotency-Key"
QUERY = "/number-lookup?phone_number=%2B971508245915"
BODY = '{"phone_number": "+971508245915"}'
JSON = {"Content-Type": "application/json"}
# What differs from reply to reply: ids, moments, times.
OWN = re.compile(rb"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9-]{10}T[0-9:.]+Z|(?<=_ms\":)[0-9.]+|date: .+ GMT")
LENGTH = re.compile(rb"content-length: [0-9]+")  # Moves with the time that it took.

# How else a number is sent that no thread is needed for.
USUAL = {
    "query": ("POST", QUERY, "", {}),
    "a plus as it is": ("POST", QUERY.replace("%2B", "+"), "", {}),
    "small letters": ("POST", QUERY.replace("%2B", "%2b"), "", {"x-request-id": "mine"}),
    "body": ("POST", "/number-lookup", BODY, JSON),
    "body with a key": ("POST", "/number-lookup", f"\r\n {BODY} \t", {**JSON, KEY: "a"}),
    "another organization": ("POST", QUERY, "", {"X-Organization-Id": str(uuid4())}),
    "another number": ("POST", QUERY[:-2], "", {KEY: "~" * 255}),
    "a whole URL": ("POST", "http://a" + QUERY, "", {}),
    "a trunk 0 kept": ("POST", QUERY.replace("971", "9710"), "", {}),
}
# What is refused at once, or left to a thread.
UNUSUAL = {
    "no number": ("POST", "/number-lookup", "", {}),
    "no E.164 number": ("POST", QUERY.replace("971", "071"), "", {}),
    "too long": ("POST", QUERY + "0000", "", {}),
    "two numbers": ("POST", QUERY + "&phone_number=%2B14155552671", "", {}),
    "another parameter": ("POST", QUERY + "&x=1", "", {}),
    "an encoded digit": ("POST", QUERY.replace("971", "9%371"), "", {}),
    "query and body": ("POST", QUERY, BODY.replace("9", "8"), JSON),
    "the same member twice": ("POST", "/number-lookup", BODY[:-1] + "," + BODY[1:], JSON),
    "a list": ("POST", "/number-lookup", f"[{BODY}]", JSON),
    "a member of another name": ("POST", "/number-lookup", BODY.replace("_", ""), JSON),
    "no space of JSON": ("POST", "/number-lookup", f"\v{BODY}", JSON),
    "a line after the number": ("POST", "/number-lookup", BODY.replace("15", "15\\n"), JSON),
    "no JSON": ("POST", "/number-lookup", BODY, {"Content-Type": "text/plain"}),
    "a packed body": ("POST", "/number-lookup", BODY, {**JSON, "Content-Encoding": "gzip"}),
    "a charset": ("POST", "/number-lookup", BODY, {"Content-Type": "application/json; charset=a"}),
    "a key with a space": ("POST", QUERY, "", {KEY: "a b"}),
    "a long key": ("POST", QUERY, "", {KEY: "a" * 256}),
    "an empty key": ("POST", QUERY, "", {KEY: ""}),
    "two keys": ("POST", QUERY, "", {KEY: "a", KEY.lower(): "b"}),
    "another path": ("POST", QUERY.replace("?", "/?"), "", {}),
}
# What nobody may have, asked for without a token or with one that is none.
NO_TOKEN = {"authorization": "Bearer x"}
REFUSED = [
    ("GET", "/nothing?a=b", "", {}),
    ("GET", "/v1%2fwallet", "", {}),
    ("GET", "//v1/wallet", "", {}),
    ("HEAD", "/nothing", "", {}),
    ("GET", "/v1/wallet?a=b&c=d", "", {}),
    ("HEAD", "/v1/wallet", "", {}),
    ("GET", "/v1/wallet", "", NO_TOKEN),
    ("GET", "/v1/wallet", "", {"Authorization": "Bearer a.b.c", "X-Request-Id": "mine"}),
    ("GET", "/v1/wallet", "", {**NO_TOKEN, "Authorization": "Bearer y"}),
    ("OPTIONS", "/readyz", "", {}),
]
PATIENCE_S = 20.0
HOUR = timedelta(hours=1)


class House(Behind):
    """A service behind its server, which says what became of each lookup at once."""

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self.begun: list[bool] = []

    def ask(self, tenant: Tenant, number: str = NUMBER, **headers: str) -> "Reply":
        reply = Reply(self.sent(tenant, number, **headers))
        document = described(self.service.app.extensions[DOCUMENT][""])
        operation = document["paths"]["/number-lookup"]["post"]
        told = (document, operation, reply.status, reply.headers.items(), reply.body)
        assert not differences(*told)
        return reply

    def sent(self, tenant: Tenant, number: str = NUMBER, **headers: str) -> HTTPConnection:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        path = f"/number-lookup?phone_number={number.replace('+', '%2B')}"
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("POST", path, headers={**tenant.headers, **named})
        return connection

    def bytes_of(
        self, tenant: Tenant | None, method: str, target: str, body: str, named: dict[str, str]
    ) -> bytes:
        """Return a reply as it is on the wire, without what differs each time."""
        own = {"Host": "a", "Content-Length": str(len(body)), "Connection": "close"}
        headers = (tenant.headers if tenant else {}) | named | own
        lines = [f"{method} {target} HTTP/1.1", *(f"{n}: {v}" for n, v in headers.items())]
        reply = received(self.port, "\r\n".join([*lines, "", body]).encode())
        return LENGTH.sub(b"", OWN.sub(b"", reply))

    def warm(self, known: Tenant | None = None) -> Tenant:
        """Send lookups of a tenant, a new one if none is known, until one needs no thread."""
        tenant = known or self.service.tenant()

        def is_warm() -> bool:
            self.begun.clear()
            assert self.ask(tenant).status == 200
            return self.begun == [True]

        assert wait_for(is_warm, PATIENCE_S)
        self.service.until_projected("transactions")  # A read waits for them for 0.25 s only.
        return tenant


class Reply:
    def __init__(self, connection: HTTPConnection) -> None:
        response = connection.getresponse()
        self.status, self.headers = response.status, response.headers
        self.body = response.read()
        self.json: dict[str, Any] = json.loads(self.body)
        connection.close()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, migrated: Seed) -> Iterator[Service]:
    """A service without a sandbox, whose lookups wait for nothing but their commit."""
    directory = tmp_path_factory.mktemp("at-once")
    url = migrated.copy(directory)
    service = Service(directory, DATABASE_URL=url, SANDBOX="false").start()
    service.container.listen()
    service.container.log.appended.hears_others = True  # On SQLite: all are in this process.
    yield service
    service.stop()
    migrated.drop(url)


@pytest.fixture
def house(alone: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    made = House(alone)
    monkeypatch.setattr(key_store, "RECHECK", HOUR)  # Once a second that look is left to a thread.
    begin = SingleLookup.prepare

    def noted(self: SingleLookup, request: LookupRequest, cause: Cause) -> PendingLookup:
        try:
            begun = begin(self, request, cause)
        except WouldBlock:
            made.begun.append(False)
            raise
        made.begun.append(True)
        return begun

    monkeypatch.setattr(SingleLookup, "prepare", noted)
    yield made
    made.close()


@contextmanager
def held_up(service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], bool]]:
    """Stop commits during a block; lends a function that tells whether one is waiting."""
    go_on, stands = Event(), Event()
    insert = service.container.log.recorder.insert_events

    def held(stored: list[StoredEvent], **options: Any) -> Any:
        if any(each.topic == NumberLookup.Answered.TOPIC for each in stored):
            stands.set()
        assert go_on.wait(PATIENCE_S)
        return insert(stored, **options)

    with monkeypatch.context() as patch:
        patch.setattr(service.container.log.recorder, "insert_events", held)
        try:
            yield lambda: stands.wait(PATIENCE_S)
        finally:
            go_on.set()


def all_read(house: House, monkeypatch: pytest.MonkeyPatch) -> list[Environ]:
    """Note each request that the loop has read."""
    read, loop, start = list[Environ](), house.bridge.loop, house.bridge.loop.start
    monkeypatch.setattr(loop, "start", lambda *asked: read.append(asked[0]) or start(*asked))
    return read


def test_under_a_rate_limit_each_request_counts_once_whoever_answers_it(house: House) -> None:
    tenant, key = house.service.tenant(), {KEY: str(uuid4())}
    cause = house.service.cause()
    tenant.change(lambda organization: organization.set_rate_limit(60_000, cause))
    house.service.until_projected("organizations")
    house.warm(tenant)
    told = [left_and_reset(house.ask(tenant, **key)) for _ in range(3)]  # All but one are replays.
    told += [left_and_reset(house.ask(tenant, **named)) for named in ({}, {KEY: "two words"})]
    pairs = [*pairwise(told)]
    same_minute = [(one, next_one) for one, next_one in pairs if next_one[1] <= one[1]]
    assert len(same_minute) >= len(pairs) - 1
    assert {one[0] - next_one[0] for one, next_one in same_minute} == {1}
    tenant.change(lambda organization: organization.set_rate_limit(1, cause))
    house.service.until_projected("organizations")
    replies = [house.ask(tenant) for _ in range(3)]
    assert replies[-1].status == 429
    assert replies[-1].headers["Retry-After"] == str(left_and_reset(replies[-1])[1])


def left_and_reset(reply: Reply) -> tuple[int, int]:
    match = re.fullmatch(r'"default";r=([0-9]+);t=([0-9]+)', reply.headers["RateLimit"])
    return int(match[1]), int(match[2])


@pytest.mark.parametrize("sent", [pytest.param(*each, id=i) for i, *each in USUAL.items()])
def test_the_usual_spellings_need_no_thread(
    house: House, monkeypatch: pytest.MonkeyPatch, sent: tuple[str, str, str, dict[str, str]]
) -> None:
    tenant, other = house.warm(), house.service.tenant()
    house.begun.clear()
    at_once = house.bytes_of(tenant, *sent)
    assert house.begun == [True]
    house.leave_to_threads(monkeypatch)
    house.begun.clear()
    assert at_once == house.bytes_of(other, *sent)
    assert house.begun == []
    assert at_once.startswith(b"HTTP/1.1 200 OK\r\n")


def test_what_is_unusual_gets_the_reply_of_a_thread(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant, other = house.warm(), house.service.tenant()
    at_once = {name: house.bytes_of(tenant, *sent) for name, sent in UNUSUAL.items()}
    refused = [house.bytes_of(None, *sent) for sent in REFUSED]
    house.leave_to_threads(monkeypatch)
    assert at_once == {name: house.bytes_of(other, *sent) for name, sent in UNUSUAL.items()}
    assert refused == [house.bytes_of(None, *sent) for sent in REFUSED]


@given(st.text("ab_=&%2Bb+~;é\0", max_size=12).map(str.encode))
def test_a_query_is_read_as_werkzeug_reads_it(sent: bytes) -> None:
    environ = {"QUERY_STRING": sent.decode("latin-1"), "REQUEST_METHOD": "POST"}
    assert query_of(environ) == Request(environ).args.to_dict(flat=False)


@pytest.mark.each_database
def test_a_flood_of_one_key_is_one_charge_and_fails_nobody_else(house: House) -> None:
    tenant, other, key = house.warm(), house.warm(), {KEY: str(uuid4())}
    balance = tenant.balance()
    flood = [house.sent(tenant, **key) for _ in range(40)]
    beside = [house.sent(other) for _ in range(10)]
    answers = [Reply(each) for each in flood]
    assert {each.status for each in answers} == {200}
    assert len({each.json["meta"]["lookup_id"] for each in answers}) == 1
    replayed = [each.headers.get("Idempotency-Replayed") for each in answers]
    assert sorted(map(str, replayed)) == ["None", *["true"] * 39]
    (charge, *_) = tenant.transactions(kind="lookup")
    assert {each.json["meta"]["charge"]["transaction_id"] for each in answers} == {charge["id"]}
    assert {Reply(each).status for each in beside} == {200}
    assert round(float(balance) - float(tenant.balance()), 3) == 0.005


def test_a_client_that_leaves_costs_nobody_else(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = house.warm()
    before = len(tenant.transactions(kind="lookup"))
    with held_up(house.service, monkeypatch) as stands:
        house.sent(tenant).close()
        assert stands()
    assert house.ask(tenant).status == 200
    assert len(tenant.transactions(kind="lookup")) == before + 2


def test_the_loop_is_free_while_commits_stand_still(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = house.warm()
    with held_up(house.service, monkeypatch) as stands:
        sent = [house.sent(tenant) for _ in range(3)]
        assert stands()
        assert send(house.port, b"GET /livez HTTP/1.0\r\n\r\n").status == 200
    assert [Reply(each).status for each in sent] == [200] * 3


def test_memory_of_a_caller_is_read_anew_before_it_ends(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = house.warm()
    monkeypatch.setattr(key_store, "RECHECK", TRUSTED)
    house.begun.clear()
    pace, until_s = Event(), time.monotonic() + 3 * TRUSTED.total_seconds()
    while time.monotonic() < until_s:
        assert house.ask(tenant).status == 200
        pace.wait(TRUSTED.total_seconds() / 20)
    assert house.begun.count(False) <= 1, house.begun  # A crowded machine may be late once.


def test_when_memory_of_a_caller_has_ended_it_is_read_once_and_no_thread_is_needed(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant, rows = house.warm(), list[object]()
    row = Authorizer._state_of_row  # noqa: SLF001  # The test stands between.
    tried = all_read(house, monkeypatch)

    def read_when_all_have_come(self: Authorizer, *asked: Any) -> Any:
        rows.append(asked)
        assert wait_for(lambda: len(tried) >= 8, PATIENCE_S)
        return row(self, *asked)

    monkeypatch.setattr(threads, "FIRST_S", PATIENCE_S)
    monkeypatch.setattr(SingleLookup, "run", pytest.fail)
    monkeypatch.setattr(Authorizer, "_state_of_row", read_when_all_have_come)
    monkeypatch.setattr(Memory, "recall", forgetful(Memory.recall, lambda: len(tried) <= 8))
    sent = [house.sent(tenant) for _ in range(8)]
    assert [Reply(each).status for each in sent] == [200] * 8
    assert len(rows) == 1


@pytest.mark.parametrize("trouble", ["slow", "fails", "too many"])
def test_a_thread_answers_when_memory_cannot_be_read_first(
    house: House, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    tenant, go_on, ran = house.warm(), Event(), list[LookupRequest]()
    row, run = Authorizer._state_of_row, SingleLookup.run  # noqa: SLF001  # The test stands between.

    def read(self: Authorizer, *asked: Any) -> Any:
        if current_thread().name == "renewals" and not go_on.wait(
            PATIENCE_S if trouble == "slow" else 0
        ):
            raise OperationalError
        return row(self, *asked)

    def run_noted(self: SingleLookup, request: LookupRequest, cause: Cause) -> Any:
        ran.append(request)
        return run(self, request, cause)

    monkeypatch.setattr(threads, "FIRST_S", 0.05)
    monkeypatch.setattr(threads, "FIRST_MAX", 0 if trouble == "too many" else 1)
    monkeypatch.setattr(SingleLookup, "run", run_noted)
    monkeypatch.setattr(Authorizer, "_state_of_row", read)
    monkeypatch.setattr(Memory, "recall", lambda *_: None)
    assert house.ask(tenant).status == 200
    assert len(ran) == 1
    go_on.set()


def test_who_needs_a_thread_anyway_waits_for_no_other_request(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant, ran = house.warm(), []
    run, recall = SingleLookup.run, Memory.recall

    def free(*_: object) -> PendingLookup:
        raise WouldBlock

    def last_known(memory: Memory, asked: Any, *more: Any) -> Any:
        return recall(memory, asked, *more) or memory._known[asked].row.state  # type: ignore[union-attr]  # noqa: SLF001  # It was just there, and a second is short.

    def run_beside_another(self: SingleLookup, request: LookupRequest, cause: Cause) -> Any:
        ran.append(request)
        assert wait_for(lambda: len(ran) >= 2, PATIENCE_S)
        return run(self, request, cause)

    monkeypatch.setattr(Memory, "recall", last_known)
    monkeypatch.setattr(SingleLookup, "prepare", free)
    monkeypatch.setattr(SingleLookup, "run", run_beside_another)
    sent = [house.sent(tenant) for _ in range(2)]
    assert [Reply(each).status for each in sent] == [200] * 2


def forgetful(recall: Callable[..., Any], is_over: Callable[[], bool]) -> Callable[..., Any]:
    return lambda memory, *asked: None if is_over() else recall(memory, *asked)


@pytest.mark.each_database
def test_the_end_waits_for_what_has_begun(alone: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    house, tenant = House(alone), alone.tenant()
    assert house.ask(tenant).status == 200
    with held_up(alone, monkeypatch) as stands:
        read = all_read(house, monkeypatch)
        sent = [house.sent(tenant) for _ in range(3)]
        assert stands()
        # Who is not heard yet is cut off.
        assert wait_for(lambda: len({id(each) for each in read}) == 3, PATIENCE_S)
        house.server.should_exit = True
        assert wait_for(lambda: not accepts(house.port), PATIENCE_S)
    assert [Reply(each).status for each in sent] == [200] * 3
    house.close()


@pytest.mark.each_database
def test_an_unknown_outcome_is_a_503_and_is_not_tried_by_a_thread(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = house.warm()
    before = len(tenant.transactions(kind="lookup"))
    recorder, inserted = house.service.container.log.recorder, Event()
    insert = recorder.insert_events

    def lost(stored: list[StoredEvent], **options: Any) -> Any:
        if not inserted.is_set():
            inserted.set()
            insert(stored, **options)
        raise OperationalError

    with monkeypatch.context() as patch:
        patch.setattr(domain.accounts.committer, "SETTLE_S", 0.0)
        patch.setattr(house.service.container.committer, "_settle_s", 0.0)
        patch.setattr(recorder, "insert_events", lost)
        patch.setattr(SingleLookup, "run", pytest.fail)
        assert house.ask(tenant).status == 503
    house.service.until(lambda: len(tenant.transactions(kind="lookup")) == before + 1)


def test_who_waits_too_long_is_told(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    tenant = house.warm()
    before = len(tenant.transactions(kind="lookup"))
    with held_up(house.service, monkeypatch) as stands:
        taken = house.sent(tenant)
        assert stands()
        waiting = house.sent(tenant)
        monkeypatch.setattr(domain.accounts.committer, "WAIT_S", 0.01)
        assert (Reply(taken).status, Reply(waiting).status) == (503, 503)
    monkeypatch.undo()
    assert wait_for(lambda: house.ask(tenant).status == 200, PATIENCE_S)
    # What was taken may be committed, and is; what still waited was withdrawn.
    house.service.until_projected("transactions")
    assert len(tenant.transactions(kind="lookup")) == before + 2
