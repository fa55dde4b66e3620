"""Whatever may happen to links, by dice or once each: what `Life` lives of them."""

import random
from collections.abc import Sequence
from uuid import UUID, uuid4

from domain.link import Link
from domain.link_events import Stage
from domain.wallet import Wallet, wallet_id
from tests.installation import Process
from tests.projections.change_lives import ChangeLife
from tests.projections.fee_lives import charge_fee, owe
from tests.projections.link_lives import LinkLife

UNFINISHED = {Stage.REQUESTED, Stage.RESERVED, Stage.ENDPOINT_REQUESTED}


class LinkHappenings:
    """Links of one installation, each moved on by one step at a time."""

    def __init__(self, process: Process, dice: random.Random) -> None:
        self._process = process
        self._dice = dice
        self._links: list[LinkLife] = []
        self._changes: list[ChangeLife] = []
        self._free: list[str] = []  # ICCIDs of failed links.
        self._months: dict[UUID, int] = {}

    def go_on(self, organizations: Sequence[UUID]) -> None:
        """Let a few things happen, to links that are there or to new ones."""
        for _ in range(5):
            organization_id = self._dice.choice(organizations)
            happenings = [*[self.move] * 6, *[self.move_change] * 3]
            happenings += [lambda org=organization_id: self.request(org)]
            happenings += [lambda org=organization_id: self.owe(org)]
            self._dice.choice(happenings)()

    def request(self, organization_id: UUID, price: str = "") -> LinkLife:
        """Ask for a link; one without a wallet can only afford what is free."""
        wallet = self._process.log.find(Wallet, wallet_id(organization_id))
        chosen = price or self._dice.choice(["0", "0.02", "0.10"])
        life = LinkLife(self._process, organization_id, chosen if wallet is not None else "0")
        self._links.append(life)
        return life

    def move(self) -> None:
        """Bring some link one step further, well or badly."""
        if not self._links:
            return
        life = self._dice.choice(self._links[-4:])  # So that most come further than a request.
        link, dice = life.link, self._dice
        if link.stage in UNFINISHED and dice.random() < 0.1:
            life.fail(unknown=link.stage is Stage.ENDPOINT_REQUESTED and dice.random() < 0.7)
        elif link.stage is Stage.REQUESTED:
            life.reserve(self.iccid())
        elif link.stage is Stage.RESERVED:
            life.begin()
        elif link.stage is Stage.ENDPOINT_REQUESTED:
            dice.choice([life.begin, life.activate, lambda: life.activate(adopted=True)])()
        elif link.stage is Stage.FAILED:
            dice.choice([life.remove_endpoint, lambda: self.release(life)])()
        elif link.stage is Stage.ENDPOINT_REMOVED:
            self.release(life)
        elif link.stage is Stage.ACTIVE:
            self._use(life, link)

    def iccid(self) -> str:
        """Return the ICCID of an eSIM that is free: one of a failed link, or a new one."""
        return self._free.pop() if self._free else f"8988{uuid4().int % 10**15:015d}"

    def release(self, life: LinkLife) -> None:
        iccid = life.link.iccid
        assert iccid is not None
        life.release()
        self._free.append(iccid)

    def move_change(self) -> None:
        """Bring some plan change one step further, well or badly."""
        if not self._changes:
            return
        life = self._dice.choice(self._changes)
        change = life.change
        if change.finished_at is not None:
            return
        if change.failure is not None:
            life.finish()
        elif self._dice.random() < 0.2:
            life.fail(unknown=change.intent is not None and self._dice.random() < 0.7)
        elif change.intent is None or self._dice.random() < 0.2:
            life.start()
        else:
            life.do()

    def owe(self, organization_id: UUID) -> None:
        """Let the fee of one more month fall due, and pay it if the balance allows that."""
        links = [each.link for each in self._links]
        mine = [x.id for x in links if x.is_visible and x.organization_id == organization_id]
        if mine:
            month = self._months.get(organization_id, 0) + 1
            self._months[organization_id] = month
            fee = owe(self._process, organization_id, f"{2026 + month}-02", mine)
            if self._dice.random() < 0.8:
                charge_fee(self._process, fee)

    def one_of_each(self, organization_id: UUID) -> None:
        """Live through everything that can become of a link, whatever the dice have said."""
        link_id = self._live(organization_id)
        self._fail(organization_id)
        self._change_plans(organization_id)
        self.request(organization_id, "0.10")  # It stays unfinished.
        charge_fee(self._process, owe(self._process, organization_id, "2026-01", [link_id]))
        owe(self._process, organization_id, "2026-02", [link_id])

    def _live(self, organization_id: UUID) -> UUID:
        life = self.request(organization_id, "0.10").live(self.iccid())
        life.ask_for("suspended")
        life.settle("suspended")
        life.ask_for("active")
        life.settle("active")
        life.ask_for("suspended")
        life.settle("active")
        life.see("inactive", used=True)
        adopted = self.request(organization_id, "0")
        adopted.reserve(self.iccid())
        adopted.begin()
        adopted.begin()
        adopted.activate(adopted=True)
        adopted.see("active")
        return life.id

    def _fail(self, organization_id: UUID) -> None:
        self.request(organization_id, "0.10").fail()
        known = self.request(organization_id, "0.10")
        known.reserve(self.iccid())
        known.fail()
        self.release(known)
        late = self.request(organization_id, "0.10")
        late.reserve(self.iccid())
        late.begin()
        late.fail(unknown=True)
        late.remove_endpoint()
        self.release(late)
        poor = self.request(organization_id, "1000.00")
        assert not poor.reserve(self.iccid())

    def _change_plans(self, organization_id: UUID) -> None:
        life = self.request(organization_id, "0.10").live(self.iccid())
        (first,) = life.link.activations
        ChangeLife(life, [first], "0.02", "0").do_all()
        half = ChangeLife(life, [], "0.02", "0.03", "0.03")
        half.start()
        half.do()
        half.fail()
        (second, *_) = (each.id for each in life.link.current_activations)
        late = ChangeLife(life, [second], "0.02")
        late.start()
        late.fail(unknown=True)
        late.do()  # The removal was done after all.
        lost = ChangeLife(life, [], "0.02")
        lost.start()
        lost.fail(unknown=True)
        lost.finish()

    def _use(self, life: LinkLife, link: Link) -> None:
        dice = self._dice
        uses = [
            lambda: life.see(dice.choice(["active", "suspended", "inactive"]), used=True),
            lambda: life.ask_for(dice.choice(["active", "suspended"])),
        ]
        if link.status_intent is not None:
            uses.append(lambda: life.settle(dice.choice(["active", "suspended", "inactive"])))
        if link.open_change is None:
            uses.append(lambda: self._change(life, link))
        dice.choice(uses)()

    def _change(self, life: LinkLife, link: Link) -> None:
        current = [each.id for each in link.current_activations]
        remove = self._dice.sample(current, self._dice.randrange(len(current) + 1))
        prices = [self._dice.choice(["0", "0.02"]) for _ in range(self._dice.randrange(3))]
        wallet = self._process.log.find(Wallet, wallet_id(link.organization_id))
        if remove or prices:
            paid = prices if wallet is not None else ["0"] * len(prices)
            self._changes.append(ChangeLife(life, remove, *paid))
