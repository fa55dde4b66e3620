"""Several providers of lookups as one: if a provider is unavailable, the next one is asked."""

from collections.abc import Sequence
from uuid import UUID

from domain.lookups.ports import Found, LookupProvider
from domain.provider_errors import NotAnswered, NotNow, Unavailable


class ChainedLookup:
    """Asks its providers in order until one answers; the answer names that provider.

    "Not valid" is an answer too. Each provider is behind its own circuit, so a provider that is
    down costs no time.
    """

    def __init__(self, providers: Sequence[LookupProvider]) -> None:
        assert providers, "a chain of none"
        self.name = providers[0].name  # A sandbox around the chain answers under this name.
        self.remote = any(each.remote for each in providers)
        self._providers = providers

    def is_up(self) -> bool:
        """Tell whether any provider lets calls through."""
        return any(each.is_up() for each in self._providers)

    def probe(self) -> None:
        """Probe all providers, because a probe makes each ready; raises if none succeeds."""
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
        """Return the first answer; raises NotAnswered if all are up but none has an answer."""
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
