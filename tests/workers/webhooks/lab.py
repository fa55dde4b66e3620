"""Endpoints that are told things, a sender that is scripted, and steps of planner and workers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from domain.webhooks.commands import Changes, Draft
from domain.webhooks.deliveries import Delivery, Sent
from domain.webhooks.endpoint import WebhookEndpoint
from projections.stores.deliveries import Claimed
from tests.installation import Process
from tests.workers.queueing import Queue
from workers.webhook_planner import WebhookPlanner
from workers.webhooks import SLOTS, WebhookWork

OK, DOWN, GONE = Sent(200, None, 5), Sent(None, "timeout", 10_000), Sent(410, None, 5)


class Attempt(NamedTuple):
    """One request as an endpoint got it."""

    url: str
    id: str
    type: str
    data: Mapping[str, Any]


@dataclass
class Script:
    """A sender that answers as it is told; `meanwhile` happens during each call."""

    answers: list[Sent] = field(default_factory=list)
    always: Sent = OK
    attempts: list[Attempt] = field(default_factory=list)
    meanwhile: Callable[[], object] = int

    def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Sent:
        told = msgspec.json.decode(body)
        assert {"webhook-timestamp", "webhook-signature", "Content-Type"} < {*headers}
        self.attempts.append(Attempt(url, headers["webhook-id"], told["type"], told["data"]))
        self.meanwhile()
        return self.answers.pop(0) if self.answers else self.always


def signed(*_: object) -> str:
    return "v1,signed"


@dataclass
class Lab:
    """One process with its planner and worker."""

    process: Process
    sender: Script = field(default_factory=Script)
    bells: Queue = field(default_factory=lambda: Queue("webhook", 0))

    def __post_init__(self) -> None:
        self.planner = planner_of(self.process, self.bells)
        self.work = work_of(self.process, self.sender, self.bells)

    def endpoint(
        self, owner: UUID, url: str = "https://a.example", events: Sequence[str] | None = None
    ) -> UUID:
        draft = Draft(owner, url, None, events, None)
        return self.process.webhooks.register(draft, self.process.cause())[0].id

    def plan(self) -> None:
        """Project, and plan all that there is."""
        plan(self.process, self.planner)

    def deliver(self) -> None:
        """Work until nothing is due."""
        while (
            due := self.process.webhook_deliveries.due(self.process.clock())
        ) or self.bells.messages:
            for each in {*due, *self.bells.taken()}:
                self.work.deliver(*each)

    def settle(self) -> None:
        self.plan()
        self.deliver()

    def told(self) -> list[str]:
        return [each.type for each in self.sender.attempts]

    def deliveries(self, owner: UUID, endpoint_id: UUID) -> list[Delivery]:
        """Return the deliveries of an endpoint, oldest first."""
        found, total = self.process.webhook_deliveries.page(
            owner, endpoint_id, None, slice(0, 1_000)
        )
        assert total == len(found)
        return sorted(found, key=lambda each: each.position)


class Told(Lab):
    """A lab with one organization and its endpoint."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.plan()
        self.clock = self.process.time
        self.owner = self.process.organization()
        self.hook = self.endpoint(self.owner)
        self.store = self.process.webhook_deliveries

    def happen(self, *references: str) -> None:
        for each in references:
            self.process.deposit(self.owner, "1.00", each)
        self.plan()

    def try_one(self) -> None:
        """Do what a worker does for one bell."""
        self.work.deliver(self.owner, self.hook)

    def claim(self, earlier: timedelta = timedelta()) -> Claimed | None:
        return self.store.claim(self.hook, self.clock() - earlier, SLOTS)

    def change(self, changes: Changes) -> None:
        self.process.webhooks.change(self.its, changes, self.process.cause())

    @property
    def its(self) -> WebhookEndpoint:
        return self.process.webhooks.get(self.owner, self.hook)

    @property
    def all(self) -> list[Delivery]:
        return self.deliveries(self.owner, self.hook)

    @property
    def one(self) -> Delivery:
        [found] = self.all
        return found

    @property
    def disabled(self) -> str | None:
        """Why it is disabled, None if it is not."""
        disabled = self.process.log.get(WebhookEndpoint, self.hook).disabled
        return None if disabled is None else disabled.reason


def plan(process: Process, planner: WebhookPlanner) -> None:
    process.projector.catch_up()
    while planner.step():
        pass


def planner_of(process: Process, bells: Queue | None = None) -> WebhookPlanner:
    models, plans = (
        (process.webhook_endpoints, process.webhook_messages),
        process.webhook_deliveries,
    )
    return WebhookPlanner(process.source, *models, plans, bells or Queue("webhook"))


def work_of(process: Process, sender: Any, bells: Any = None, threads: int = 96) -> WebhookWork:
    return WebhookWork(
        process.log,
        process.webhooks,
        process.webhook_deliveries,
        sender.send,
        signed,
        lambda: True,
        bells or Queue("webhook"),
        process.clock,
        threads,
        process.cut_off.is_doubted,
    )
