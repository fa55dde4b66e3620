"""Repeated wrong secrets are slowed down, of a client at an address and of all clients there."""

import pytest
from werkzeug.test import TestResponse

from app.http.edge.request import caller_address
from app.security.throttle import ADDRESS_FAILURES_MAX, FAILURES_MAX
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service


def ask(
    service: Service, client_id: str, secret: str, address: str = "192.0.2.1", **headers: str
) -> TestResponse:
    return service.client.post(
        "/auth/token",
        data={"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret},
        environ_overrides={"REMOTE_ADDR": address},
        headers=headers,
    )


@pytest.fixture
def client_id(service: Service) -> str:
    return service.register_client(None)


def test_made_up_clients_are_no_way_around(service: Service, client_id: str) -> None:
    one, same, other = "2001:db8::1", "2001:db8::ffff:2", "2001:db8:0:1::1"
    statuses = [
        ask(service, f"cl_{name}", "wrong", one).status_code
        for name in range(ADDRESS_FAILURES_MAX + 5)
    ]
    assert statuses == [401] * ADDRESS_FAILURES_MAX + [429] * 5
    reply = ask(service, "cl_new", "wrong", same)
    assert (reply.status_code, reply.json["error"]) == (429, "slow_down")
    assert 1 <= int(reply.headers["Retry-After"]) <= 60
    assert ask(service, client_id, f"s-{client_id}", other).status_code == 200


def test_right_secrets_and_other_errors_do_not_count(service: Service, client_id: str) -> None:
    for _ in range(2 * FAILURES_MAX):
        assert ask(service, client_id, f"s-{client_id}").status_code == 200
        assert ask(service, client_id, "").status_code == 401
    assert ask(service, client_id, f"s-{client_id}").status_code == 200


def test_an_unknown_client_is_slowed_down_alike_and_white_space_makes_no_other(
    service: Service, client_id: str
) -> None:
    for name, again in (("nobody\0at all", "nobody\0at all"), (client_id, f"{client_id}\n")):
        for _ in range(FAILURES_MAX):
            assert ask(service, name, "wrong").status_code == 401
        assert ask(service, again, "wrong").status_code == 429


def test_without_trusted_proxies_a_forwarded_address_is_only_a_claim(
    service: Service, client_id: str
) -> None:
    claims = [{"X-Forwarded-For": f"198.51.100.{host}"} for host in range(FAILURES_MAX + 1)]
    statuses = [ask(service, client_id, "wrong", **each).status_code for each in claims]
    assert statuses == [401] * FAILURES_MAX + [429]


def test_behind_trusted_proxies_the_address_is_what_the_first_of_them_saw(
    make_service: MakeService,
) -> None:
    service = make_service(TRUSTED_PROXIES="2")
    client_id = service.register_client(None)
    for claim in range(FAILURES_MAX):
        forwarded = f"10.9.9.{claim}, 198.51.100.7, 10.0.0.1"
        ask(service, client_id, "wrong", **{"X-Forwarded-For": forwarded})
    same = {"X-Forwarded-For": "10.8.8.8, 198.51.100.7, 10.0.0.2"}
    other = {"X-Forwarded-For": "10.8.8.8, 198.51.100.8, 10.0.0.2"}
    assert ask(service, client_id, "wrong", **same).status_code == 429
    assert ask(service, client_id, "wrong", **other).status_code == 401


PROXY, LONG = "192.0.2.1", "x" * 60_000


@pytest.mark.parametrize(
    ("one", "same", "other"),
    [
        ("198.51.100.1", "198.51.100.1", "198.51.100.2"),
        ("203.0.113.6:1000", "203.0.113.6:1001", "203.0.113.7:1000"),
        ("203.0.113.6", "::ffff:203.0.113.6", "::ffff:203.0.113.7"),
        ("[::ffff:203.0.113.6]:1", "203.0.113.6", "203.0.113.7"),
        ("[2001:db8::1]:1000", "2001:db8::2", "[2001:db8:0:1::1]:1000"),
        ("fe80::1%eth0", "[fe80::2%eth1]:9", "fe80:0:0:1::1%eth0"),
        ("unknown", "_made-up", "203.0.113.7"),
        ("203.0.113.256", "", "203.0.113.7"),
        ("203.0.113.6 ", "\t203.0.113.6", "203.0.113.7"),
    ],
)
def test_one_address_is_one_caller_however_a_proxy_writes_it(
    one: str, same: str, other: str
) -> None:
    chains = (f"198.51.100.7, {one}", same, f"{LONG}, {other}")
    environs = ({"REMOTE_ADDR": PROXY, "HTTP_X_FORWARDED_FOR": each} for each in chains)
    first, second, third = (caller_address(each, 1) for each in environs)
    assert first == second != third


def test_of_a_forwarded_chain_only_what_trusted_proxies_have_written_counts() -> None:
    for chain, address in {
        f"{LONG}, [2001:db8::1]:443, 10.0.0.2": "2001:db8::/64",
        f"{LONG}, {LONG}": PROXY,
        "unknown, 198.51.100.7:9": "198.51.100.7",  # What is none counts as who wrote it.
        "192.0.2.7": "192.0.2.7",
    }.items():
        environ = {"REMOTE_ADDR": PROXY, "HTTP_X_FORWARDED_FOR": chain}
        assert [caller_address(environ, it) for it in (2, 0)] == [address, PROXY]
