"""Histories for read models and the auditor: lived by commands, or forged event by event."""

import random
from datetime import date
from uuid import UUID

from sqlalchemy import text

from domain.accounts.organization import ApiClient, Organization
from domain.cause import Cause
from domain.errors import NumberLookupUnavailable, Refused
from domain.log.aggregate import Event
from domain.lookups.bulk_job import BulkJob
from tests.installation import Process, numbers
from tests.plan_files import covering, import_plans, plan, profile
from tests.projections.link_happenings import LinkHappenings

DOWN = "+15005550001"  # The sandbox number that no lookup answers.


def forge(process: Process, *events: Event) -> list[int]:
    """Write events as they are, past every decision and check; return their positions."""
    return [
        write_row(process, each.originator_id.hex, each.originator_version, each.topic, each.state)
        for each in map(process.log.mapper.to_stored_event, events)
        if isinstance(each.originator_id, UUID)
    ]


def write_row(process: Process, stream: str, version: int, topic: str, state: bytes) -> int:
    """Insert a row of the log as a foreign program would; return its position."""
    return run_on_log(
        process,
        "INSERT INTO {table} (originator_id, originator_version, topic, state)"
        " VALUES (?, ?, ?, ?) RETURNING {position}",
        (stream, version, topic, state),
    )


def run_on_log(process: Process, statement: str, values: tuple[object, ...]) -> int:
    """Run a statement on the table of the log past the application; return the one number."""
    database = process.vault.database  # The keys lie in the database of the log.
    names = {"table": "log_events", "position": "notification_id"}
    if database.engine.dialect.name == "sqlite":
        names = {"table": "stored_events", "position": "rowid"}
    else:
        statement = statement.replace("?", "%s")
    with database.writing() as connection:
        return int(connection.exec_driver_sql(statement.format(**names), values).scalar_one())


def leave_out(process: Process, positions: int = 1_000_000_000) -> None:
    """Skip positions, as each promotion of a standby does."""
    database, head = process.vault.database, process.log.head()
    skip = "SELECT setval('log_events_notification_id_seq', :to)"
    if database.engine.dialect.name == "sqlite":
        skip = "UPDATE sqlite_sequence SET seq = :to WHERE name = 'stored_events'"
    with database.writing() as connection:
        connection.execute(text(skip), {"to": head + positions})


class Life:
    """Whatever may happen to an installation, in an order that a seed decides."""

    def __init__(self, process: Process, seed: int) -> None:
        self._process = process
        self._dice = random.Random(seed)
        self._organizations = [process.organization("1.00", f"First {seed}")]
        self._clients = [process.client(None)]
        self._jobs: list[UUID] = []
        self._links = LinkHappenings(process, self._dice)
        import_plans(process, plan("First", excluded_organizations=[str(self._organizations[0])]))

    def go_on(self, steps: int) -> None:
        happenings = (
            self._register,
            self._change,
            self._touch_client,
            self._pay,
            self._look_up,
            self._look_up,
            self._create_job,
            self._work,
            self._work,
            self._cancel,
            self._import,
            self._live_links,
            self._live_links,
            self._live_links,
        )
        for _ in range(steps):
            try:
                self._dice.choice(happenings)()
            except (Refused, NumberLookupUnavailable):
                continue  # No money left, or the provider is down: that is life, too.

    def finish(self) -> None:
        """Let the jobs end but for new ones, and everything happen to links that can."""
        owner = self._process.organization("10.00", "Hasty")
        two = [self._process.create_job(owner, numbers(3)) for _ in range(2)]  # One is erased.
        for job_id in self._jobs + two:
            self._process.finish_job(job_id)
        self._process.cancel_job(self._process.create_job(owner, numbers(260)))
        self._give_back(owner)
        self._process.create_job(self._process.organization("1.00", "Busy"), numbers(3))
        fleet = self._process.organization("10.00", "Fleet")
        self._links.one_of_each(fleet)
        for each in (*self._organizations[1::2], fleet):  # Some of their links live on.
            self._process.change(each, lambda it, cause: it.record(it.SandboxReset, cause))
        self._links.one_of_each(fleet)

    def _register(self) -> None:
        amount = self._dice.choice(["", "0", "2.50"])
        organization_id = self._process.organization(amount, f"Number {self._dice.random()}")
        self._organizations.append(organization_id)
        self._clients.append(self._process.client(organization_id))

    def _change(self) -> None:
        dice = self._dice

        def change(organization: Organization, cause: Cause) -> None:
            organization.change_status(dice.choice(["active", "suspended", "inactive"]), cause)
            organization.change_price(dice.choice([None, 0, 7_000]), cause)
            organization.change_monthly_link_fee(dice.choice([0, 1_000_000]), cause)
            organization.switch_lookup(cause, enabled=dice.random() < 0.5)

        self._process.change(dice.choice(self._organizations), change)

    def _touch_client(self) -> None:
        cause, dice = self._process.cause(), self._dice

        def change(client: ApiClient) -> None:
            if client.revoked or dice.random() < 0.2:
                client.revoke(cause)
            else:
                client.rotate_secret(f"{dice.random()}", cause)

        self._process.accounts.change_client(dice.choice(self._clients), change)

    def _pay(self) -> None:
        organization_id = self._dice.choice(self._organizations)
        if self._dice.random() < 0.5:
            reference = f"bank-{self._dice.randrange(10**9)}"
            self._process.deposit(organization_id, "0.5", reference)
        else:
            amount = self._dice.choice([-100_000, 250_000])
            once = f"correction-{self._process.log.head()}"
            self._process.adjust(organization_id, amount, reference=once)

    def _give_back(self, owner: UUID) -> None:
        """Pay out, reverse a deposit that was spent, and pay what is owed since then."""
        accounts, cause = self._process.accounts, self._process.cause()
        facts = {"reason": "why", "value_date": date(2026, 2, 27)}
        accounts.move("deposit", owner, 200_000, "spent", cause)
        left = accounts.wallet(owner).balance_micros - 50_000
        accounts.move("payout", owner, left, "out-1", cause, **facts)
        accounts.move("reversal", owner, None, "back-1", cause, deposit="spent", **facts)
        for reference in ("a part", "the rest"):
            accounts.move("deposit", owner, 100_000, reference, cause)

    def _look_up(self) -> None:
        number = self._dice.choice([*numbers(5), DOWN])
        self._process.look_up(self._dice.choice(self._organizations), number)

    def _create_job(self) -> None:
        wanted = numbers(self._dice.choice([1, 3, 260]), start=self._dice.randrange(1_000))
        if self._dice.random() < 0.5:
            wanted = [*wanted, DOWN]
        organization_id = self._dice.choice(self._organizations)
        self._jobs.append(self._process.create_job(organization_id, wanted))

    def _import(self) -> None:
        dice = self._dice
        owner, hidden_from = (str(dice.choice(self._organizations)) for _ in range(2))
        for name in ("First", "Second", "Third"):
            changes = {
                "retail_price": f"{dice.randrange(9)}",
                "coverage": covering(*dice.sample(["DE", "FR", "US", "JP"], 2)),
                "sponsor_profiles": [profile(f"sp-{dice.randrange(3)}")],
                "enabled": dice.random() < 0.5,
            }
            if name == "Third":
                changes["organization_id"] = owner
            elif name == "Second":
                changes["excluded_organizations"] = dice.choice([[], [hidden_from]])
            import_plans(self._process, plan(name, **changes))

    def _live_links(self) -> None:
        self._links.go_on(self._organizations)

    def _work(self) -> None:
        if self._jobs:
            job_id = self._dice.choice(self._jobs)
            self._process.bulk_lookup.work(job_id, self._dice.randrange(2))

    def _cancel(self) -> None:
        if self._jobs:
            job = self._process.log.get(BulkJob, self._dice.choice(self._jobs))
            self._process.cancel_job(job.id)
