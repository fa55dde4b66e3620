"""The operations that take an Idempotency-Key, over HTTP: one adapter for each."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, ClassVar
from uuid import UUID

from werkzeug.test import TestResponse

from app.adapters.networks.simulated.network import Fault
from domain.ids import derive_id
from domain.links.bought_plan import BoughtPlan
from domain.links.link import Link, link_id
from domain.lookups.number_lookup import number_lookup_id
from tests.app.http.buying import BASIC, FREE, LINKS, MISSING, MORE, UNSOLD, Buyer, buyer
from tests.app.http.service import Service
from tests.installation import numbers

KEY = "k"
DOWN = "+15005550001"
ONE, TWO = numbers(2)
BOUGHT = ("id", "iccid", "created_at", "amount_charged", "currency")  # The network tells the rest.
ANSWERED = ("lookup_id", "source", "as_of", "provider", "charge")
Body = Mapping[str, Any]


class Request(ABC):
    """One operation of one organization: `bodies[0]` is the request, those after it are others."""

    method: ClassVar[str] = "POST"
    path: str
    status: ClassVar[int]
    cost: ClassVar[str]
    bodies: Sequence[Body]
    refused: Sequence[tuple[Body, int]] = ()  # What fails and keeps nothing, with its status.

    def __init__(
        self, service: Service, balance: str = "100.00", shop: Buyer | None = None
    ) -> None:
        self.service, self.shop = service, shop or buyer(service, balance)

    def send(self, body: Body | None = None, key: str = KEY) -> TestResponse:
        """Send a request by a client of its own."""
        headers = {**self.shop.headers, "Idempotency-Key": key}
        body = body or self.bodies[0]
        client = self.service.app.test_client()
        return client.open(self.path, method=self.method, json=body, headers=headers)

    @abstractmethod
    def outcome(self, reply: TestResponse) -> object:
        """Return what a replay must repeat."""


class LookupRequest(Request):
    path, status, cost = "/number-lookup", 200, "0.005"
    bodies = ({"phone_number": ONE}, {"phone_number": TWO})
    refused = (({"phone_number": DOWN}, 503),)

    def outcome(self, reply: TestResponse) -> object:
        return reply.json["data"], *(reply.json["meta"].get(name) for name in ANSWERED)

    def leave_running(self) -> None:
        """Leave a first request unfinished, as a process does that is still working on it."""
        parts = self.service.container
        lease = number_lookup_id(self.shop.id, KEY)
        fingerprint = derive_id("fingerprint", lease, ONE).hex[:4]
        until = parts.clock() + timedelta(seconds=50)
        assert parts.leases.acquire(lease, parts.accounts.new_id(), fingerprint, until) is None


class JobRequest(Request):
    path, status, cost = "/number-lookup/bulk", 202, "0.01"
    bodies = tuple({"phone_numbers": each} for each in ([ONE, TWO], [TWO, ONE], [ONE]))

    def outcome(self, reply: TestResponse) -> object:
        return reply.json["data"], reply.headers["Location"]


class LinkRequest(Request):
    path, status, cost = LINKS, 201, "4.50"

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        plans = self.shop.plans
        first = {"plan_id": plans[BASIC], "name": "Van"}
        changes = ({"plan_id": plans[MORE]}, {"name": "Car"}, {"name": None}, {"plan_id": MISSING})
        self.bodies = (first, *({**first, **each} for each in changes))
        faults = ((UNSOLD, 422), *((each.value, 502) for each in BROKEN))
        self.refused = tuple(({"plan_id": plans[name]}, status) for name, status in faults)

    def outcome(self, reply: TestResponse) -> object:
        return reply.headers["Location"], *(reply.json["data"][name] for name in BOUGHT)

    def leave_running(self) -> None:
        """Leave a first request unfinished, as a process does that is still working on it."""
        parts = self.service.container
        running = Link.request(
            link_id(self.shop.id, KEY, 1),
            self.service.cause(),
            organization_id=self.shop.id,
            name="Van",
            plan=BoughtPlan(UUID(self.shop.plans[BASIC]), "p-1", "Running", 0, 1000, 7, ["DE"]),
            sponsor_profiles=[],
            currency="USD",
            deadline=parts.clock() + timedelta(seconds=30),
        )
        parts.log.append(running)


class ChangeRequest(Request):
    method, status, cost = "PUT", 200, "2.00"

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.link, other = self.shop.link(FREE), self.shop.link(FREE)
        self.path = f"{LINKS}/{self.link['id']}/plans"
        self.elsewhere = f"{LINKS}/{other['id']}/plans"
        more, free = self.shop.plans[MORE], self.shop.plans[FREE]
        remove = [self.link["activations"][0]["id"]]
        others = ({"add": [free, more]}, {"add": [more]}, {"add": [more, free], "remove": remove})
        self.bodies = ({"add": [more, free]}, *others, {"remove": remove})
        names = ((UNSOLD, 422), (Fault.NO_ENDPOINT.value, 502), (Fault.PROVIDER_ERROR.value, 502))
        self.refused = tuple(({"add": [self.shop.plans[name]]}, status) for name, status in names)

    def outcome(self, reply: TestResponse) -> object:
        data = reply.json["data"]
        return data["activations"], *(data[name] for name in BOUGHT)


BROKEN = (Fault.NO_ENDPOINT, Fault.PROVIDER_ERROR, Fault.NO_ESIM)


EVERY: Sequence[type[Request]] = (LookupRequest, JobRequest, LinkRequest, ChangeRequest)
