"""Whatever may happen to links, by dice or once each: what `Life` lives of them."""

import random
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from uuid import UUID

from domain.accounts.organization import Organization
from domain.accounts.wallet import Wallet, wallet_id
from domain.errors import InsufficientBalance
from domain.links.link import Link, Stage
from domain.links.network import LinkStatus
from domain.months import first_instant, month_of, next_month
from tests.installation import Process
from tests.projections.link_steps import SOON, ChangeSteps, LinkSteps, bought, charge_fee, owe

UNFINISHED = {Stage.REQUESTED, Stage.RESERVED, Stage.ENDPOINT_REQUESTED}


class LinkHappenings:
    """Links of one installation, each moved on by one step at a time."""

    def __init__(self, process: Process, dice: random.Random) -> None:
        self._process = process
        self._dice = dice
        self._links: list[LinkSteps] = []
        self._changes: list[ChangeSteps] = []
        self._free: list[str] = []  # ICCIDs of failed links.
        self._months: dict[UUID, str] = {}  # The newest with a fee.

    def go_on(self, organizations: Sequence[UUID]) -> None:
        """Let a few things happen, to links that are there or to new ones."""
        for _ in range(5):
            organization_id = self._dice.choice(organizations)
            happenings = [*[self.move] * 6, *[self.move_change] * 3]
            happenings += [lambda org=organization_id: self.request(org)]
            happenings += [lambda org=organization_id: self.owe(org)]
            self._dice.choice(happenings)()

    def request(self, organization_id: UUID, price: str = "") -> LinkSteps:
        """Ask for a link; one without a wallet can only afford what is free."""
        wallet = self._process.log.find(Wallet, wallet_id(organization_id))
        chosen = price or self._dice.choice(["0", "0.02", "0.10"])
        plan = bought(price=chosen if wallet is not None else "0")
        life = LinkSteps(self._process, organization_id, f"Van {len(self._links)}", plan)
        self._links.append(life)
        return life

    def move(self) -> None:
        """Bring some link one step further, well or badly."""
        if not self._links:
            return
        life = self._dice.choice(self._links[-4:])  # So that most come further than a request.
        link, dice = life.link, self._dice
        if link.stage in UNFINISHED and dice.random() < 0.1:
            unknown = link.stage is Stage.ENDPOINT_REQUESTED and dice.random() < 0.7
            life.fail(self._soon() if unknown else None)
        elif link.stage is Stage.REQUESTED:
            self._reserve(life)
        elif link.stage is Stage.RESERVED:
            life.begin()
        elif link.stage is Stage.ENDPOINT_REQUESTED:
            adopt = partial(life.activate, None, None, adopted=True)
            dice.choice([life.begin, life.activate, adopt])()
        elif link.stage is Stage.FAILED:
            dice.choice([life.remove_endpoint, lambda: self.release(life)])()
        elif link.stage is Stage.ENDPOINT_REMOVED:
            self.release(life)
        elif link.stage is Stage.ACTIVE:
            self._use(life, link)

    def _reserve(self, life: LinkSteps) -> None:
        """Take an eSIM of a failed link, or a new one; a link that cannot be paid fails."""
        try:
            life.reserve(self._free.pop() if self._free else "")
        except InsufficientBalance as refusal:
            life.fail(code=refusal.code)

    def _soon(self) -> datetime:
        return self._process.clock() + SOON

    def release(self, life: LinkSteps) -> None:
        iccid = life.link.iccid
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
            unknown = change.intent is not None and self._dice.random() < 0.7
            life.fail(self._soon() if unknown else None)
        elif change.intent is None or self._dice.random() < 0.2:
            life.start()
        else:
            life.do()

    def owe(self, organization_id: UUID) -> None:
        """Let the fee of one more month fall due, and pay it if the balance allows that."""
        self._owe(organization_id, charge_fee if self._dice.random() < 0.8 else owe)

    def _owe(self, organization_id: UUID, fall_due: Callable[..., object]) -> None:
        """Let the fee of the next month to come fall due, as it will if nothing changes."""
        process = self._process
        organization = process.log.get(Organization, organization_id)
        if organization.status != "active":
            return
        fee = organization.monthly_link_fee_micros or 10_000
        month = next_month(self._months.get(organization_id) or month_of(process.clock()))
        links = process.ask(process.links.active_at, organization_id, first_instant(month))
        if links:
            process.change(
                organization_id, lambda it, cause: it.change_monthly_link_fee(fee, cause)
            )
            self._months[organization_id] = month
            fall_due(process, organization_id, month, links, fee_micros=fee)

    def one_of_each(self, organization_id: UUID) -> None:
        """Live through everything that can become of a link, whatever the dice have said."""
        self._live(organization_id)
        self._fail(organization_id)
        self._change_plans(organization_id)
        self._finish(organization_id)
        self.request(organization_id, "0.10")  # It stays unfinished.
        self._owe(organization_id, charge_fee)
        self._owe(organization_id, owe)

    def _live(self, organization_id: UUID) -> UUID:
        life = self.request(organization_id, "0.10").activate()
        life.switch("suspended").switch("active").intend("suspended").settle("active")
        now = self._process.clock()
        life.see("inactive", now, now)
        life.tell(81).tell(100, self._soon())
        adopted = self.request(organization_id, "0").reserve().begin().begin()
        adopted.activate(None, None, adopted=True).see("active", now).store_lpa()
        return life.id

    def _fail(self, organization_id: UUID) -> None:
        self.request(organization_id, "0.10").fail()
        self.release(self.request(organization_id, "0.10").reserve().fail())
        late = self.request(organization_id, "0.10").reserve().begin().fail(self._soon())
        self.release(late.remove_endpoint())
        poor = self.request(organization_id, "1000.00")
        self._reserve(poor)
        assert poor.link.failure is not None

    def _change_plans(self, organization_id: UUID) -> None:
        life = self.request(organization_id, "0.10").activate()
        (first,) = life.link.activations
        free, cheap = bought(price="0"), bought(price="0.02")
        life.change([first], [cheap, free]).do_all()
        life.change([], [cheap, cheap, cheap]).do().fail().finish()
        (second, *_) = (each.id for each in life.link.current_activations)
        # The removal was done after all.
        life.change([second], [cheap]).start().fail(self._soon()).do()
        life.change([], [cheap]).start().fail(self._soon()).finish()

    def _finish(self, organization_id: UUID) -> None:
        gone = self.request(organization_id, "0.10").activate().rename("Lorry").rename(None)
        gone.change([], [bought(price="0.02"), bought(price="0.02")]).do_all()
        gone.intend_end("cancel").keep().intend_end("cancel").finish().rename("Gone")
        self.request(organization_id, "0.10").activate().switch("suspended").finish()

    def _use(self, life: LinkSteps, link: Link) -> None:
        dice = self._dice
        if link.calling is Link.EndRequested:
            dice.choice([life.keep, life.finish])()
            return
        uses = [
            lambda: self._see(life, dice.choice(["active", "suspended", "inactive"])),
            lambda: life.intend(dice.choice(["active", "suspended"])),
        ]
        if link.open_call is not None:
            uses.append(lambda: life.settle(dice.choice(["active", "suspended", "inactive"])))
        if link.open_change is None:
            uses.append(lambda: self._change(life, link))
        if link.may_record(Link.EndRequested):
            uses.append(lambda: life.intend_end(dice.choice(["cancel", "end"])))
            uses.append(lambda: life.rename(dice.choice([None, "Van", "Lorry"])))
        dice.choice(uses)()

    def _change(self, life: LinkSteps, link: Link) -> None:
        current = [each.id for each in link.current_activations]
        remove = self._dice.sample(current, self._dice.randrange(len(current) + 1))
        prices = [self._dice.choice(["0", "0.02"]) for _ in range(self._dice.randrange(3))]
        wallet = self._process.log.find(Wallet, wallet_id(link.organization_id))
        if remove or prices:
            paid = prices if wallet is not None else ["0"] * len(prices)
            add = [bought(f"Top-up {price}", price) for price in paid]
            self._changes.append(life.change(remove, add))

    def _see(self, life: LinkSteps, status: LinkStatus) -> None:
        now = self._process.clock()
        life.see(status, now, now)
        if life.link.lpa is None:
            life.store_lpa()
