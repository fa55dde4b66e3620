"""Calls to providers: each ends in time, and each error is the true one of the port."""

import socket
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from email.utils import format_datetime
from pathlib import Path

import msgspec
import pytest

from app.adapters.remote.api import RemoteApi, RemoteRules
from app.adapters.remote.exchange import Busy, Malformed, Reply, Unreachable, decode
from app.adapters.remote.limits import PAUSE_S_MAX, Pause
from app.watch.logging import working
from domain.cause import utc_now
from domain.provider_errors import OutcomeUnknown, Unavailable
from tests.app.adapters.remote.conftest import Calls, MakeApi, Tiny
from tests.installation import wait_until
from tests.support.certificate import certificate
from tests.support.providers.server import FaultKind

NUMBER = "+34612345678"
READ = f"/numbers/{NUMBER}"
ITEM = {"item": "plan-of-89340000000000000001"}
SOON_S = 10.0  # Far less than a fault lasts or a call may take, and enough for a crowded machine.


class Found(msgspec.Struct):
    number: str
    mcc: int
    names: list[str]


def seconds_of(call: Callable[[], object]) -> float:
    began_s = time.monotonic()
    with pytest.raises((Unavailable, OutcomeUnknown)):
        call()
    return time.monotonic() - began_s


def test_a_reply_is_read_whole_and_the_request_id_is_passed_on(
    api: RemoteApi, tiny: Tiny, calls: Calls
) -> None:
    with working(request_id="request-7"):
        reply = api.read("GET", READ, query={"Fields": "a,b"}, timeout_s=5)
    assert decode(reply, Found) == Found(NUMBER, 214, ["a"])
    api.read("GET", READ, timeout_s=5)
    first, second = tiny.asked("look up")
    assert (first.query, second.query) == ({"Fields": "a,b"}, {})
    assert first.headers["x-api-key"] == "key-secret"
    assert first.headers["x-request-id"] == "request-7"
    assert "x-request-id" not in second.headers
    assert calls == [("tiny", "answered")] * 2


def test_connections_are_used_again(api: RemoteApi, tiny: Tiny) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: api.read("GET", READ, timeout_s=5), range(80)))
    assert len(tiny.requests) == 80
    assert tiny.accepted <= 8


def test_a_form_and_a_redirect_are_taken_as_they_are(api: RemoteApi) -> None:
    sent = api.change("POST", "/forms", form={"a": "1 2"}, timeout_s=5)
    assert msgspec.json.decode(sent.body) == {"a": "1 2"}
    assert api.read("GET", "/moved", timeout_s=5).status == 302


READ_SURVIVES = [
    FaultKind.RESET_BEFORE,
    FaultKind.RESET_AFTER,
    FaultKind.HALF_BODY,
    FaultKind.SERVER_ERROR,
    FaultKind.SERVER_ERROR_AFTER,
    FaultKind.UNAVAILABLE,
    FaultKind.DUPLICATE,
    FaultKind.DRIBBLE,
]


@pytest.mark.parametrize("kind", READ_SURVIVES)
def test_a_read_is_repeated(api: RemoteApi, tiny: Tiny, kind: FaultKind) -> None:
    tiny.fault(kind)
    assert decode(api.read("GET", READ, timeout_s=5), Found).mcc == 214
    other = decode(api.read("GET", "/numbers/7", timeout_s=5), Found)
    assert other.number == "7", "a reply of an earlier call was taken for this one's"


def test_a_late_copy_of_a_reply_is_no_outcome_of_a_change(api: RemoteApi, tiny: Tiny) -> None:
    tiny.repeats = True
    assert api.read("GET", READ, timeout_s=5).status == 200
    orders = [api.change("POST", "/orders", json=ITEM, timeout_s=5) for _ in range(3)]
    told = [msgspec.json.decode(each.body)["order"] for each in orders]
    assert told == [f"order-{number}" for number in range(1, 4)]


CHANGES = {
    FaultKind.RESET_BEFORE: (OutcomeUnknown, 0),
    FaultKind.RESET_AFTER: (OutcomeUnknown, 1),
    FaultKind.HALF_BODY: (OutcomeUnknown, 1),
    FaultKind.SERVER_ERROR: (OutcomeUnknown, 0),
    FaultKind.SERVER_ERROR_AFTER: (OutcomeUnknown, 1),
    FaultKind.HUGE: (OutcomeUnknown, 1),
    FaultKind.HUGE_GZIP: (OutcomeUnknown, 1),
    FaultKind.RATE_LIMITED: (Busy, 0),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_a_change_is_sent_once(api: RemoteApi, tiny: Tiny, kind: FaultKind) -> None:
    error, sold = CHANGES[kind]
    tiny.fault(kind, times=3)
    with pytest.raises(error) as raised:
        api.change("POST", "/orders", json=ITEM, timeout_s=5)
    assert type(raised.value) is error
    assert (len(tiny.requests), tiny.sold) == (1, sold)


@pytest.mark.parametrize("kind", [FaultKind.DELAY, FaultKind.LATE_REPLY, FaultKind.DRIBBLE])
def test_no_server_holds_a_read_for_longer(api: RemoteApi, tiny: Tiny, kind: FaultKind) -> None:
    tiny.fault(kind, times=9)
    assert 0.2 <= seconds_of(lambda: api.read("GET", READ, timeout_s=0.3)) < SOON_S


def test_a_dribbling_head_is_cut_off_too(make_api: MakeApi) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=dribble, args=(server,), daemon=True)
        thread.start()
        api = make_api(f"http://127.0.0.1:{server.getsockname()[1]}")
        assert seconds_of(lambda: api.read("GET", READ, timeout_s=0.3)) < SOON_S
    thread.join()


def dribble(server: socket.socket) -> None:
    """Send a head that never ends, byte by byte."""
    stop = threading.Event()
    with server.accept()[0] as connection:
        connection.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
        try:
            while not stop.wait(0.02):
                connection.sendall(b"a")
        except OSError:
            return


def test_nobody_there_is_certain(make_api: MakeApi, calls: Calls) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
    api = make_api(url)
    for call in (api.change, api.read):
        with pytest.raises(Unreachable):
            call("POST", "/orders", json=ITEM, timeout_s=5)
    assert calls == [("tiny", "unreachable")] * 4  # A read tries three times.
    with pytest.raises(Unreachable):
        make_api("https://nobody.invalid").change("POST", "/orders", json=ITEM, timeout_s=3)


def test_a_full_backlog_drops_syn_and_costs_far_less_than_the_time(make_api: MakeApi) -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        port = deaf.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.settimeout(0)
            each.connect_ex(("127.0.0.1", port))
        api = make_api(f"http://127.0.0.1:{port}")
        spent_s = seconds_of(lambda: api.read("GET", READ, timeout_s=30))
        for each in waiting:
            each.close()
    assert spent_s < SOON_S


@pytest.mark.parametrize("kind", [FaultKind.HUGE, FaultKind.HUGE_GZIP])
def test_a_huge_reply_is_not_read_to_its_end(
    api: RemoteApi, tiny: Tiny, kind: FaultKind, calls: Calls
) -> None:
    tiny.fault(kind)
    with pytest.raises(Malformed):
        api.read("GET", READ, timeout_s=5)
    assert calls == [("tiny", "malformed")]
    assert api.read("GET", READ, timeout_s=5).status == 200


@pytest.mark.parametrize("kind", [FaultKind.HTML, FaultKind.WRONG_TYPES])
def test_nonsense_is_told_without_its_content(api: RemoteApi, tiny: Tiny, kind: FaultKind) -> None:
    tiny.fault(kind)
    with pytest.raises(Malformed) as raised:
        decode(api.read("GET", READ, timeout_s=5), Found)
    assert "h1" not in str(raised.value)
    assert NUMBER not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"NaN", b"\xff", b'{"number": 1}', b"[" * 100_000, b'{"number": "x"}'],
)
def test_no_body_breaks_the_decoder(body: bytes) -> None:
    with pytest.raises(Malformed):
        decode(Reply(200, {}, body), Found)


def test_retry_after_is_waited_for_within_the_time_and_one_that_says_nothing_is_not(
    api: RemoteApi, tiny: Tiny
) -> None:
    never = f"Thu, 01 Jan {'9' * 20} 00:00:00 GMT"
    for told in ("soon", "nan", "-1", "Mon, 99 Foo 2026", never, "1"):
        tiny.fault(FaultKind.RATE_LIMITED, headers={"Retry-After": told})
        began_s = time.monotonic()
        assert api.read("GET", READ, timeout_s=5).status == 200
        assert told != "1" or time.monotonic() - began_s >= 0.9


@pytest.mark.parametrize(
    "headers",
    [
        {"Retry-After": "60"},
        {"Retry-After": format_datetime(utc_now().replace(year=2100, day=1), usegmt=True)},
        {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "60"},
        {"X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": "4102444800"},
    ],
)
def test_nobody_is_asked_while_it_says_wait(
    make_api: MakeApi, tiny: Tiny, calls: Calls, headers: dict[str, str]
) -> None:
    api = make_api()
    tiny.fault(FaultKind.RATE_LIMITED, headers=headers)
    with pytest.raises(Busy):
        api.change("POST", "/orders", json=ITEM, timeout_s=5)
    assert seconds_of(lambda: api.read("GET", READ, timeout_s=30)) < SOON_S
    assert len(tiny.requests) == 1
    assert calls == [("tiny", "limited"), ("tiny", "held")]


def test_a_failure_may_ask_for_a_pause_too_and_none_lasts_long() -> None:
    hold = Pause(utc_now)
    hold.extend(503, {"retry-after": "9999"})
    assert PAUSE_S_MAX - SOON_S < hold.left_s() <= PAUSE_S_MAX


def test_calls_wait_for_a_place_within_their_time(make_api: MakeApi, tiny: Tiny) -> None:
    api = make_api(rules=RemoteRules(calls_max=1))
    tiny.fault(FaultKind.DELAY)
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(api.read, "GET", READ, timeout_s=5)
        wait_until(lambda: bool(tiny.requests))
        with pytest.raises(Busy):
            api.change("POST", "/orders", json=ITEM, timeout_s=0.2)
        tiny.heal()
        assert first.result().status == 200
    assert tiny.sold == 0


def test_a_pace_decides_when_a_call_is_sent_and_a_read_gives_up_its_turn_sooner(
    make_api: MakeApi, tiny: Tiny
) -> None:
    within, waits = list[float](), [0.2, None, 0.0]

    def pace(_rate: float, _burst: int, within_s: float) -> float | None:
        within.append(within_s)
        return waits.pop(0)

    api = make_api(rules=RemoteRules(calls_per_s=5, read_pace_s=1.5), pace=pace)
    began_s = time.monotonic()
    api.read("GET", READ, timeout_s=5)
    assert time.monotonic() - began_s >= 0.2
    with pytest.raises(Busy):
        api.read("GET", READ, timeout_s=5)
    assert len(tiny.requests) == 1
    api.change("POST", "/orders", json=ITEM, timeout_s=5)
    assert (within[:2], within[2] > 4) == ([1.5, 1.5], True)


def test_after_close_nothing_is_sent(api: RemoteApi, tiny: Tiny) -> None:
    api.close()
    with pytest.raises(Unavailable):
        api.change("POST", "/orders", json=ITEM, timeout_s=5)
    assert not tiny.requests


def test_only_https_leaves_this_machine_and_a_path_that_is_not_escaped_is_a_bug(
    make_api: MakeApi, api: RemoteApi
) -> None:
    for url in ("http://example.com", "ftp://x", "https://", "https://a:b@c.d"):
        with pytest.raises(ValueError, match="https"):
            make_api(url)
    for path in ("numbers", "/a b", "/a?b=c", "/a#b", "/a/../b", "/é"):
        with pytest.raises(ValueError, match="escaped"):
            api.read("GET", path, timeout_s=1)


def test_tls_works_with_an_authority_that_is_known_and_with_no_other(
    make_api: MakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = certificate(tmp_path)
    with Tiny(certificate=file) as tiny:
        with pytest.raises(Unreachable):
            make_api(tiny.url).change("POST", "/orders", json=ITEM, timeout_s=5)
        assert not tiny.requests
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        before, api = tiny.accepted, make_api(tiny.url)
        assert api.read("GET", READ, timeout_s=5).status == 200
        assert api.change("POST", "/orders", json=ITEM, timeout_s=5).status == 201
        assert tiny.accepted == before + 2  # A change has a connection of its own.
        with pytest.raises(Unreachable):
            make_api(tiny.url.replace("127.0.0.1", "localhost")).read("GET", READ, timeout_s=5)
