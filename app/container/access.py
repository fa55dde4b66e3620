"""Tokens, client secrets and callers."""

from functools import cached_property

from app.authorization import Authorizer
from app.container.work import Work
from app.tokens.jwt import LEEWAY_S, TokenIssuer, TokenVerifier
from app.tokens.keys import KeyRing, load_or_make_pepper
from app.tokens.secrets import SecretHasher


class Access(Work):
    """Who may do what."""

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
