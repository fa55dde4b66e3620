"""Lives of links and their eSIMs, as workers and requests append them."""

from datetime import timedelta
from uuid import UUID, uuid4

from domain.errors import InsufficientBalance
from domain.esim import Esim, esim_id
from domain.link import Link
from domain.network import Endpoint, LinkStatus
from domain.wallet import Metadata, wallet_id
from tests.domain.build_links import LPA, PROFILE, bought
from tests.installation import Process
from tests.projections.link_entries import charge_of, refund_of

NETWORK = "simulated"
DEADLINE = timedelta(seconds=15)


class LinkLife:
    """One link from its request on; every step is what one transaction appends."""

    def __init__(self, process: Process, organization_id: UUID, price: str = "0.10") -> None:
        self.process = process
        self.id = uuid4()
        now = process.cause()
        link = Link.request(
            self.id,
            now,
            organization_id=organization_id,
            name=f"Van {self.id.hex[:3]}",
            plan=bought(price),
            sponsor_profiles=[PROFILE],
            currency="USD",
            deadline=now.at + DEADLINE,
        )
        process.log.append(link)

    @property
    def link(self) -> Link:
        return self.process.log.get(Link, self.id)

    def reserve(self, iccid: str) -> bool:
        """Take an eSIM and the price; False when the money is short, which fails the link."""
        link, now = self.link, self.process.cause()
        found = self.process.log.find(Esim, esim_id(NETWORK, iccid))
        esim = found or Esim.register(NETWORK, iccid, now)
        esim.reserve(self.id, now)
        link.reserve_esim(iccid, PROFILE, now)
        price = link.requested.price
        if price is None:
            self.process.log.append(link, esim)
            return True
        charge = charge_of("activation", self.id, price, self._metadata(link))
        wallet = wallet_id(link.organization_id)
        try:
            self.process.committer.commit(wallet, lambda w: w.charge(charge, now), link, esim)
        except InsufficientBalance as refusal:
            self.fail(refusal.code, dict(refusal.details))
            return False
        return True

    def begin(self) -> None:
        link, now = self.link, self.process.cause()
        link.request_endpoint(now.at + DEADLINE, now)
        self.process.log.append(link)

    def activate(self, *, adopted: bool = False) -> None:
        link = self.link
        addon_id = None if adopted else f"addon-{uuid4().hex[:8]}"
        assert link.iccid is not None
        endpoint = Endpoint(f"endpoint-{uuid4().hex[:8]}", link.iccid, str(self.id), addon_id)
        link.activate(endpoint, None if adopted else LPA, self.process.cause(), adopted=adopted)
        self.process.log.append(link)

    def live(self, iccid: str) -> "LinkLife":
        """Become active by the shortest way."""
        assert self.reserve(iccid)
        self.begin()
        self.activate()
        return self

    def fail(
        self,
        code: str = "PROVISIONING_ERROR",
        details: dict[str, str] | None = None,
        *,
        unknown: bool = False,
    ) -> None:
        """Give up, with the money back; `unknown` when the network may still make an endpoint."""
        link, now = self.link, self.process.cause()
        settled_at = now.at + DEADLINE if unknown else None
        price, others = link.requested.price, []
        refund = link.fail(code, details or {}, settled_at, now)
        if settled_at is not None and link.iccid is not None:
            esim = self._esim(link)
            esim.quarantine(self.id, settled_at, now)
            others.append(esim)
        if refund is None or price is None:
            self.process.log.append(link, *others)
            return
        back = refund_of("activation", self.id, refund, price, self._metadata(link))
        wallet = wallet_id(link.organization_id)
        self.process.committer.commit(wallet, lambda w: w.refund(back, now), link, *others)

    def remove_endpoint(self) -> None:
        link = self.link
        link.note_endpoint_removed("endpoint-late", self.process.cause())
        self.process.log.append(link)

    def release(self) -> None:
        link, now = self.link, self.process.cause()
        esim = self._esim(link)
        esim.release(self.id, now)
        link.note_esim_released(now)
        self.process.log.append(link, esim)

    def ask_for(self, status: LinkStatus) -> None:
        link, now = self.link, self.process.cause()
        link.request_status(status, now.at + DEADLINE, now)
        self.process.log.append(link)

    def settle(self, status: LinkStatus) -> None:
        link = self.link
        link.settle_status(status, self.process.cause())
        self.process.log.append(link)

    def see(self, status: LinkStatus, *, used: bool = False) -> None:
        link, now = self.link, self.process.cause()
        link.note_seen(status, now.at, now.at if used else None, now)
        if link.lpa is None:
            link.store_lpa(LPA, now)
        if link.pending_events:
            self.process.log.append(link)

    def _esim(self, link: Link) -> Esim:
        assert link.iccid is not None
        return self.process.log.get(Esim, esim_id(NETWORK, link.iccid))

    def _metadata(self, link: Link) -> Metadata:
        plan = link.requested.plan
        return {"link_id": str(self.id), "plan_id": str(plan.plan_id), "plan_name": plan.name}
