"""Whatever fails, dies or comes late: links, their eSIMs and one wallet end in good order."""

import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast
from uuid import UUID, uuid4

import pytest
from hypothesis import note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from domain.errors import Conflict, Refused
from domain.link import Link
from domain.money import format_amount
from tests.domain.link_books import Books
from tests.domain.link_faults import (
    BUYING,
    CHANGING,
    CLEANING,
    SWITCHING,
    Fault,
    Others,
    Scarce,
    faults,
)
from tests.installation import Installation
from tests.seeds import Seed, SqliteSeed
from tests.workers.link_checks import check
from tests.workers.link_lab import Lab

LINKS_MAX = 8
PRICES = st.sampled_from(["4.00", "1.00", "0.00", "30.00"])
PLANS = st.sampled_from(["eu-1", "eu-2", "sandbox-lost-reply"])
STATUSES = st.sampled_from(["suspended", "active"])
SECONDS = st.sampled_from([5, 0.5, 2, 15, 40])
ADDITIONS = st.lists(st.tuples(PLANS, PRICES), max_size=3)


class LinkMachine(RuleBasedStateMachine):
    """Partners, workers, waiting requests and readers of one organization, in any order."""

    files: Seed

    @initialize()
    def begin(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._installation = Installation(
            Path(self._folder.name), like=self.files, NETWORK_BASE_PLAN="base-1"
        )
        self.lab = Lab(self._installation, "40.00")
        self.lab.late.inner = cast("Any", Scarce(self.lab.simulator))
        self.other = self.lab.other_process()
        self.books = Books(self.lab)
        self.lab.create()

    @precondition(lambda self: len(self.books.unended) < LINKS_MAX)
    @rule(plan=PLANS, price=PRICES, wrong=faults(*BUYING, *CLEANING))
    def buy(self, plan: str, price: str, wrong: list[Fault]) -> None:
        plan_id = self.lab.plan(plan, price)
        self._arm(wrong)
        self.lab.live(lambda: self.lab.work(self.lab.request(plan_id)))

    @rule(data=st.data(), plans=ADDITIONS, wrong=faults(*CHANGING))
    def change(self, data: st.DataObject, plans: list[tuple[str, str]], wrong: list[Fault]) -> None:
        link = self._draw_active(data)
        if link is None or link.open_change is not None:
            return
        there = [each.id for each in link.current_activations]
        places = data.draw(st.sets(st.sampled_from(range(len(there))), max_size=2)) if there else ()
        remove = [there[place] for place in sorted(places)]
        add = [self.lab.plan(*each) for each in plans]
        self._arm(wrong)
        if remove or add:
            self.lab.live(lambda: self._change(link.id, remove, add))

    @rule(data=st.data(), status=STATUSES, wrong=faults(*SWITCHING))
    def switch(self, data: st.DataObject, status: Any, wrong: list[Fault]) -> None:
        link = self._draw_active(data)
        self._arm(wrong)
        if link is not None and link.status_intent is None:  # Else it waits for the sweep.
            self.lab.live(lambda: self.lab.switch(link.id, status))

    @rule(data=st.data())
    def the_network_makes_a_link_inactive(self, data: st.DataObject) -> None:
        link = self._draw_active(data)
        if link is not None and link.endpoint_id is not None:
            self.lab.simulator.deactivate(link.endpoint_id)

    @rule(amount=st.integers(1, 20_000_000))
    def deposit(self, amount: int) -> None:
        process, payment = self.lab.process, str(uuid4())
        organization_id = self.lab.organization_id
        self.lab.live(
            lambda: process.accounts.deposit(organization_id, amount, payment, process.cause())
        )

    @rule(wrong=faults(*BUYING, *CHANGING, *CLEANING))
    def work(self, wrong: list[Fault]) -> None:
        """Let messages come again, for everything that has not ended."""
        self._arm(wrong)
        for link_id in self.books.unended:
            self.lab.live(lambda link_id=link_id: self.lab.work(link_id))  # type: ignore[misc]  # bound at once
        for change_id in self.books.open_changes:
            self.lab.live(lambda change_id=change_id: self.lab.work_change(change_id))  # type: ignore[misc]  # the same

    @rule(seconds=SECONDS, wrong=faults(*BUYING, *CHANGING, *CLEANING))
    def time_passes(self, seconds: float, wrong: list[Fault]) -> None:
        self.lab.clock.forward(seconds=seconds)
        self.lab.late.look()
        self._arm(wrong)
        self.lab.live(self.lab.sweep)

    @rule()
    def those_who_wait_give_up(self) -> None:
        self.lab.live(self._give_up)

    @invariant()
    def log_money_and_network_are_in_order(self) -> None:
        self.books.read_on()
        self.books.check_money()
        self.books.check_holders()
        assert self.lab.wallet.balance_micros == self.books.balance_micros

    def teardown(self) -> None:
        """Once nothing goes wrong any more, everything comes to its end by itself."""
        try:
            self._heal()
            self.lab.settle()
            self.books.read_on()
            check(self.lab, format_amount(self.books.paid_in_micros))
        finally:
            self._installation.close()
            self._folder.cleanup()

    def _arm(self, wrong: Sequence[Fault]) -> None:
        others: Others = {
            "a waiting request": self._give_up,
            "another worker": self._work_elsewhere,
            "a reader": self._read,
        }
        for fault in wrong:
            note(str(fault))
            fault.arm(self.lab, others)

    def _heal(self) -> None:
        """Let nothing go wrong from now on; what is late already still comes."""
        self.lab.late._delays.clear()  # noqa: SLF001  # Those of calls that were never made.
        self.lab.forget_faults()

    def _draw_active(self, data: st.DataObject) -> Link | None:
        links = [self.other.log.get(Link, each) for each in self.books.unended]
        active = [link for link in links if link.is_visible]
        return active[data.draw(st.integers(0, len(active) - 1))] if active else None

    def _change(self, link_id: UUID, remove: list[UUID], add: list[UUID]) -> None:
        try:
            change_id = self.lab.request_change(link_id, remove, add)
        except (Refused, Conflict):  # The money is short, or somebody was faster.
            return
        self.lab.work_change(change_id)

    def _give_up(self) -> None:
        for link_id in self.books.unended:
            self.lab.expire(link_id)
        for change_id in self.books.open_changes:
            self.lab.expire_change(change_id)

    def _work_elsewhere(self) -> None:
        for link_id in self.books.unended:
            self.other.provisioning.work(link_id)
        for change_id in self.books.open_changes:
            self.other.plan_changes.work(change_id)

    def _read(self) -> None:
        for link_id in self.books.unended:
            link, process = self.lab.link(link_id), self.lab.process
            if link.is_visible:
                process.link_readings.read(link, process.cause(), live=True)


def _new_id() -> UUID:
    """Return an id that is the same in each run of an example: which eSIM is tried follows it."""
    return UUID(int=random.getrandbits(128), version=4)


@pytest.fixture(autouse=True)
def _lab_of_the_machine(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run on SQLite alone: the test case that hypothesis makes takes no parameters."""
    LinkMachine.files = SqliteSeed(tmp_path_factory.mktemp("machine"))
    monkeypatch.setattr("tests.workers.link_lab.uuid4", _new_id)


TestLinks = LinkMachine.TestCase
TestLinks.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
