"""Tokens, client secrets and callers."""

from functools import cached_property

from app.authorization import Authorizer
from app.container.work import Work
from app.metrics import Metrics
from app.tokens.jwt import LEEWAY_S, TokenIssuer, TokenVerifier
from app.tokens.keys import KeyRing, load_or_make_pepper
from app.tokens.secrets import SecretHasher
from projections.health import Lag, lags


class Access(Work):
    """Who may do what, and what operators see."""

    @cached_property
    def metrics(self) -> Metrics:
        """What operators watch."""
        return Metrics(self)

    def lags(self) -> list[Lag]:
        """How far each follower is behind."""
        return lags(self.log, self.views, self.positions)

    def backlog(self) -> int:
        """How many messages wait for a worker."""
        return sum(self.publisher.backlog(queue) for queue in ("lookup", "provision"))

    def oldest_job_s(self) -> float:
        """For how many seconds the unfinished job that is longest idle has not moved."""
        now = self.clock()
        with self.views.reading() as connection:
            found = self.jobs.unfinished(connection, now, 1)
        return (now - found[0].moved_at).total_seconds() if found else 0.0

    def provider_is_up(self) -> bool:
        """Whether lookups are let through to the provider."""
        return self.provider.is_up()

    @cached_property
    def keys(self) -> KeyRing:
        """The signing keys."""
        settings = self.settings
        retire_after_s = settings.token_ttl_s + LEEWAY_S
        return KeyRing(settings.signing_keys, settings.token_algorithm, self.clock, retire_after_s)

    @cached_property
    def issuer(self) -> TokenIssuer:
        """Who signs tokens."""
        settings = self.settings
        return TokenIssuer(
            self.keys, settings.issuer, settings.token_audience, settings.token_ttl_s, self.clock
        )

    @cached_property
    def verifier(self) -> TokenVerifier:
        """Who checks tokens."""
        return TokenVerifier(
            self.keys, self.settings.issuer, self.settings.token_audience, self.clock
        )

    @cached_property
    def secret_hasher(self) -> SecretHasher:
        """How client secrets are compared."""
        pepper = self.settings.secret_pepper.encode()
        return SecretHasher(pepper or load_or_make_pepper(self.settings.signing_keys))

    @cached_property
    def authorizer(self) -> Authorizer:
        """Who may do what, now."""
        return Authorizer(
            self.log, self.views, self.positions, self.organizations, self.clients, self.clock
        )
