"""Several providers of lookups in one: the next is asked while one is unavailable."""

from collections.abc import Sequence
from uuid import UUID

from domain.lookups.ports import Found, LookupProvider
from domain.provider_errors import NotAnswered, NotNow, Unavailable


class ChainedLookup:
    """Asks its providers in their order until one answers, and tells which one it was.

    Whatever a provider answers is the answer, also that a number is not valid. Each provider is
    behind a circuit of its own, so one that is down costs nothing.
    """

    def __init__(self, providers: Sequence[LookupProvider]) -> None:
        assert providers, "a chain of none"
        self.name = providers[0].name  # A sandbox around this answers under this name.
        self.remote = any(each.remote for each in providers)
        self._providers = providers

    def is_up(self) -> bool:
        """Tell whether any of them lets calls through."""
        return any(each.is_up() for each in self._providers)

    def probe(self) -> None:
        """Probe all of them, as each makes itself ready by it; raises if none succeeds."""
        trouble: list[Unavailable] = []
        for each in self._providers:
            try:
                each.probe()
            except Unavailable as error:
                trouble.append(error)
        if len(trouble) == len(self._providers):
            raise trouble[0]

    def balance(self, *, timeout_s: float) -> None:
        """Return None: each provider has a balance of its own."""

    def look_up(self, organization_id: UUID, phone_number: str) -> Found:
        """Return the first answer; NotAnswered if all are well and none has one."""
        trouble: list[Unavailable] = []
        for each in self._providers:
            try:
                return each.look_up(organization_id, phone_number)
            except Unavailable as error:
                trouble.append(error)
        # Prefer the error after which a retry may help: "not now" first, "no answer" last.
        raise min(
            trouble, key=lambda error: isinstance(error, NotAnswered) - isinstance(error, NotNow)
        )
