"""Replays the story of a seed without interleaving, and tells what came of each request.

It asks by HTTP, hears the calls at the port of the network and reads the log, so it runs on the
product of another commit too: `compare.py` starts it there.
"""

import json
import logging
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from domain.links.link import Link
from domain.links.network import ProviderPlan
from domain.provider_errors import ProviderError
from tests.faulty_network import CHANGES
from tests.simulation.machine import Machine
from tests.simulation.order_world import OrderWorld
from tests.simulation.outside import BUYS, REPLY_LOST, SWITCHES
from tests.simulation.roles import Roles
from tests.simulation.simulation import Run, Simulation
from tests.simulation.story import Request, chance
from tests.simulation.template import few, make_template, under
from tests.simulation.world import World

WEB, WORKER = 0, 1  # Among the processes.
WAIT_S = 0.5  # What passes while a request waits for a worker.
TROUBLE = (0.0, 1.0, 1.0, 2.0)  # By which the rates of a seed are multiplied.
RATES = {  # Per call that changes something.
    "the network is unavailable": 0.05,
    "the network rejects": 0.04,
    "the network loses the call": 0.05,
    "the network is late": 0.05,
    REPLY_LOST: 0.10,
    "a process dies": 0.03,  # At each of two places.
}
FACTS = ("stage", "status", "link_id", "is_settled", "cancelled_count")
COUNTS = ("added", "removed", "completed", "failed")
READ_FAILS = 0.04  # Per request and kind of call, however often it is made: reads may differ.


class Quiet(World):
    """One process for requests and one for work, in turns; only what is keyed goes wrong."""

    roles: Roles

    def __init__(self, seed: int, environment: dict[str, str]) -> None:
        super().__init__(seed, environment)
        self.number = 0  # Of the request that is being played.
        self.is_settling = False
        self.newest: dict[Any, int] = {}  # The newest request about a link.
        self.calls_of: dict[str, list[str]] = defaultdict(list)  # By link, with what became of it.
        self._call, self._told = "", [""]
        self._trouble = chance(seed, "trouble").choice(TROUBLE)
        self.hazards.is_calm = True

    def turn_to(self, number: int) -> None:
        super().turn_to(number)
        self.number = number
        self.calls_of.clear()

    def wait_a_turn(self) -> None:
        self.clock.forward(seconds=WAIT_S)
        self.turn_over()

    def turn_over(self) -> None:
        self._turns = WORKER
        super().turn_over()

    def strikes(self, name: str, call: str) -> bool:
        """Follow from request, call and attempt; reads fail until the request is answered."""
        if call not in CHANGES and call not in SWITCHES:
            random, is_read = chance(self.seed, self.number, call), not self.is_settling
            return is_read and random.random() < READ_FAILS * self._trouble
        return self.hazards.draw(name, call).random() < RATES[name] * self._trouble

    def kills(self, _: Machine, place: str) -> bool:
        changes = place.partition(" ")[2] in (*CHANGES, *SWITCHES)
        return changes and self.strikes("a process dies", place.partition(" ")[2])

    def note(self, text: str) -> None:
        """Write down what becomes of a call."""
        if self._call and self._call in text:
            self._told[-1] += f", {text}"

    def note_call(self, call: str, args: Sequence[Any]) -> None:
        """Write down a call, in words, under its link, and let it serve its request.

        One that names no reference of ours serves the newest request about its link.
        """
        roles, first = self.roles, args[0]
        roles.read()
        plan = next((each.provider_plan_id for each in args if isinstance(each, ProviderPlan)), "")
        holder = roles.holders.get(first if isinstance(first, str) else getattr(first, "iccid", ""))
        link, words = roles.of(holder), plan
        if call in {"create_endpoint", "order"}:
            link = roles.of(args[-1])
            words = f"{roles.tried(first, link)}, {plan}" if call == "create_endpoint" else plan
        elif call == "add_plan":
            words = f"{plan} for {roles.of(args[-1])}"
        elif call == "remove_plan":
            with suppress(ProviderError):
                addons = self.simulator.usage(first, timeout_s=1.0).addons
                words = ", ".join(it.provider_plan_id for it in addons if it.addon_id == args[1])
        newest = self.newest.get(holder, 0) if holder is not None else 0
        self.hazards.number = roles.request_of(args[-1]) if call in BUYS else newest
        self._call, self._told = call, self.calls_of[link]
        self._told.append(f"{call}({words})")


class QuietOrders(Quiet, OrderWorld):
    """The same where the network sells by order."""


class Replay(Run):
    """The story, one request after the other."""

    world: Quiet

    def run(self) -> Iterator[dict[str, Any]]:
        """Yield what came of each request."""
        world, customers, states = self.world, self.customers, dict[str, str]()
        world.roles, planned = customers.roles, world.clock.now
        try:
            with under(world.clock.monotonic, world.new_id):
                customers.register()
                for number, request in self._story:
                    world.turn_to(number)
                    customers.roles.read()
                    customers.roles.entries.clear()
                    answer = self._answer(request)
                    world.forward(1.0)
                    if not request.soon:
                        planned += timedelta(hours=request.hours)
                        self._settle_until(planned)
                    customers.roles.read()
                    before, states = states, states if request.soon else self._states()
                    yield {
                        "request": f"request {number}: {request}",
                        "answer": answer,
                        "calls": {name: [*calls] for name, calls in world.calls_of.items()},
                        "wallet entries": [*customers.roles.entries],
                        "state": {k: v for k, v in states.items() if before.get(k) != v},
                    }
        finally:
            self.close()

    def _answer(self, request: Request) -> str:
        world, roles = self.world, self.customers.roles
        link_id = roles.made.get(request.about)
        if link_id is not None:
            world.newest[link_id] = world.number
        web = world.machines[WEB]
        reply = world.live(web, lambda: self.customers.ask(web, request))
        roles.read()
        if reply is None:
            return "none, because the process has died" if web.is_dead else "none: nothing to ask"
        return f"{reply[0]} {json.dumps(roles.shown(reply[1]), sort_keys=True)}"

    def _settle_until(self, planned: Any) -> None:
        """Let all come to its end, then the time of the next request."""
        world = self.world
        world.is_settling = True
        self.settle()
        world.forward(max(0.0, (planned - world.clock.now).total_seconds()))
        self.settle()
        world.is_settling = False

    def _states(self) -> dict[str, str]:
        roles, log = self.customers.roles, self.world.outside.log
        loaded = ((name, log.get(*stream)) for name, stream in roles.streams.items())
        return {roles.text(name): roles.text(_state(it)) for name, it in loaded}


def _state(it: Any) -> str:
    """Say what of an aggregate both products must agree on."""
    said = [f"{name}: {getattr(it, name)}" for name in FACTS if hasattr(it, name)]
    said += [f"{len(getattr(it, name))} {name}" for name in COUNTS if hasattr(it, name)]
    if isinstance(it, Link):
        said.append(f"ended: {it.ended and it.ended.reason}")
        said += [each.plan.provider_plan_id for each in it.current_activations]
    failure = getattr(it, "failure", None)
    return ", ".join([*said, f"failed: {failure.code}"] if failure else said)


WORLDS = {"stock": (Quiet, World), "order": (QuietOrders, OrderWorld)}


def main(kind: str, seeds: int) -> None:
    """Print a line of JSON for each seed: what came of its requests, then how it ends amid all."""
    logging.disable(logging.CRITICAL)
    quiet, interleaved = WORLDS[kind]
    with TemporaryDirectory() as files:
        template = make_template(Path(files))
        if kind == "order":
            template = few(template)
        for seed in range(seeds):
            told: list[dict[str, Any]] = []
            try:
                with TemporaryDirectory() as directory:
                    told += Replay(seed, template, Path(directory), quiet).run()
                with TemporaryDirectory() as directory:
                    Simulation(seed, template, Path(directory), interleaved).run()
            except Exception as error:  # noqa: BLE001  # It is what is compared.
                told.append({"request": "the run", "fails": str(error).partition("\n")[0]})
            print(json.dumps(told), flush=True)  # noqa: T201  # Its reader is `compare`.


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
