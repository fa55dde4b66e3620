"""The network and the provider of lookups as one process reaches them."""

from typing import TYPE_CHECKING, Any
from uuid import UUID

from app.adapters.lookups.sandbox import NUMBERS
from domain.lookups.ports import Found, NumberFacts
from domain.provider_errors import OutcomeUnknown, Rejected, Unavailable
from tests.faulty_network import CHANGES
from tests.workers.late_network import LateNetwork

if TYPE_CHECKING:
    from datetime import timedelta

    from tests.simulation.machine import Machine

SWITCHES = ("suspend", "resume")
BUYS = ("create_endpoint", "order", "add_plan")
MAY_BE_LATE = ("create_endpoint", "order", "add_plan", "remove_plan", "remove_endpoint")
REPLY_LOST = "the network does it and the reply is lost"
LATE_SHARES = (0.05, 0.3, 0.6, 0.99)  # Of the time in which the port promises an outcome.


class WatchedNetwork:
    """Every call passes two places, and may fail as the port allows."""

    def __init__(self, machine: "Machine", inner: LateNetwork) -> None:
        self._machine, self._inner = machine, inner
        self.name: str = inner.name
        self.settles_after: timedelta = inner.settles_after

    def __getattr__(self, call: str) -> Any:
        reached = getattr(self._inner, call)
        if not callable(reached):
            return reached
        world = self._machine.world

        def called(*args: Any, **options: Any) -> Any:
            changes = call in CHANGES or call in SWITCHES
            if changes:
                world.note_call(call, args)
            self._machine.passes(f"before {call}")
            self._refuse(call, changes=changes)
            if call in MAY_BE_LATE and world.strikes("the network is late", call):
                share = world.hazards.draw(call).choice(LATE_SHARES)
                share /= 2 if call == "order" else 1  # Its list may hide it for as long again.
                self._inner.later(call, share * self.settles_after.total_seconds())
                world.note(f"{call} is late")
            answer = reached(*args, **options)
            self._machine.passes(f"after {call}")
            if changes and world.strikes(REPLY_LOST, call):
                world.note(f"the reply to {call} is lost")
                raise OutcomeUnknown
            return answer

        return called

    def _refuse(self, call: str, *, changes: bool) -> None:
        world = self._machine.world
        if world.is_down("network") or world.strikes("the network is unavailable", call):
            world.note(f"{call} is unavailable")
            raise Unavailable
        if call in BUYS and world.strikes("the network rejects", call):
            world.note(f"{call} is rejected")
            raise Rejected
        if changes and world.strikes("the network loses the call", call):
            world.note(f"{call} is lost")
            raise OutcomeUnknown


class Lookups:
    """Answers by the number alone; the sandbox numbers fail as they do in the sandbox."""

    name = "simulated"
    remote = False

    def __init__(self, machine: "Machine") -> None:
        self._machine = machine

    def is_up(self) -> bool:
        return not self._machine.world.is_down("provider")

    def balance(self, *, timeout_s: float) -> None:
        """Tell nothing."""

    def probe(self) -> None:
        assert self.is_up()

    def look_up(self, organization_id: UUID, phone_number: str) -> Found:  # noqa: ARG002  # Of the port.
        assert phone_number not in NUMBERS
        self._machine.passes("before look_up", of=10)  # There are many, and all are alike.
        if not self.is_up():
            raise Unavailable
        return Found(NumberFacts(phone_number, valid=False), self.name)
