"""What scripted providers of lookups share: a book of numbers, and an account that pays."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from typing import Any, ClassVar

from app.bootstrap.container import Container
from app.settings import Settings
from domain.lookups.ports import LookupProvider
from tests.support.providers.server import Answer, Request, ScriptedServer


class ScriptedLookups(ScriptedServer):
    """Knows the numbers of `book`. `charged` counts the answers that it charges for."""

    name: ClassVar[str]  # As LOOKUP_PROVIDER has it.
    price_micros: ClassVar[int]
    settings: Mapping[str, str]

    def __init__(self) -> None:
        super().__init__()
        self.book: dict[str, dict[str, Any]] = {}
        self.calls = 0
        self.charged = 0
        self.balance_micros = 10_000_000
        self._fixed: Answer | None = None

    def answer_with(self, status: int, told: Any, **headers: str) -> None:
        self._fixed = status, told, headers

    def serve(self, name: str, path: str, handler: Callable[[Request], Answer]) -> None:
        """Route reads of a path; whoever does not show the credentials is refused."""
        self.route(name, "GET", path, lambda request: self._answer(request, handler))

    def charge(self) -> None:
        self.charged += 1
        self.balance_micros -= self.price_micros

    def is_allowed(self, request: Request) -> bool:
        raise NotImplementedError

    def refusal(self) -> Answer:
        """Return the answer to others."""
        raise NotImplementedError

    def _answer(self, request: Request, handler: Callable[[Request], Answer]) -> Answer:
        self.calls += 1
        if self._fixed is not None:
            return self._fixed
        return handler(request) if self.is_allowed(request) else self.refusal()


class Lookups:
    """The providers of a chain with their servers, behind their circuits."""

    def __init__(self, stack: ExitStack, *kinds: type[ScriptedLookups]) -> None:
        self.servers = [stack.enter_context(kind()) for kind in kinds]
        environment = {name: text for each in self.servers for name, text in each.settings.items()}
        environment["LOOKUP_PROVIDER"] = ",".join(
            [each.name for each in self.servers] or ["offline"]
        )
        self.container = stack.enter_context(closing(Container(Settings.from_env(environment))))
        self.container.gate.held = False  # There is no database that could say so.

    @property
    def provider(self) -> LookupProvider:
        return self.container.provider

    @property
    def are_up(self) -> list[bool]:
        return [each.is_up() for each in self.container.lookups]
