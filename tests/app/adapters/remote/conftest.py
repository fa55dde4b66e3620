"""A tiny provider, and what calls it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.adapters.remote.api import RemoteApi
from domain.cause import utc_now
from tests.support.providers.server import Answer, Request, ScriptedServer


class Tiny(ScriptedServer):
    """Looks up numbers, and counts what it sells."""

    prefix = "/v1"

    def __init__(self, certificate: Path | None = None) -> None:
        super().__init__(certificate)
        self.bought: list[str] = []
        self.route("look up", "GET", r"/numbers/(?P<number>[^/]+)", self._look_up)
        self.route("buy", "POST", r"/orders", self._buy)
        self.route("form", "POST", r"/forms", lambda request: (200, request.form(), {}))
        self.route("move", "GET", r"/moved", lambda _: (302, None, {"Location": "/v1/numbers/1"}))

    def _look_up(self, request: Request) -> Answer:
        return 200, {"number": request.parts["number"], "mcc": 214, "names": ["a"]}, {}

    def _buy(self, request: Request) -> Answer:
        self.bought.append(request.json()["item"])
        return 201, {"order": f"order-{self.sold}"}, {}

    @property
    def sold(self) -> int:
        return len(self.bought)


Calls = list[tuple[str, str]]
MakeApi = Callable[..., RemoteApi]


@pytest.fixture
def tiny() -> Iterator[Tiny]:
    with Tiny() as server:
        yield server


@pytest.fixture
def calls() -> Calls:
    """How the tries have ended, by provider."""
    return []


@pytest.fixture
def make_api(tiny: Tiny, calls: Calls) -> Iterator[MakeApi]:
    made: list[RemoteApi] = []

    def make(url: str = "", **rest: Any) -> RemoteApi:
        rest = {"clock": utc_now, "on_call": lambda name, how, _: calls.append((name, how)), **rest}
        api = RemoteApi("tiny", url or tiny.url, headers={"X-Api-Key": "key-secret"}, **rest)
        made.append(api)
        return api

    yield make
    for each in made:
        each.close()


@pytest.fixture
def api(make_api: MakeApi) -> RemoteApi:
    return make_api()
