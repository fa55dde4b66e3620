"""The load: partners who look up, create and cancel jobs, create, change and end links, pay in."""

import random
import time
from collections.abc import Callable
from queue import Empty, Queue
from threading import Event, Thread
from typing import Any, Self
from urllib.parse import quote
from uuid import UUID

from domain.catalogue.plan import key_of, plan_id
from domain.errors import Refused
from domain.money import parse_amount
from tests.faults.debtors import Debtors
from tests.faults.ledger import Kind, Ledger, Promise
from tests.faults.partner import ANSWERED_S_MAX, PAUSE_S, Partner
from tests.faults.system import System
from tests.house.partner import NUMBER_PATH, Reply
from tests.installation import numbers
from tests.plan_files import import_plans, plan

DEPOSIT = "100000.00"
PAID_IN = "1.25"
JOB_NUMBERS = (2, 20, 20, 260)  # The largest has two slices.
FAILING = "+15005550001"
SCOPES = ["lookup", "links", "plans", "wallet"]
ORDINARY, LOST = "Ordinary", "Lost reply"
BROKEN = ("Provider error", "No endpoint", "No esim")
SLOW = "Slow"
PLANS = (ORDINARY, LOST, *BROKEN, SLOW)


class Load:
    """Threads of partners; `with` starts them, and ends when the last of them has its answers."""

    def __init__(self, system: System, seed: int) -> None:
        self.ledger = Ledger()
        self._seed = seed
        self.outside = outside = system.outside
        self.keyed, self.unkeyed = outside.organization(DEPOSIT), outside.organization(DEPOSIT)
        self.debtors = Debtors(system.installation, self.ledger)
        self._plans = self._import()
        self._port = int(system.installation.environment["PORT"])
        self.partner = self.partner_of(self.keyed)
        self.other = self.partner_of(self.unkeyed)
        self._fresh: Queue[str] = Queue()
        self._stop = Event()
        self.slow_pauses = Event()
        self.statuses: dict[str, str] = {}  # What a link was last brought to, by its id.
        # Ends without an answer. A link is busy for minutes then; others are ended meanwhile.
        self._unsure: list[tuple[str, float]] = []
        self._threads = [
            Thread(target=self._repeat, args=(name, work, pause_s), name=f"load {name}")
            for name, work, pause_s in self._roles()
        ]

    def _roles(self) -> list[tuple[str, Callable[[str, random.Random], None], float]]:
        return [
            # A key whose process was killed is leased for 15 s more: others go on meanwhile.
            *[(f"lookup-{number}", self._look_up, 0.8) for number in range(4)],
            ("unkeyed", self._look_up_unkeyed, 0.25),
            ("job", self._create_job, 0.5),
            ("cancel", self._cancel_job, 0.5),
            *[(f"link-{number}", self._create_link, 0.5) for number in range(4)],
            ("end", self._end_link, 0.5),
            ("slow-1", self._create_slow_link, 0.5),
            ("slow-2", self._create_slow_link, 0.5),
            ("change-1", self._change_link, 0.1),
            ("change-2", self._change_link, 0.1),
            ("finance", self._pay_in, 1.0),
            ("debtor", self._add_debtor, 1.5),
        ]

    def _import(self) -> dict[str, str]:
        sold = [
            plan(
                name,
                provider_plan_id=(
                    "ordinary" if name == ORDINARY else f"sandbox-{name.lower().replace(' ', '-')}"
                ),
                retail_price="1.10",
            )
            for name in PLANS
        ]
        import_plans(self.outside, *sold)
        found = {}
        for name, each in zip(PLANS, sold, strict=True):
            found[name] = str(plan_id(key_of(None, each["provider_plan_id"], name)))
        return found

    def partner_of(self, organization_id: UUID) -> Partner:
        """Let somebody ask for one more organization."""
        client_id = self.outside.client(organization_id)
        token = self.outside.issuer.issue(client_id, organization_id, SCOPES)
        return Partner(self._port, token, self.ledger)

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        for link_id, began_at in self._unsure:
            if self.partner.ask("DELETE", f"/v1/links/{link_id}").status == 200:
                self._promise_ended(link_id, began_at)

    def _repeat(
        self, name: str, work: Callable[[str, random.Random], None], pause_s: float
    ) -> None:
        chance, count = random.Random(f"{self._seed} {name}"), 0
        while not self._stop.is_set():
            count += 1
            try:
                work(f"{self._seed}-{name}-{count}", chance)
            except Exception as error:  # noqa: BLE001  # The test reports it; the load goes on.
                self.ledger.surprise(f"{name}: {type(error).__name__}: {error}")
            self._stop.wait(pause_s * (0.5 + chance.random()))

    def _look_up(self, key: str, chance: random.Random) -> None:
        [number] = numbers(1, chance.randrange(1_000_000))
        began_at = time.monotonic()
        reply = self.partner.ask("POST", NUMBER_PATH + quote(number), key=key)
        self._promise_lookup("lookup", reply, key, began_at, number)

    def _look_up_unkeyed(self, key: str, chance: random.Random) -> None:
        [number] = [FAILING] if chance.random() < 0.1 else numbers(1, chance.randrange(1_000_000))
        began_at = time.monotonic()
        reply = self.other.once("POST", NUMBER_PATH + quote(number))
        if reply is not None and reply.status == 200:
            self._promise_lookup("unkeyed lookup", reply, key, began_at, number)
        elif reply is None or reply.code == "SERVICE_UNAVAILABLE":
            self.ledger.lost_sight()
        elif reply.code == "NUMBER_LOOKUP_UNAVAILABLE":
            self.ledger.refused("503 NUMBER_LOOKUP_UNAVAILABLE")
        else:
            self.ledger.surprise(f"unkeyed lookup: {reply.status} {reply.code}")

    def _promise_lookup(
        self, kind: Kind, reply: Reply, key: str, began_at: float, number: str
    ) -> None:
        if reply.status != 200:
            return
        meta = reply.json["meta"]
        charge = meta["charge"]
        amount = parse_amount(charge["amount"])
        made = Promise(kind, meta["lookup_id"], key, amount, began_at, number)
        made.transaction_id = charge["transaction_id"]
        self.ledger.promise(made)

    def _create_job(self, key: str, chance: random.Random) -> None:
        count = chance.choice(JOB_NUMBERS)
        failing = [FAILING] if chance.random() < 0.5 else []
        self._send_job(key, [*numbers(count - 1, chance.randrange(1_000_000)), *failing])

    def _cancel_job(self, key: str, chance: random.Random) -> None:
        job_id = self._send_job(key, numbers(JOB_NUMBERS[-1], chance.randrange(1_000_000)))
        if job_id is None:
            return
        began_at = time.monotonic()
        if self.partner.ask("DELETE", f"/number-lookup/bulk/{job_id}").status == 200:
            self.ledger.promise(Promise("cancel", job_id, key, 0, began_at))

    def _send_job(self, key: str, wanted: list[str]) -> str | None:
        """Create a job; return its id, None where it was refused."""
        body, began_at = {"phone_numbers": wanted}, time.monotonic()
        reply = self.partner.ask("POST", "/number-lookup/bulk", body, key)
        if reply.status != 202:
            return None
        job_id = str(reply.json["data"]["job_id"])
        self.ledger.promise(Promise("job", job_id, key, 0, began_at, body))
        return job_id

    def _create_link(self, key: str, chance: random.Random) -> None:
        name = chance.choice([ORDINARY, ORDINARY, ORDINARY, LOST, LOST, *BROKEN])
        link_id = self._buy(key, name)
        if link_id is not None and self._fresh.qsize() < 20:
            self._fresh.put(link_id)

    def _end_link(self, key: str, _: random.Random) -> None:
        link_id = self._buy(key, ORDINARY)
        if link_id is None:
            return
        began_at = time.monotonic()
        reply = self.partner.once("DELETE", f"/v1/links/{link_id}")
        if reply is not None and reply.status == 200:
            self._promise_ended(link_id, began_at)
        else:
            self._unsure.append((link_id, began_at))

    def _promise_ended(self, link_id: str, began_at: float) -> None:
        self.statuses[link_id] = "ended"
        self.ledger.promise(Promise("status", link_id, "ended", 0, began_at))

    def _create_slow_link(self, key: str, _: random.Random) -> None:
        if not self.slow_pauses.is_set():
            self._buy(key, SLOW)

    def _buy(self, key: str, name: str) -> str | None:
        """Create a link; return its id, None where it was refused."""
        body, began_at = {"plan_id": self._plans[name], "name": key}, time.monotonic()
        reply = self.partner.ask("POST", "/v1/links", body, key)
        if reply.status != 201:
            return None
        link = reply.json["data"]
        amount = parse_amount(link["amount_charged"])
        self.ledger.promise(Promise("link", link["id"], key, amount, began_at, body))
        return str(link["id"])

    def _change_link(self, key: str, chance: random.Random) -> None:
        try:
            link_id = self._fresh.get(timeout=0.5)
        except Empty:
            return
        path = f"/v1/links/{link_id}"
        link = self.partner.ask("GET", path).json["data"]
        name = chance.choice([ORDINARY, ORDINARY, LOST, BROKEN[0]])
        self._put_plans(f"{path}/plans", "topup", {"add": [self._plans[name]]}, f"{key}-add")
        first = link["activations"][0]["id"]
        if chance.random() < 0.5:
            self._put_plans(f"{path}/plans", "removal", {"remove": [first]}, f"{key}-remove")
        self._switch(link_id, "suspend", "suspended")
        if chance.random() < 0.5:
            self._switch(link_id, "reactivate", "active")

    def _put_plans(self, path: str, kind: Kind, body: dict[str, Any], key: str) -> None:
        began_at = time.monotonic()
        reply = self.partner.ask("PUT", path, body, key)
        if reply.status == 200:
            amount = parse_amount(reply.json["data"]["amount_charged"])
            self.ledger.promise(Promise(kind, path, key, amount, began_at, body))

    def _switch(self, link_id: str, verb: str, status: str) -> None:
        began_at = time.monotonic()
        self.statuses.pop(link_id, None)
        reply = self.partner.ask("POST", f"/v1/links/{link_id}/{verb}")
        if reply.status == 200:
            self.statuses[link_id] = status
            self.ledger.promise(Promise("status", link_id, status, 0, began_at))

    def _pay_in(self, key: str, __: random.Random) -> None:
        began_at, amount = time.monotonic(), parse_amount(PAID_IN)
        while time.monotonic() < began_at + ANSWERED_S_MAX:
            try:
                self.outside.accounts.move(
                    "deposit", self.keyed, amount, key, self.outside.cause(key)
                )
            except Refused:
                self.ledger.refused("deposit refused")
                Event().wait(PAUSE_S)
            else:
                self.ledger.promise(Promise("deposit", key, key, amount, began_at))
                return

    def _add_debtor(self, key: str, _: random.Random) -> None:
        self.debtors.add(key, time.monotonic())
