"""Several providers of lookups as one: if a provider is unavailable, the next one is asked."""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Final
from uuid import UUID

from domain.lookups.ports import Found, LookupProvider
from domain.provider_errors import NotAnswered, NotNow, Unavailable

SAY_EVERY_S: Final = 60.0  # Of one provider, because every lookup would say the same.

logger = logging.getLogger(__name__)


class ChainedLookup(LookupProvider):
    """Asks its providers in order until one answers; the answer names that provider.

    "Not valid" is an answer too. Each provider is behind its own circuit, so a provider that is
    down costs no time. When a lookup goes on to the next provider, `on_failure` is called with
    the one that has not answered and why: `no_answer`, `busy` or `outage`, which is also logged.
    """

    def __init__(
        self,
        providers: Sequence[LookupProvider],
        on_failure: Callable[[str, str], None] = lambda _provider, _reason: None,
    ) -> None:
        assert providers, "a chain of none"
        self.name = providers[0].name  # A sandbox around the chain answers under this name.
        self.remote = any(each.remote for each in providers)
        self._providers = providers
        self._on_failure = on_failure
        self._said_s: dict[str, float] = {}  # When the outage of a provider was logged last.

    def is_up(self) -> bool:
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

    def look_up(self, organization_id: UUID, phone_number: str) -> Found:
        """Return the first answer; raises NotAnswered if all are up but none has an answer."""
        trouble: list[Unavailable] = []
        for each in self._providers:
            try:
                return each.look_up(organization_id, phone_number)
            except Unavailable as error:
                trouble.append(error)
                self._record_failure(each.name, error)
        # Prefer the error after which a retry may help: "not now" first, "no answer" last.
        raise min(
            trouble, key=lambda error: isinstance(error, NotAnswered) - isinstance(error, NotNow)
        )

    def _record_failure(self, provider: str, error: Unavailable) -> None:
        """Count a provider that has not answered; log an outage, which the next one would hide."""
        if isinstance(error, NotAnswered | NotNow):
            self._on_failure(provider, "no_answer" if isinstance(error, NotAnswered) else "busy")
            return
        self._on_failure(provider, "outage")
        now_s = time.monotonic()
        if now_s - self._said_s.get(provider, -SAY_EVERY_S) >= SAY_EVERY_S:
            self._said_s[provider] = now_s
            logger.warning("lookups fall over to the provider behind %s: %s", provider, error)
