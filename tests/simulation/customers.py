"""The customers: they use every operation, often repeat requests, and note the replies."""

from collections.abc import Callable
from random import Random
from typing import Any
from uuid import UUID

from domain.accounts.wallet import Wallet, deposit_id, wallet_id
from domain.errors import Refused
from domain.ids import derive_id
from domain.links.change_plans import ChangeRequest
from domain.links.create import LinkRequest
from domain.links.importing import ImportedLinks
from domain.links.link import Link
from domain.links.network import ProviderPlan
from domain.lookups.bulk_commands import BulkRequest
from domain.lookups.bulk_job import BulkJob
from domain.lookups.single import LookupRequest
from tests.installation import PRICE_MICROS, numbers
from tests.plan_files import take_over
from tests.simulation.ledger import Ask, Kind, Ledger, Outcome
from tests.simulation.machine import Machine
from tests.simulation.template import Template
from tests.simulation.world import World

AGAIN = 0.3  # Of the requests with a key are sent once more.
KEYED = 0.7
ENDS = 0.15  # Of the steps of a run that ends links are followed by one.
CANCELS = 0.15  # Of the steps of a run that cancels jobs, and of what comes between others.
CANCELLED_OF = 3  # The jobs that were created last; those before them have mostly ended.
BOUGHT_AT = "2020-02-02T02:02:02Z"  # Before any clock that is wrong.
IMPORTS = 0.1  # Of the steps of a run that has taken a link over.
UNFINISHED = {"IDEMPOTENCY_IN_PROGRESS", "RATE_LIMITED", "SERVICE_UNAVAILABLE"}
NUMBERS = (*numbers(30), "+15005550001", "+15005550003", "+15005550004")
SIZES = (1, 3, 10, 30, 200)
LEFT_MICROS = 9_000  # Of a balance that somebody has spent: not enough for two lookups.


def outcome_of(job: BulkJob) -> Outcome:
    """Return which items of a job were completed and failed, and how many were cancelled."""
    return frozenset(job.completed), frozenset(job.failed), job.cancelled_count


class Customers:
    """Sends requests to any process; each either gets an answer or finds the process dead."""

    def __init__(self, world: World, template: Template) -> None:
        self._world, self._random = world, world.random
        self._template = template
        self._of_ends = Random(f"{world.seed}, ends")
        self._ends = self._of_ends.random() < 0.5
        self._of_jobs = Random(f"{world.seed}, jobs")
        self._cancels = self._of_jobs.random() < 0.5
        self._of_files = Random(f"{world.seed}, taken over")
        self._takes_over = self._of_files.random() < 0.5
        self._elsewhere: dict[str, Any] = {}  # The link of the file, if there is one.
        self.ledger = Ledger()

    def ask(self, kind: Kind) -> None:
        """Ask for something, perhaps once more for what was asked before."""
        before = [ask for ask in self.ledger.asked if ask.kind == kind and ask.key is not None]
        if before and self._random.random() < AGAIN:
            self.send(self._random.choice(before))
            return
        ask = self._new(kind)
        if ask is not None:
            self.send(ask)

    def send(self, ask: Ask) -> None:
        """Send a request and note the answer, if there is one."""
        machine = self._world.somebody()
        if machine is None:
            return
        self.ledger.asked.append(ask)
        had = ask in self.ledger.successes  # Else the refusal is that of an attempt before it.
        self._world.note(f"{machine.called} is asked: {ask}")
        try:
            told = self._world.live(machine, lambda: self._get(machine, ask))
        except Refused as refusal:
            self._world.note(f"{ask}: {refusal.code}{' for good' if refusal.is_bound else ''}")
            may_pass = refusal.code in UNFINISHED and not refusal.is_bound
            self.ledger.refuse(ask, refusal.code, may_be=not had or may_pass)
        else:
            self._world.note(f"{ask}: {told or 'no answer'}")
            if told is not None:
                self.ledger.tell(ask, told)

    def switch(self) -> None:
        """Suspend or reactivate a link."""
        target = self._random.choice(("suspended", "active"))

        def switched(machine: Machine, link_id: UUID) -> None:
            known = machine.log.get(Link, link_id)
            link = machine.link_status.run(known, target, machine.cause())
            assert link.status == target, f"link {link_id} is {link.status}, not {target}"

        self._with_link(f"make it {target}", switched)

    def finish(self) -> None:
        """End a link, or cancel it."""
        kind = self._of_ends.choice(("end", "cancel", "cancel"))

        def finished(machine: Machine, link_id: UUID) -> None:
            known, ending = machine.log.get(Link, link_id), machine.link_ending
            run = ending.cancel if kind == "cancel" else ending.end
            link = run(known, machine.cause())
            assert link.state == "ended", f"link {link_id} is {link.state}"

        self._with_link(f"{kind} it", finished, self._of_ends)

    def sometimes_finish(self) -> None:
        """Finish a link now and then in half of the runs; the others are as without it."""
        if self._ends and self._of_ends.random() < ENDS:
            self.finish()

    def sometimes_cancel(self) -> None:
        """Cancel a job now and then in half of the runs; the others are as without it."""
        jobs = self.ledger.of("job")[-CANCELLED_OF:]
        if self._cancels and jobs and self._of_jobs.random() < CANCELS:
            self._cancel(self._of_jobs.choice(jobs))

    def _cancel(self, job_id: UUID) -> None:
        """Cancel a job; once that is told, it stays as it was then."""
        machine = self._world.somebody()
        if machine is None:
            return
        owner = self._world.outside.log.get(BulkJob, job_id).organization_id
        run, cause, had = machine.bulk_cancel, machine.cause(), self.ledger.cancelled.get(job_id)
        self._world.note(f"{machine.called} is asked: job {job_id}: cancel the job")
        try:
            job = self._world.live(machine, lambda: run.run(run.find(owner, job_id), cause))
        except Refused as refusal:
            self._world.note(f"job {job_id}: {refusal.code}")
            if had is not None and refusal.code not in UNFINISHED:
                raise
        else:
            if job is not None:
                self.ledger.cancelled[job_id] = outcome_of(job)
                assert had in {None, outcome_of(job)}, f"job {job_id} was {had}"

    def take_over(self) -> None:
        """Take over a link that was issued elsewhere in half of the runs; then it is as sold.

        Only of a stock: an order brings its eSIM, so there is none to be issued elsewhere.
        """
        if not self._takes_over or self._world.simulator.shape != "stock":
            return
        owner = self._template.organizations[0]
        plan_id, called = next(iter(self._template.plans.items()))
        network, plan = self._world.simulator, ProviderPlan(called, 5_000, 30)
        iccid = network.available_esims(plan, None, "", page=0, timeout_s=1.0)[0].iccid
        link_id = derive_id("imported_link", network.name, iccid)
        made = network.create_endpoint(iccid, plan, "base", str(link_id), timeout_s=1.0)
        bought = {"plan_id": str(plan_id), "bought_at": BOUGHT_AT}
        entry = {"organization_id": str(owner), "iccid": iccid, "plans": [bought]}
        self._elsewhere = {**entry, "endpoint_id": made.endpoint_id}
        while not self._import():  # Whoever has no answer sends the file again.
            pass
        self.ledger.tell(Ask("link", owner, None, plan_id=plan_id), link_id)

    def sometimes_import(self) -> None:
        """Import the file of that link again now and then: it stays as it is."""
        if self._elsewhere and self._of_files.random() < IMPORTS:
            done = self._import()
            assert done is None or done.created == 0, "a link is taken over twice"

    def _import(self) -> ImportedLinks | None:
        machine = self._world.somebody()
        if machine is None:
            return None
        self._world.note(f"{machine.called} imports a link that was issued elsewhere")
        cause, entry = machine.cause(), self._elsewhere
        try:
            return self._world.live(machine, lambda: take_over(machine, cause, entry))
        except Refused as refusal:
            self._world.note(f"not imported: {refusal.code}")
            return None

    def read(self) -> None:
        """Read the live status of a link, which notes what is new of it."""

        def look(machine: Machine, link_id: UUID) -> None:
            machine.link_readings.read(machine.log.get(Link, link_id), machine.cause(), live=True)

        self._with_link("read it", look)

    def spend(self) -> None:
        """Let an organization run out of money."""
        organization_id = self._random.choice(self._template.organizations)
        machine = self._world.somebody()
        if machine is None:
            return
        held = self._world.outside.log.get(Wallet, wallet_id(organization_id)).balance_micros
        if held <= LEFT_MICROS:
            return
        self._world.note(f"{machine.called} takes all but {LEFT_MICROS} micros from a wallet")
        accounts, cause = machine.accounts, machine.cause()
        once = f"spent-{self._world.outside.log.head()}"
        try:
            self._world.live(
                machine,
                lambda: accounts.adjust(
                    organization_id, LEFT_MICROS - held, "spent", cause, reference=once
                ),
            )
        except Refused as refusal:
            self._world.note(f"not taken: {refusal.code}")

    def _with_link(
        self, wish: str, do: Callable[[Machine, UUID], None], random: Random | None = None
    ) -> None:
        links, machine = self.ledger.of("link"), self._world.somebody()
        if not links or machine is None:
            return
        link_id = (random or self._random).choice(links)
        self._world.note(f"{machine.called} is asked: link {link_id}: {wish}")
        try:
            self._world.live(machine, lambda: do(machine, link_id))
        except Refused as refusal:
            self._world.note(f"link {link_id}: {refusal.code}")

    def _new(self, kind: Kind) -> Ask | None:
        random = self._random
        organization_id = random.choice(self._template.organizations)
        key = f"{kind}-{len(self.ledger.asked)}" if random.random() < KEYED else None
        match kind:
            case "lookup":
                return Ask(kind, organization_id, key, numbers=(random.choice(NUMBERS),))
            case "job":
                count = random.choice(SIZES)
                chosen = tuple(random.sample(NUMBERS, min(count, len(NUMBERS))))
                chosen += tuple(numbers(count - len(chosen), 1_000))
                return Ask(kind, organization_id, key, numbers=chosen)
            case "link":
                plan_id = random.choice([*self._template.plans])
                return Ask(kind, organization_id, key, plan_id=plan_id)
            case "deposit":
                key = f"deposit-{len(self.ledger.asked)}"
                return Ask(kind, organization_id, key, amount_micros=random.randint(1, 20_000_000))
            case _:
                return self._new_change(key)

    def _new_change(self, key: str | None) -> Ask | None:
        links = self.ledger.of("link")
        if not links:
            return None
        link = self._world.outside.log.get(Link, self._random.choice(links))
        there = [each.id for each in link.current_activations]
        remove = tuple(each for each in there if self._random.random() < 0.3)
        add = tuple(self._random.choices([*self._template.plans], k=self._random.randint(0, 2)))
        if not remove and not add:
            return None
        return Ask("change", link.organization_id, key, link_id=link.id, remove=remove, add=add)

    def _get(self, machine: Machine, ask: Ask) -> UUID:
        """Run the command of a request; return the stream that holds its success."""
        owner, cause = ask.organization_id, machine.cause()
        match ask.kind:
            case "lookup":
                (number,) = ask.numbers
                lookup = LookupRequest(owner, number, PRICE_MICROS, "USD", ask.key)
                found = machine.single_lookup.run(lookup, cause)
                assert found.facts.phone_number == number
                return found.lookup.id
            case "job":
                job = BulkRequest(owner, ask.numbers, PRICE_MICROS, "USD", ask.key)
                return machine.bulk_create.run(job, cause)[0].id
            case "link":
                assert ask.plan_id is not None
                link = LinkRequest(owner, ask.plan_id, None, ask.key)
                return machine.link_create.run(link, cause)[0].id
            case "change":
                assert ask.link_id is not None
                change = ChangeRequest(owner, ask.link_id, ask.remove, ask.add, ask.key)
                return machine.link_plans.run(change, cause)[0].id
            case _:
                assert ask.key is not None
                machine.accounts.deposit(owner, ask.amount_micros, ask.key, cause)
                return deposit_id(owner, ask.key)
