"""A mirror that is built from the feed of events alone is what the API says, whatever has failed.

MIRROR_SEEDS=n runs the first n seeds.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random
from typing import Any
from uuid import UUID

import pytest

from app.http.application import create_app
from domain.accounts.organization import SCOPES
from domain.errors import Refused
from domain.ids import derive_id
from domain.links.network import NoSuchEndpoint, ProviderPlan
from domain.lookups.bulk_job import BulkJob
from domain.provider_errors import OutcomeUnknown, Rejected, Unavailable
from tests.faulty_network import Killed
from tests.installation import Installation, numbers
from tests.plan_files import import_plans, plan, take_over
from tests.projections.histories import cancel_job, create_job, finish_job, look_up
from tests.workers.link_lab import Lab
from tests.workers.test_reading import settle

SEEDS = int(os.environ.get("MIRROR_SEEDS", "4"))
STEPS = 60
CALLS = ("create_endpoint", "add_plan", "remove_plan", "suspend", "resume", "usage", "status")
UNCERTAIN = (OutcomeUnknown("lost"), Killed())
FAULTS = (
    *UNCERTAIN,
    Unavailable("down"),
    Rejected("no"),
)  # The last two say that nothing happened.
PAST = "2020-02-02T02:02:02Z"


class Mirror:
    """What a partner knows who has read nothing but events; they may come in pages of any size."""

    def __init__(self) -> None:
        self.links: dict[str, str] = {}
        self.plans: dict[str, dict[str, list[str | None]]] = {}  # By link: status, and end.
        self.jobs: dict[str, str] = {}
        self.balance, self.sequence = "", 0

    def take(self, name: str, data: dict[str, Any]) -> None:
        noun, _, what = name.partition(".")
        if noun == "wallet" and what != "low_balance":
            assert data["sequence"] == self.sequence + 1, "an entry is missing"
            self.balance, self.sequence = data["balance"], data["sequence"]
        match name:
            case "job.finished":
                self.jobs[data["job_id"]] = data["status"]
            case "link.activated":
                self.links[data["link_id"]] = "active"
                begun = data.get("plans", [data])
                self.plans[data["link_id"]] = {e["activation_id"]: ["active", None] for e in begun}
            case "link.status_changed":
                assert self.links[data["link_id"]] == data["was"]
                self.links[data["link_id"]] = data["status"]
            case "topup.completed":
                self.plans[data["link_id"]][data["activation_id"]] = ["active", None]
            case "link.plan_removed":
                del self.plans[data["link_id"]][data["activation_id"]]
            case "link.plan_started":
                self.plans[data["link_id"]][data["activation_id"]][1] = data["expires_at"]
            case "link.plan_ended":
                self.plans[data["link_id"]][data["activation_id"]][0] = "expired"


class Partner:
    """Asks the API, once all that is committed has been projected."""

    def __init__(self, lab: Lab) -> None:
        parts = lab.process
        parts.keys.ensure()
        client_id = parts.client(lab.organization_id)
        self._lab, self._client = lab, create_app(parts).test_client()
        token = parts.issuer.issue(client_id, lab.organization_id, SCOPES)
        self._headers = {"Authorization": f"Bearer {token}"}

    def get(self, path: str) -> Any:
        self._lab.process.projector.catch_up()
        reply = self._client.get(path, headers=self._headers)
        assert reply.status_code == 200, reply.text
        return reply.json["data"]

    def events(self, limit: int) -> Iterator[tuple[str, Any]]:
        after, has_more = "", True
        while has_more:
            page = self.get(f"/v1/events?limit={limit}&after={after}")
            after, has_more = page["next"], page["has_more"]
            yield from ((each["body"]["type"], each["body"]["data"]) for each in page["data"])


class Life:
    """Random actions of a partner, of operators and of a network that fails now and then."""

    def __init__(self, lab: Lab, random: Random) -> None:
        self.lab, self.random = lab, random
        self.links: list[UUID] = []
        self.jobs: list[UUID] = []
        self.steps: list[Callable[[], object]] = [
            *[self.buy] * 4,
            *[self.change] * 5,
            *[self.switch] * 4,
            *[self.deactivate] * 2,
            *[self.rename, self.finish, self.adjust, self.deposit, self.read, self.import_one],
            *[self.look_up] * 2,
            *[self.job] * 2,
            *[self.let_fail] * 4,
            *[self.pass_time] * 6,
        ]

    def step(self) -> None:
        """Do one thing, whatever comes of it; who dies of it begins again."""
        with suppress(Refused, NoSuchEndpoint):
            self.lab.live(self.random.choice(self.steps))

    def some(self) -> UUID | None:
        live = [each for each in self.links if self.lab.link(each).is_live]
        return self.random.choice(live) if live else None

    def buy(self) -> None:
        self.links.append(self.lab.request(self.lab.plan()))
        self.lab.work(self.links[-1])

    def import_one(self) -> None:
        lab, ids = self.lab, [derive_id("mirror", number) for number in range(2)]
        offered = (plan(f"eu-{n}", provider_plan_id="eu-1", id=str(ids[n])) for n in range(2))
        import_plans(lab.process, *offered)
        network, bought = lab.simulator, ProviderPlan("eu-1", 1_000, 7)
        iccid = network.available_esims(bought, None, "", page=0, timeout_s=1.0)[0].iccid
        link_id = derive_id("imported_link", network.name, iccid)
        made = network.create_endpoint(iccid, bought, "base", str(link_id), timeout_s=1.0)
        more = network.add_plan(made.endpoint_id, bought, "more", timeout_s=1.0)
        plans = [
            {"plan_id": str(ids[0]), "bought_at": PAST, "addon_id": made.addon_id},
            {"plan_id": str(ids[1]), "bought_at": PAST, "addon_id": more.addon_id},
        ]
        entry = {"organization_id": str(lab.organization_id), "iccid": iccid, "plans": plans}
        take_over(lab.process, lab.process.cause(), {**entry, "endpoint_id": made.endpoint_id})
        self.links.append(link_id)

    def change(self) -> None:
        if (link_id := self.some()) is None:
            return
        there = [each.id for each in self.lab.link(link_id).current_activations]
        remove = [each for each in there if self.random.random() < 0.3]
        self.lab.change(link_id, remove, ["eu-1"] * self.random.randint(0 if remove else 1, 2))

    def switch(self) -> None:
        if link_id := self.some():
            self.lab.switch(link_id, self.random.choice(("suspended", "active")))

    def deactivate(self) -> None:
        if (link_id := self.some()) and (endpoint := self.lab.link(link_id).endpoint_id):
            self.lab.simulator.deactivate(endpoint)

    def rename(self) -> None:
        if link_id := self.some():
            readings = self.lab.process.link_readings
            readings.rename(self.lab.link(link_id), "Van", self.lab.process.cause())

    def finish(self) -> None:
        if link_id := self.some():
            self.lab.finish(link_id, self.random.choice(("end", "cancel")))

    def read(self) -> None:
        if link_id := self.some():
            readings = self.lab.process.link_readings
            readings.read(self.lab.link(link_id), self.lab.process.cause(), live=True)

    def adjust(self) -> None:
        process, micros = self.lab.process, self.random.choice((-1_000_000, 2_000_000))
        once = str(process.log.head())
        owner = self.lab.organization_id
        process.accounts.adjust(owner, micros, "wrong", process.cause(), reference=once)

    def deposit(self) -> None:
        process = self.lab.process
        once = f"more-{process.log.head()}"
        process.accounts.deposit(self.lab.organization_id, 3_000_000, once, process.cause())

    def look_up(self) -> None:
        look_up(self.lab.process, self.lab.organization_id)

    def job(self) -> None:
        process, owner = self.lab.process, self.lab.organization_id
        self.jobs.append(create_job(process, owner, numbers(self.random.randint(1, 3))))
        if self.random.random() < 0.3:
            cancel_job(process, owner, self.jobs[-1])
        else:
            finish_job(process, self.jobs[-1])

    def let_fail(self) -> None:
        call, network = self.random.choice(CALLS), self.lab.network
        if self.random.random() < 0.5:
            network.before(call, self.random.choice(FAULTS))
        else:
            network.after(call, self.random.choice(UNCERTAIN))

    def pass_time(self) -> None:
        self.lab.clock.forward(hours=self.random.choice((0.1, 1, 7, 40, 90)))
        self.lab.sweep()
        settle(self.lab)


def differences(mirror: Mirror, partner: Partner) -> Iterator[str]:
    """Read all that the API shows, and yield what the mirror has otherwise."""
    listed = partner.get("/v1/links?per_page=100")["data"]
    shown = {each["id"]: partner.get(f"/v1/links/{each['id']}") for each in listed}
    jobs = partner.get("/number-lookup/bulk?per_page=100")["data"]
    balance = partner.get("/v1/wallet")["balance"]
    for name, data in partner.events(limit=7):  # After the reads, which record what they see.
        mirror.take(name, data)
    if mirror.links != {each["id"]: each["status"] for each in shown.values()}:
        yield f"links {mirror.links}"
    for link_id, link in shown.items():
        plans = {e["id"]: [e["status"], e["expiry_date"]] for e in link["activations"]}
        if link["status"] != "ended" and mirror.plans.get(link_id) != plans:
            yield f"plans of {link_id}: {mirror.plans.get(link_id)}, not {plans}"
    ended = {e["job_id"]: e["status"] for e in jobs if e["status"] not in {"queued", "processing"}}
    if mirror.jobs != ended:
        yield f"jobs {mirror.jobs}, not {ended}"
    if mirror.balance != balance:
        yield f"balance {mirror.balance}, not {balance}"


@pytest.mark.rounds
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_mirror_of_the_feed_is_what_the_api_says(installation: Installation, seed: int) -> None:
    installation.environment["TOKEN_ALGORITHM"] = "ES256"
    lab = Lab(installation)
    life = Life(lab, Random(seed))
    for _ in range(STEPS):
        life.step()
    lab.forget_faults()
    for job_id in life.jobs:
        if lab.process.log.get(BulkJob, job_id).finished_at is None:
            finish_job(lab.process, job_id)
    lab.settle()
    lab.clock.forward(minutes=20)
    settle(lab)
    assert [*differences(Mirror(), Partner(lab))] == []
