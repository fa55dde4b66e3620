"""The plain service answers as we do: the same bodies and refusals, and each charge once."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any

import psycopg
import pytest
from flask.testing import FlaskClient

from app.http.application import create_app
from domain.accounts.organization import SCOPES
from domain.money import parse_amount
from tests.bench.installation import DEPOSIT, Partner, new_partner, opened
from tests.bench.peers import plain_tables
from tests.bench.peers.plain_service import config_of
from tests.bench.server import HOST, plain_server
from tests.installation import PRICE_MICROS, Parts
from tests.servers.databases import Databases
from tests.servers.running import free_port

NUMBER, OTHER = "+971508245915", "+4915112345678"
CHANGING = {"timestamp", "response_time_ms", "request_id", "lookup_id", "as_of"}

Answer = tuple[int, Any, Mapping[str, str]]


@dataclass(frozen=True)
class Both:
    """Our service and the plain one, with the same customers."""

    container: Parts
    client: FlaskClient
    connection: HTTPConnection
    database: psycopg.Connection

    def new_partner(self) -> Partner:
        partner = new_partner(self.container)
        plain_tables.add(self.database, partner.organization, partner.client_id)
        return partner

    def token(self, partner: Partner, scopes: tuple[str, ...] = SCOPES) -> str:
        return self.container.issuer.issue(partner.client_id, partner.organization, scopes)

    def ask(self, token: str, query: str, key: str = "") -> tuple[Answer, Answer]:
        """Send one request to both; return what each has answered."""
        headers = {"Authorization": f"Bearer {token}"} | ({"Idempotency-Key": key} if key else {})
        path = f"/number-lookup{query}"
        ours = self.client.post(path, headers=headers)
        self.connection.request("POST", path, headers=headers)
        reply = self.connection.getresponse()
        theirs = reply.status, json.loads(reply.read()), dict(reply.getheaders())
        return (ours.status_code, ours.get_json(), dict(ours.headers)), theirs

    def charged(self, partner: Partner) -> tuple[int, int]:
        """Return what both have taken."""
        left = self.container.accounts.wallet(partner.organization).balance_micros
        found = self.database.execute(
            "SELECT balance_micros, (SELECT coalesce(sum(amount_micros), 0)::bigint"
            " FROM transactions t WHERE t.organization_id = w.organization_id)"
            " FROM wallets w WHERE organization_id = %s",
            [partner.organization],
        ).fetchone()
        assert found is not None
        assert parse_amount(DEPOSIT) - found[0] == found[1]
        return parse_amount(DEPOSIT) - left, found[1]


# `make bench` compares us with both; they differ in one place, how a charge is written.
@pytest.fixture(
    scope="module",
    params=[
        pytest.param(False, id="transaction", marks=pytest.mark.soak),
        pytest.param(True, id="one-statement", marks=pytest.mark.soak),
    ],
)
def both(
    request: pytest.FixtureRequest,
    databases: Databases,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Both]:
    directory = tmp_path_factory.mktemp("plain")
    settings = {
        "DATABASE_URL": databases.new(),
        "SIGNING_KEYS": f"{directory}/keys",
        "PRICE_PER_LOOKUP": "0.005",
    }
    container, port, url = opened(settings), free_port(), databases.new()
    plain_tables.make(url, [])
    config = config_of(container, url, connections=2, one_statement=request.param)
    with (
        plain_server(config, port, directory / "plain.log"),
        psycopg.connect(url, autocommit=True) as database,
        closing(HTTPConnection(HOST, port, timeout=30)) as connection,
    ):
        yield Both(container, create_app(container).test_client(), connection, database)
    container.close()
    databases.drop(url)
    databases.drop(settings["DATABASE_URL"])


@pytest.mark.parametrize("number", [NUMBER, OTHER, "+15005550001", "+999123456"])
@pytest.mark.parametrize("key", ["", "first"])
def test_the_bodies_are_the_same_but_for_ids_and_times(both: Both, number: str, key: str) -> None:
    partner = both.new_partner()
    query = f"?phone_number=%2B{number[1:]}"
    ours, theirs = both.ask(both.token(partner), query, key)
    assert ours[0] == theirs[0] == 200
    assert _lasting(theirs[1]) == _lasting(ours[1])
    assert set(theirs[1]["meta"]) == set(ours[1]["meta"])
    for name in ("X-Content-Type-Options", "Cache-Control", "Content-Type"):
        assert _header(theirs, name) == _header(ours, name)
    assert both.charged(partner) == (PRICE_MICROS, PRICE_MICROS)


def test_a_key_gives_the_first_answer_again_and_is_charged_once(both: Both) -> None:
    """Also when the money is gone."""
    partner, wallets = both.new_partner(), both.container.accounts
    token, query = both.token(partner), f"?phone_number=%2B{NUMBER[1:]}"
    first = both.ask(token, query, "again")
    second = both.ask(token, query, "again")
    for before, after in zip(first, second, strict=True):
        assert _header(before, "Idempotency-Replayed") is None
        assert _header(after, "Idempotency-Replayed") == "true"
        for name in ("lookup_id", "as_of", "charge"):
            assert after[1]["meta"][name] == before[1]["meta"][name]
    ours, theirs = both.ask(token, f"?phone_number=%2B{OTHER[1:]}", "again")
    assert ours[0] == theirs[0] == 422
    assert both.charged(partner) == (PRICE_MICROS, PRICE_MICROS)
    left = wallets.wallet(partner.organization).balance_micros
    both.container.adjust(partner.organization, -left)
    empty = "UPDATE wallets SET balance_micros = 0 WHERE organization_id = %s"
    both.database.execute(empty, [partner.organization])
    for key, status in (("again", 200), ("other", 402), ("", 402)):
        assert [each[0] for each in both.ask(token, query, key)] == [status] * 2


@pytest.mark.parametrize("query", ["", "?phone_number=12", "?phone_number=%2B49x", "?number=1"])
def test_what_is_no_number_is_refused_by_both(both: Both, query: str) -> None:
    ours, theirs = both.ask(both.token(both.new_partner()), query)
    assert ours[0] == theirs[0] == 422


def test_who_may_not_look_up_is_refused_by_both(both: Both) -> None:
    parts, query = both.container, f"?phone_number=%2B{NUMBER[1:]}"
    revoked = "UPDATE api_clients SET revoked = true WHERE organization_id = %s"
    changes: dict[str, tuple[int, Callable[[Partner], object]]] = {
        revoked: (
            401,
            lambda it: parts.accounts.change_client(
                it.client_id, lambda client: client.revoke(parts.cause())
            ),
        ),
        "UPDATE organizations SET status = 'suspended' WHERE id = %s": (
            403,
            lambda it: parts.change(
                it.organization, lambda its, now: its.change_status("suspended", now)
            ),
        ),
        "UPDATE organizations SET lookup_enabled = false WHERE id = %s": (
            403,
            lambda it: parts.change(
                it.organization, lambda its, now: its.switch_lookup(now, enabled=False)
            ),
        ),
    }
    for theirs, (status, ours) in changes.items():
        partner = both.new_partner()
        ours(partner)
        both.database.execute(theirs, [partner.organization])
        assert [each[0] for each in both.ask(both.token(partner), query)] == [status] * 2
    partner = both.new_partner()
    token = both.token(partner)
    for wrong in ("", "junk", f"{token[:-8]}AAAAAAAA", f"{token}x"):
        assert [each[0] for each in both.ask(wrong, query)] == [401, 401]
    assert [each[0] for each in both.ask(both.token(partner, ("links",)), query)] == [403, 403]


def _lasting(body: dict[str, Any]) -> dict[str, Any]:
    """Leave out what no two answers share."""
    meta = {name: value for name, value in body["meta"].items() if name not in CHANGING}
    charge = {name: each for name, each in meta["charge"].items() if name != "transaction_id"}
    return body | {"meta": meta | {"charge": charge}}


def _header(answer: Answer, name: str) -> str | None:
    return {each.lower(): value for each, value in answer[2].items()}.get(name.lower())
