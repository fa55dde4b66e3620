"""Each consumer of the log is killed at calls spread over all that it does: nothing is lost.

Nor is anything doubled but messages. So are a rebuild, the audit of the night with its checkpoint,
and an export. A call is one to a database, or a message that is published.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from uuid import UUID, uuid4

import msgspec
import pytest
from sqlalchemy import select

from domain.links.create import LinkRequest
from domain.log.log import decoded
from domain.lookups.bulk_job import BulkJob
from domain.webhooks.commands import Draft
from domain.webhooks.messages import NAMED_ONLY
from domain.webhooks.ports import message_id
from projections.audit.auditor import verify
from projections.audit.export import read_export
from projections.audit.tree import leaf_hash, root_of
from tests.app.cli.shell import shell_of
from tests.faults.consuming import PUBLISHED, WORKS
from tests.faults.failpoints import ARMED, Failpoint, Failpoints
from tests.house.running import Served
from tests.installation import Installation, numbers, wait_until
from tests.plan_files import make_demo
from tests.projections.histories import Life, run_on_log, write_row
from tests.projections.looking import failures, places, rows
from tests.seeds import Seed
from tests.servers.running import free_port
from tests.support import warm
from workers.routes import messages_for

POINTS = 20
POISONED = 3  # Kills of each while an event that nobody can read is before it.
NEVER, DEAD = 10**9, -9
DECODING = ("projector", "dispatcher", "webhooks")
HIDDEN = "http://127.0.0.1:9/"  # Nobody answers there.


class Killer:
    """An installation whose consumers run in processes of their own, one at a time."""

    def __init__(self, installation: Installation) -> None:
        self.installation, self.process = installation, installation.process()
        self.directory, process = installation.directory, self.process
        self.file = self.directory / "log.jsonl"
        (self.directory / ARMED).mkdir()
        self.failpoints = Failpoints(self.directory / ARMED)
        self.works: Mapping[str, Sequence[str]] = {
            **{name: [name] for name in WORKS},
            "projections": ["projections", "rebuild", "--all"],
            "audit": ["audit", "export", "--format", "jsonl", "--out", str(self.file)],
        }
        process.webhook_key.ensure()
        self.calls, self.kills = Counter[str](), Counter[str]()
        self.owner, self.life = make_demo(process).organization, Life(process, 7)
        self.plan = process.ask(process.plans.all)[0].id
        for events in (None, ["job.finished"]):
            draft = Draft(self.owner, HIDDEN, None, events, None)
            process.webhooks.register(draft, process.cause())
        self.jobs, self.links = list[UUID](), list[UUID]()

    def live(self, steps: int = 10) -> None:
        """Let happen what chance brings, then as much as each time."""
        process, count = self.process, len(self.jobs)
        self.life.go_on(steps)
        process.accounts.deposit(self.owner, 10_000_000, f"bank-{count}", process.cause())
        for turn in range(6):
            process.look_up(self.owner, numbers(1, 10 * count + turn)[0])
            process.finish_job(process.create_job(self.owner, numbers(2, turn)))
        self.jobs.append(process.create_job(self.owner, numbers(2)))
        request = LinkRequest(self.owner, self.plan, None, None, waits=False)
        self.links.append(process.link_create.run(request, process.cause())[0].id)

    def live_for(self, role: str, steps: int) -> None:
        """Live, and let read models be up to date: the planner never passes them."""
        self.live(steps)
        if role != "projector":
            self.process.projector.catch_up()

    def run(self, role: str) -> int:
        """Let one process do its work; return its exit status."""
        environment = shell_of(self.installation).process_environment
        environment["FAULTS_DIRECTORY"] = str(self.directory)
        return warm.start(self.works[role], environment, "tests.faults.consuming").wait(60)

    def kill(self, role: str, times: int, steps: int = 10) -> None:
        """Kill it so many times, at calls spread over what it does for what has happened."""
        here = Failpoint(role, "call", "before")
        self.run(role)
        self.live_for(role, 0)
        self.failpoints.arm(here, NEVER)
        self.run(role)
        calls = self.failpoints.passages(here)
        self.calls[role] = max(calls, self.calls[role])
        for number in range(times):
            self.live_for(role, steps)
            self.failpoints.arm(here, 1 + calls * number // times)
            while self.run(role) != DEAD:  # This time there was less to do; the next passes it.
                self.live_for(role, steps)
            self.kills[role] += 1

    def catch_up(self, *roles: str) -> None:
        for role in roles:
            assert self.run(role) == 0, role


@pytest.fixture
def killer(tmp_path: Path, migrated: Seed) -> Iterator[Killer]:
    changes = {"PORT": str(free_port()), "WEBHOOKS_ALLOW_PRIVATE": "true", "CHECKPOINT_LAG_S": "0"}
    installation = Installation(tmp_path, like=migrated, **changes)
    yield Killer(installation)
    installation.close()


@pytest.mark.soak  # Some 250 processes; quicker: test_consumer, with a consumer of each mode.
@pytest.mark.timeout(3_600)
def test_wherever_a_consumer_is_killed_the_next_one_loses_and_doubles_nothing(
    killer: Killer, capsys: pytest.CaptureFixture[str]
) -> None:
    killer.catch_up(*killer.works)
    dispatched_from = places(killer.process)["dispatcher"]
    for role in killer.works:
        killer.kill(role, POINTS)
    poison(killer)
    killer.catch_up(*killer.works)
    check_log(killer)
    check_deliveries(killer)
    doubled = check_messages(killer, dispatched_from)
    check_work(killer)
    with capsys.disabled():
        print(f"\ncalls {killer.calls}, kills {killer.kills}, messages twice: {doubled}")  # noqa: T201  # Figures for whoever measures.


def poison(killer: Killer) -> None:
    """Nobody passes an event that cannot be read, however often killed; then it is gone."""
    process = killer.process
    killer.catch_up(*DECODING)
    position = write_row(process, uuid4().hex, 1, "nobody.knows", b"{}")
    before = rows(process)
    for role in DECODING:
        killer.kill(role, POISONED, steps=0)
    assert killer.run("projections") == 1
    assert rows(process) == before
    behind = {name: at for name, at in places(process).items() if name != "audit_tree"}
    assert max(behind.values()) < position
    assert {f"position {position}" in each for each in failures(process).values()} == {True}
    run_on_log(
        process, "DELETE FROM {table} WHERE {position} = ? RETURNING {position}", (position,)
    )


def check_log(killer: Killer) -> None:
    """Read models are as rebuilt; leaves, checkpoints, tree and export are those of the log."""
    process, log = killer.process, killer.process.log
    parts = (log, process.views, process.positions, process.models)
    assert verify(*parts, witnesses=process.witnesses()).failures == []
    night = process.notes.newest("audit")
    assert night is not None
    assert msgspec.json.decode(night.value)["failures"] == []
    stored = log.stored(0, 100_000)
    leaves = [leaf_hash(*each) for each in stored]
    kept = process.read(process.kept_tree.range_of, len(leaves))
    assert kept.root() == root_of(leaves)
    with killer.file.open("rb") as file:
        assert [leaf_hash(*each) for each in read_export(file)] == leaves


def check_deliveries(killer: Killer) -> None:
    """There is one of each message that an endpoint wants."""
    process, deliveries = killer.process, killer.process.webhook_deliveries
    messages = process.webhook_messages.rows.c
    wanted = select(messages).where(messages.organization_id == killer.owner)
    with process.views.reading() as connection:
        told = connection.execute(wanted).all()
        endpoints = process.webhook_endpoints.all(connection, killer.owner)
        found = connection.execute(select(deliveries.metadata.tables["webhook_deliveries"])).all()
    expected = [
        message_id(each.id, row.stream_id, row.version, row.type)
        for row in told
        for each in endpoints
        if row.position > each.since and row.type in (each.events or {row.type} - NAMED_ONLY)
    ]
    assert sorted(each.id for each in found) == sorted(expected)


def check_messages(killer: Killer, after: int) -> int:
    """Each message that an event asks for was published; return how many came twice."""
    asked = Counter(
        f"{message.actor} {message.arguments}"
        for row in killer.process.log.stored(after, 100_000)
        for message in messages_for(decoded(row).event)
    )
    lines = (killer.directory / PUBLISHED).read_text().splitlines()
    published = Counter(each for each in lines if not each.startswith("tell_endpoint"))
    assert not asked - published
    assert not published.keys() - asked.keys()
    return (published - asked).total()


def check_work(killer: Killer) -> None:
    """Every job and link ends, in a service that begins where all this was left."""
    log, due_list = killer.process.log, killer.process.due_list
    with closing(Served(shell_of(killer.installation), "serve").comes_up()):
        wait_until(lambda: all(log.get(BulkJob, each).finished_at for each in killer.jobs), 60)

        def left() -> set[UUID]:
            with killer.process.views.reading() as connection:
                return {*connection.execute(select(due_list.rows.c.id)).scalars()}

        wait_until(lambda: not left() & {*killer.links}, 60)
    killer.process.projector.catch_up()
    parts = killer.process
    assert parts.audit().failures == []
