"""One organization with its clients, which authorization lets in or refuses."""

from typing import Any
from uuid import UUID

from app.security.authorization import Caller
from app.security.tokens import Claims
from domain.accounts.organization import SCOPES, Status
from tests.installation import Process, SetClock

ALL = frozenset(SCOPES)


class House:
    """One organization with a client, one machine-to-machine client, and the projector's pace."""

    def __init__(self, process: Process, clock: SetClock) -> None:
        self.process = process
        self.clock = clock
        self.organization_id = process.organization("")
        self.client_id = process.client(self.organization_id)
        self.machine_id = process.client(None)

    def project(self) -> None:
        """Let the projector catch up, and say so."""
        self.process.projector.catch_up()
        self.clock.forward(seconds=0.3)
        self.process.projector.step()

    def authorize(
        self, claimed: UUID | None = None, scope: str = "lookup", granted: frozenset[str] = ALL
    ) -> Caller:
        """Let the client of the organization in; its token claims that one unless told."""
        claimed = claimed or self.organization_id
        return self.let_in(self.client_id, claimed, None, scope, granted)

    def authorize_machine(self, named: str | None, scope: str = "lookup") -> Caller:
        return self.let_in(self.machine_id, None, named, scope, ALL)

    def let_in(self, client_id: str, claimed: UUID | None, named: str | None, *may: Any) -> Caller:
        """Let a client in that `may` one scope, and has been granted others."""
        (scope, granted), now = may or ("lookup", ALL), self.process.clock()
        claims = Claims(client_id, claimed, granted, "1", now)
        return self.process.authorizer.authorize(claims, named, scope, now)

    def move_to(self, status: Status) -> None:
        cause = self.process.cause()
        self.process.accounts.change_organization(
            self.organization_id, lambda each: each.change_status(status, cause)
        )

    def revoke(self, client_id: str) -> None:
        self.process.accounts.change_client(
            client_id, lambda each: each.revoke(self.process.cause())
        )
