"""Webhooks over real sockets: each ends in time, and none goes where it may not."""

import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from app.adapters.remote.names import NAMES_MAX, Names
from app.adapters.webhooks.sender import Address, Failure, HttpSender, is_own
from app.settings import WEBHOOK_THREADS
from domain.webhooks import destination
from tests.support.certificate import certificate
from tests.support.providers.server import Answer, FaultKind, Request, ScriptedServer

HOST = "hooks.example"
URL = f"https://{HOST}/told?from=us"
HERE, THERE = "127.0.0.1", "127.0.0.2"  # The one plays the internet, the other what is within.
BODY = b'{"type": "ping"}'
SOON_S = 5.0


class Receiver(ScriptedServer):
    """Takes webhooks."""

    def __init__(self, certificate: Path | None = None) -> None:
        super().__init__(certificate)
        self.answer: Answer = (200, {"ok": True}, {})
        self.route("take", "POST", "/told", lambda _: self.answer)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def taken(self) -> list[Request]:
        return self.asked("take")


class Resolver:
    """Answers each question with the next of the lists it was given, the last for ever."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def __call__(self, name: str, ends_s: float) -> Sequence[str]:  # noqa: ARG002  # The shape of it.
        self.asked.append(name)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture
def receiver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A receiver by TLS whose port is the one that webhooks may use."""
    with Receiver(certificate(tmp_path, HOST)) as server:
        monkeypatch.setattr(destination, "HTTPS_PORT", server.port)
        yield server


@pytest.fixture
def trusting(tmp_path: Path, receiver: Receiver) -> ssl.SSLContext:
    assert receiver.port
    return ssl.create_default_context(cafile=str(tmp_path / "server.pem"))


def as_if_public(address: Address) -> bool:
    return str(address) == HERE


Make = Callable[..., HttpSender]


@pytest.fixture
def make(trusting: ssl.SSLContext) -> Make:
    def made(resolve: Any = None, **rest: Any) -> HttpSender:
        known: dict[str, Any] = {"allow_private": False, "may_reach": as_if_public, **rest}
        return HttpSender(resolve=resolve or Resolver([HERE]), context=trusting, **known)

    return made


@contextmanager
def listening(address: str, port: int = 0) -> Iterator[tuple[int, list[str]]]:
    """Listen and say nothing; note who connects."""
    met: list[str] = []
    with socket.create_server((address, port)) as server:
        held = []

        def accept() -> None:
            with suppress(OSError):
                while True:
                    held.append(server.accept()[0])
                    met.append(address)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield server.getsockname()[1], met
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
        for each in held:
            each.close()


def test_a_webhook_arrives_as_it_was_signed(make: Make, receiver: Receiver) -> None:
    sent = make().send(URL, {"webhook-id": "msg-1"}, BODY)
    assert (sent.status, sent.error) == (200, None)
    assert 0 < sent.duration_ms < SOON_S * 1000
    (taken,) = receiver.taken
    assert (taken.body, taken.query) == (BODY, {"from": "us"})
    assert taken.headers["host"].partition(":")[0] == HOST
    assert taken.headers["webhook-id"] == "msg-1"
    assert taken.headers["content-type"] == "application/json"


def test_proxies_of_the_environment_are_not_asked(
    make: Make, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    with listening(THERE) as (port, met):
        for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "http_proxy"):
            monkeypatch.setenv(name, f"http://{THERE}:{port}")
        assert make().send(URL, {}, BODY).status == 200
        assert not met
    assert len(receiver.taken) == 1


def test_a_name_that_changes_after_the_check_leads_nowhere_within(
    make: Make, receiver: Receiver
) -> None:
    """It resolves public when it is checked, private when it is connected to."""
    with listening(THERE, receiver.port) as (_, met):
        resolver = Resolver([HERE], [THERE])
        sender = make(resolver)
        assert sender.send(URL, {}, BODY).status == 200  # To the address that was checked.
        assert resolver.asked == [f"{HOST}."]  # Once, and not within our own domains.
        assert sender.send(URL, {}, BODY).error == "address_not_allowed"
        assert not met
    assert len(receiver.taken) == 1


@pytest.mark.parametrize("answer", [[HERE, THERE], [THERE, HERE], [HERE, "::1"], [HERE, "no ip"]])
def test_one_bad_address_refuses_all(make: Make, receiver: Receiver, answer: list[str]) -> None:
    assert make(Resolver(answer)).send(URL, {}, BODY).error == "address_not_allowed"
    assert receiver.accepted == 0


@pytest.mark.parametrize(
    "within", ["10.0.0.1", "169.254.169.254", "fd00:ec2::254", "64:ff9b::a00:1"]
)
def test_names_and_addresses_within_are_refused_as_the_product_is_set(within: str) -> None:
    sender = HttpSender(allow_private=False, resolve=Resolver([within]))
    assert sender.send("https://hooks.example/", {}, BODY).error == "address_not_allowed"
    host = f"[{within}]" if ":" in within else within
    assert sender.send(f"https://{host}/", {}, BODY).error == "url_not_allowed"


def test_the_machine_of_the_sender_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_own(ip_address(HERE))
    assert not is_own(ip_address("192.0.2.1"))
    monkeypatch.setattr("app.adapters.webhooks.sender.is_public", lambda _: True)
    sender = HttpSender(allow_private=False, resolve=Resolver([HERE]))
    assert sender.send("https://hooks.example/", {}, BODY).error == "address_not_allowed"


def test_a_redirect_is_an_answer(make: Make, receiver: Receiver) -> None:
    with listening(THERE) as (port, met):
        receiver.answer = (307, None, {"Location": f"http://{THERE}:{port}/"})
        assert make().send(URL, {}, BODY).status == 307
        assert not met


def test_a_certificate_of_another_name_or_of_nobody_is_refused(
    make: Make, receiver: Receiver
) -> None:
    strict = HttpSender(allow_private=False, resolve=Resolver([HERE]), may_reach=as_if_public)
    for sender, url in ((make(), "https://other.example/told"), (strict, URL)):
        assert (sender.send(url, {}, BODY).error, receiver.taken) == ("tls_failed", [])


@pytest.mark.parametrize(
    ("fault", "status", "error"),
    [
        (FaultKind.RESET_BEFORE, None, "connection_lost"),
        (FaultKind.RESET_AFTER, None, "connection_lost"),
        (FaultKind.HALF_BODY, None, "connection_lost"),
        (FaultKind.SERVER_ERROR, 500, None),
        (FaultKind.HTML, 200, None),
        (FaultKind.HUGE, 200, None),  # Nobody reads more of it than the limit.
        (FaultKind.HUGE_GZIP, 200, None),  # Nor unpacks it.
        (FaultKind.DUPLICATE, 200, None),
    ],
)
def test_every_fault_of_a_receiver_is_an_outcome(
    make: Make, receiver: Receiver, fault: FaultKind, status: int | None, error: Failure | None
) -> None:
    receiver.fault(fault)
    sent = make().send(URL, {}, BODY)
    assert (sent.status, sent.error) == (status, error)


@pytest.mark.parametrize("fault", [FaultKind.DELAY, FaultKind.LATE_REPLY, FaultKind.DRIBBLE, None])
def test_a_slow_answer_or_handshake_is_given_up_in_time(
    make: Make, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, fault: FaultKind | None
) -> None:
    began_s = time.monotonic()
    with listening(HERE) as (port, met):
        if fault is None:  # A server that never finishes TLS.
            monkeypatch.setattr(destination, "HTTPS_PORT", port)
        else:
            receiver.answer = (200, b"x" * 1000, {})
            receiver.fault(fault)
        assert make(send_s=0.5).send(URL, {}, BODY).error == "timeout"
        assert bool(met) is (fault is None)
    assert time.monotonic() - began_s < SOON_S
    receiver.heal()


@pytest.mark.parametrize(
    ("head", "error"),
    [
        (b"HTTP/1.1 200 OK\r\n" + b"X-Long: " + b"a" * 60_000 + b"\r\n", "answer_too_long"),
        (b"no http at all\r\n\r\n", "connection_lost"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", "answer_too_long"),
        (b"X", "timeout"),
        (b"", "connection_lost"),
    ],
)
def test_a_head_is_bounded_too(head: bytes, error: Failure) -> None:
    """Lines without end, heads without end, drips, nonsense."""
    stop = threading.Event()

    def talk(server: socket.socket) -> None:
        with suppress(OSError), server.accept()[0] as connection:
            connection.recv(65_536)
            while head and not stop.wait(0.02 if head == b"X" else 0):
                connection.sendall(head)
                if head.startswith(b"no"):
                    break

    with socket.create_server((HERE, 0)) as server:
        thread = threading.Thread(target=talk, args=(server,))
        thread.start()
        sender = HttpSender(allow_private=True, send_s=1.0)
        url = f"http://{HERE}:{server.getsockname()[1]}/"
        began_s = time.monotonic()
        sent = sender.send(url, {}, BODY)
        stop.set()
        thread.join()
    assert (sent.status, sent.error) == (None, error)
    assert time.monotonic() - began_s < SOON_S


def test_nobody_listens_and_no_such_name(make: Make, receiver: Receiver) -> None:
    receiver.close()
    assert make().send(URL, {}, BODY).error == "not_connected"
    assert make(Resolver([])).send(URL, {}, BODY).error == "name_not_resolved"
    receiver.__init__()  # type: ignore[misc]  # So that its fixture can close it again.


def test_a_name_server_that_hangs_holds_up_its_own_name_only() -> None:
    hang, asked = threading.Event(), []

    def ask(name: str) -> list[str]:
        asked.append(name)
        if name.startswith("slow"):
            hang.wait(30)
        return [HERE]

    names = Names(ask)
    sender = HttpSender(allow_private=False, resolve=names, may_reach=as_if_public, send_s=0.2)
    began_s = time.monotonic()
    outcomes = [sender.send("https://slow.example/", {}, BODY).error for _ in range(3)]
    assert outcomes == ["timeout"] * 3
    assert time.monotonic() - began_s < SOON_S
    assert asked == ["slow.example."]  # One thread waits for it.
    assert names("quick.example", time.monotonic() + 5) == [HERE]
    hang.set()


def test_names_that_hang_are_bounded_and_a_name_that_fails_is_asked_again() -> None:
    hang, begun = threading.Event(), threading.Semaphore(0)

    def ask(name: str) -> list[str]:
        begun.release()
        if name == "none":
            raise OSError
        hang.wait(30)
        return [HERE]

    names = Names(ask)
    soon_s = time.monotonic()
    assert [names("none", soon_s + 5) for _ in range(2)] == [None, None]
    more = NAMES_MAX + 50
    assert [names(f"slow-{each}", soon_s) for each in range(more)] == [None] * more
    begins = NAMES_MAX + 2  # Twice the one that fails.
    assert sum(begun.acquire(timeout=0.5) for _ in range(begins + 1)) == begins
    hang.set()


def test_every_thread_that_sends_may_resolve_a_name_at_once() -> None:
    together = threading.Barrier(WEBHOOK_THREADS, timeout=20)

    def ask(_: str) -> list[str]:
        together.wait()
        return [HERE]

    names, ends_s = Names(ask), time.monotonic() + 20
    with ThreadPoolExecutor(WEBHOOK_THREADS) as pool:
        found = [*pool.map(lambda each: names(f"{each}.example", ends_s), range(WEBHOOK_THREADS))]
    assert found == [[HERE]] * WEBHOOK_THREADS


def test_the_names_of_the_system_are_asked(receiver: Receiver) -> None:
    with Receiver() as plain:
        assert receiver.port
        sender = HttpSender(allow_private=True)
        assert sender.send(f"http://localhost:{plain.port}/told", {}, BODY).status == 200
        assert sender.send("http://no-such-name.invalid/", {}, BODY).status is None


def test_nothing_of_a_url_is_logged(
    make: Make, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    receiver.fault(FaultKind.RESET_AFTER)
    make().send(f"https://{HOST}/told?token=hush", {}, BODY)
    make(Resolver([])).send(f"https://{HOST}/told?token=hush", {}, BODY)
    assert "hush" not in caplog.text
    assert HOST not in caplog.text
