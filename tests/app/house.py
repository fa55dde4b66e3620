"""One organization with its clients, which authorization lets in or refuses."""

from uuid import UUID

from app.security.authorization import Caller
from app.security.tokens import Claims
from domain.accounts.organization import SCOPES, Status
from domain.cause import utc_now
from tests.installation import Process, SetClock

ALL = frozenset(SCOPES)


def claims_of(client_id: str, claimed: UUID | None, granted: frozenset[str] = ALL) -> Claims:
    return Claims(client_id, claimed, granted, "token", utc_now())


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
        claims = claims_of(self.client_id, claimed or self.organization_id, granted)
        return self.let_in(claims, None, scope)

    def authorize_machine(self, named: str | None, scope: str = "lookup") -> Caller:
        return self.let_in(claims_of(self.machine_id, None), named, scope)

    def let_in(self, claims: Claims, named: str | None, scope: str = "lookup") -> Caller:
        return self.process.authorizer.authorize(claims, named, scope, self.process.clock())

    def move_to(self, status: Status) -> None:
        self.process.change(self.organization_id, lambda it, cause: it.change_status(status, cause))

    def revoke(self, client_id: str) -> None:
        self.process.accounts.change_client(
            client_id, lambda each: each.revoke(self.process.cause())
        )
