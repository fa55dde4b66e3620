"""The plain service: the charged lookup that a good engineer would write without events.

Starlette, asyncpg and uvicorn; the provider, the tokens, the checks and the replies are ours. It
takes every shortcut that we take: who may call is remembered for a second, a token that was proven
is not proven again, and answers of a provider in the process are kept in memory, in no table.
`python -m uvicorn --factory tests.bench.peers.plain_service:create` reads a `Config` as JSON from
the variable PEER.
"""

import os
import re
import time
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import jwt
import msgspec
import orjson
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_der_public_key,
)
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.bootstrap.container import Container
from app.settings import Settings
from tests.bench.peers.plain_charging import (
    KEY,
    Charging,
    Entry,
    in_a_transaction,
    in_one_statement,
)

PRICE_MICROS = 5_000
TRUSTED_S = 1.0
REMEMBERED_MAX = 4_096  # Tokens, and clients.
ANSWERS_MAX = 65_536
QUERIES_MAX = 2**31 - 1  # No connection is given up for its age.
STATEMENT_S = 10.0
NOBODY = UUID(int=0)
HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
REPLAYED = {"Idempotency-Replayed": "true"}

WHO = """
SELECT o.status, o.price_micros, o.lookup_enabled, c.revoked, c.organization_id = o.id AS own
FROM api_clients c LEFT JOIN organizations o ON o.id = $2 WHERE c.client_id = $1
"""
EARLIER = """
SELECT id, reference_id, created_at, amount_micros, answer FROM transactions
WHERE organization_id = $1 AND key = $2
"""

_E164 = re.compile(r"\+[1-9][0-9]{1,14}\Z", re.ASCII)
_KEY = re.compile(r"[!-~]{1,255}\Z")
_REQUEST_ID = re.compile(
    r"(?!\+[0-9]+\Z|89[0-9]{16,20}\Z|cls_|opk_|eyJ)[A-Za-z0-9._~:/@=+-]{1,128}\Z"
)


class Config(msgspec.Struct, frozen=True):
    """What it is told; the key is DER in base64, `connections` are those of each process."""

    database_url: str
    public_key: str
    algorithm: str
    issuer: str
    audience: str
    connections: int
    one_statement: bool


def config_of(container: Container, url: str, *, connections: int, one_statement: bool) -> Config:
    """Return what a plain service needs that answers the partners of an installation."""
    public_key = container.keys.newest().public_key
    encoded = public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    settings = container.settings
    return Config(
        url,
        b64encode(encoded).decode(),
        settings.token_algorithm,
        settings.iss,
        settings.token_audience,
        connections,
        one_statement,
    )


class Refused(Exception):
    """Answered with a status and a code."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.status, self.code = status, code


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, at which price."""

    organization_id: UUID
    price_micros: int


class Service:
    """One process of it."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._public_key = load_der_public_key(b64decode(config.public_key))
        self._charge: Charging = in_one_statement if config.one_statement else in_a_transaction
        self._proven: dict[str, dict[str, Any]] = {}
        self._callers: dict[tuple[str, str], tuple[asyncpg.Record | None, float]] = {}
        provider = Container(Settings.from_env({})).bare_lookups[0]
        provider.probe()
        self._look_up = lru_cache(ANSWERS_MAX)(
            lambda number: msgspec.to_builtins(provider.look_up(NOBODY, number).facts)
        )
        self._pool: asyncpg.Pool

    @asynccontextmanager
    async def life(self, _: Starlette) -> AsyncIterator[None]:
        """Hold the connections, all of them from the start and none ever reset."""
        self._pool = await asyncpg.create_pool(
            self._config.database_url,
            min_size=self._config.connections,
            max_size=self._config.connections,
            max_queries=QUERIES_MAX,
            max_inactive_connection_lifetime=0,
            command_timeout=STATEMENT_S,
            reset=_leave_as_is,
        )
        async with self._pool:
            yield

    async def look_up(self, request: Request) -> Response:
        """Answer one number and charge for it."""
        started = time.perf_counter()
        given = request.headers.get("x-request-id", "")
        request_id = given if _REQUEST_ID.match(given) else str(uuid4())
        try:
            meta, facts, replayed = await self._answer(request, request_id)
        except Refused as refusal:
            return _reply({"success": False, "error": {"code": refusal.code}}, refusal.status)
        about = {
            "timestamp": _format(datetime.now(UTC)),
            "response_time_ms": round((time.perf_counter() - started) * 1000, 1),
            "request_id": request_id,
        }
        headers = {"X-Request-Id": request_id} | HEADERS | (REPLAYED if replayed else {})
        return _reply({"success": True, "data": facts, "meta": about | meta}, 200, headers)

    async def _answer(self, request: Request, request_id: str) -> tuple[Any, Any, bool]:
        caller = await self._caller(request)
        number = await _number(request)
        key = request.headers.get("idempotency-key")
        if key is not None and not _KEY.match(key):
            raise Refused(422, "VALIDATION_ERROR")
        facts, at = self._look_up(number), datetime.now(UTC)
        entry = Entry(
            id=uuid4(),
            organization_id=caller.organization_id,
            price_micros=caller.price_micros,
            lookup_id=uuid4(),
            request_id=request_id,
            at=at,
            key=key,
            answer=None if key is None else orjson.dumps(facts),
        )
        try:
            paid = await self._charge(self._pool, entry)
        except asyncpg.UniqueViolationError as taken:
            if taken.constraint_name != KEY:
                raise
            paid = False
        if paid:
            return _meta(entry.lookup_id, entry.id, at, caller.price_micros), facts, False
        if key is not None:
            earlier = await self._pool.fetchrow(EARLIER, caller.organization_id, key)
            if earlier is not None:
                return _again(earlier, number)
        raise Refused(402, "INSUFFICIENT_BALANCE")

    async def _caller(self, request: Request) -> Caller:
        claims = self._claims(request.headers.get("authorization", ""))
        client_id, organization = claims["sub"], claims.get("organization", "")
        who = await self._who(client_id, organization)
        if who is None or who["revoked"] or not who["own"]:
            raise Refused(401, "UNAUTHORIZED")
        if who["status"] != "active":
            raise Refused(403, "ORGANIZATION_INACTIVE")
        if "lookup" not in claims["scope"].split(" "):
            raise Refused(403, "INSUFFICIENT_SCOPE")
        if not who["lookup_enabled"]:
            raise Refused(403, "FEATURE_DISABLED")
        price = who["price_micros"]
        return Caller(UUID(organization), PRICE_MICROS if price is None else price)

    def _claims(self, header: str) -> dict[str, Any]:
        """Read the token; one that was proven needs only be looked at for its end."""
        kind, _, token = header.partition(" ")
        if kind.lower() != "bearer":
            raise Refused(401, "UNAUTHORIZED")
        claims = self._proven.get(token)
        if claims is None:
            try:
                claims = jwt.decode(
                    token,
                    self._public_key,
                    algorithms=[self._config.algorithm],
                    audience=self._config.audience,
                    issuer=self._config.issuer,
                    options={"require": ["exp", "iat", "sub", "jti", "scope"]},
                )
            except jwt.PyJWTError:
                raise Refused(401, "UNAUTHORIZED") from None
            if len(self._proven) >= REMEMBERED_MAX:
                self._proven.clear()
            self._proven[token] = claims
        elif claims["exp"] <= time.time():
            raise Refused(401, "UNAUTHORIZED")
        return claims

    async def _who(self, client_id: str, organization: str) -> asyncpg.Record | None:
        """Read client and organization, at most once a second."""
        asked, now = (client_id, organization), time.monotonic()
        known = self._callers.get(asked)
        if known is not None and known[1] > now:
            return known[0]
        found = await self._pool.fetchrow(WHO, client_id, UUID(organization))
        if len(self._callers) >= REMEMBERED_MAX:
            self._callers.clear()
        self._callers[asked] = (found, now + TRUSTED_S)
        return found


async def _number(request: Request) -> str:
    number = request.query_params.get("phone_number")
    if number is None:
        try:
            number = orjson.loads(await request.body() or b"{}").get("phone_number")
        except (orjson.JSONDecodeError, AttributeError):
            raise Refused(422, "VALIDATION_ERROR") from None
    elif number.startswith(" "):
        number = f"+{number[1:]}"
    if not isinstance(number, str) or not _E164.match(number):
        raise Refused(422, "VALIDATION_ERROR")
    return number


def _again(earlier: asyncpg.Record, number: str) -> tuple[Any, Any, bool]:
    facts = orjson.loads(earlier["answer"])
    if facts["phone_number"] != number:
        raise Refused(422, "IDEMPOTENCY_KEY_REUSED")
    about = str(earlier["reference_id"]), str(earlier["id"]), earlier["created_at"]
    return _meta(*about, earlier["amount_micros"]), facts, True


def _meta(lookup_id: object, transaction_id: object, at: datetime, micros: int) -> dict[str, Any]:
    return {
        "lookup_id": lookup_id,
        "source": "live",
        "as_of": _format(at),
        "provider": "offline",
        "charge": {
            "transaction_id": transaction_id,
            "amount": f"{micros / 1_000_000:.6f}".rstrip("0").rstrip("."),
            "currency": "USD",
        },
    }


def _reply(body: object, status: int, headers: Mapping[str, str] | None = None) -> Response:
    return Response(orjson.dumps(body), status, headers, media_type="application/json")


def _format(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def _leave_as_is(_: asyncpg.Connection) -> None:
    """Spare the statement that undoes settings: there are none."""


async def _live(_: Request) -> Response:
    return Response(b"")


def create() -> Starlette:
    """Return the application, as uvicorn asks for it."""
    service = Service(msgspec.json.decode(os.environ["PEER"], type=Config))
    return Starlette(
        routes=[
            Route("/number-lookup", service.look_up, methods=["POST"]),
            Route("/livez", _live),
        ],
        lifespan=service.life,
    )
