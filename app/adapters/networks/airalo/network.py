"""The adapter of Airalo, Partner API v2: an order network that keeps our reference.

Our reference is the `description` of an order, by which we find an order whose reply was lost. The
ICCID is the id of the endpoint. Airalo cannot suspend an eSIM, remove a package or take back an
order through its API.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, Literal
from urllib.parse import quote

from app.adapters.networks.airalo import wire
from app.adapters.networks.wire import moment
from app.adapters.remote.api import RemoteApi
from app.adapters.remote.exchange import (
    Malformed,
    OddRecord,
    Reply,
    blames_the_request,
    decode,
    time_left,
)
from app.adapters.remote.login import Login, LoginRefused, bearer
from domain.catalogue.supplied import Supplied
from domain.cause import Clock
from domain.cost import ProviderBalance
from domain.links.network import (
    ActivationCode,
    Addon,
    Capability,
    NetworkStatus,
    NoActivationCode,
    NoSuchEndpoint,
    Order,
    OrderNetwork,
    ProviderPlan,
    Usage,
)
from domain.provider_errors import (
    OutcomeNotStated,
    OutcomeUnknown,
    ProviderError,
    Rejected,
    Unavailable,
    becoming,
)

# Airalo does not say how long an order may take. It has another call for longer orders.
SETTLES_AFTER = timedelta(minutes=10)
ORDERS_PER_PAGE = 100
ORDER_PAGES_MAX = 20  # 2,000 orders in the days since an intent; more are not searched.
AREAS_PER_PAGE = 20
CATALOGUE_PAGES_MAX = 100

OK = HTTPStatus.OK
# The statuses of a change that was made, even if the rest of the reply cannot be read.
DONE = range(200, 300)
MEANINGS: Mapping[int | None, type[ProviderError]] = {
    13: Unavailable,  # Maintenance at the operator: "try again later".
    53: OutcomeUnknown,  # "Something unexpected happened": the change may have been made.
}
OURS = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}  # Airalo refuses our account or address.

ACCOUNT_REFUSED = "Airalo refuses our account; check AIRALO_CLIENT_ID and its allowed addresses"
OTHER_ORDER = "Airalo does not tell of the order that was placed, at $.data"


class Session:
    """Calls with a login that all threads of a process share. 401 means that nothing was done."""

    def __init__(self, api: RemoteApi, client_id: str, client_secret: str) -> None:
        self._api = api
        self._form = {"client_id": client_id, "client_secret": client_secret}
        self._form["grant_type"] = "client_credentials"
        self._login = Login("Airalo", self._log_in, bearer, _is_refused)

    def read(
        self,
        path: str,
        timeout_s: float,
        query: Mapping[str, str] | None = None,
        api: RemoteApi | None = None,
    ) -> Reply:
        send = (api or self._api).read
        return self._authorized(send, timeout_s, method="GET", path=path, query=query)

    def change(self, path: str, timeout_s: float, body: Mapping[str, Any]) -> Reply:
        return self._authorized(self._api.change, timeout_s, method="POST", path=path, json=body)

    def _authorized(self, send: Callable[..., Reply], timeout_s: float, **parts: Any) -> Reply:
        reply = self._login.call(send, time_left(timeout_s), **parts)
        if _is_refused(reply):
            self._login.pause(ACCOUNT_REFUSED)
        if reply.status in OURS:
            raise Unavailable(ACCOUNT_REFUSED)
        return reply

    def _log_in(self, timeout_s: float) -> str:
        try:
            reply = self._api.change("POST", "/token", form=self._form, timeout_s=timeout_s)
        except OutcomeUnknown as error:  # A login that nobody uses does no harm.
            raise Unavailable(str(error)) from error
        if reply.status != OK:
            raise LoginRefused(ACCOUNT_REFUSED)
        return decode(reply, str, "data", "access_token")


class Airalo(OrderNetwork):
    """An order network over Airalo's Partner API, which decides on refunds by hand, after days.

    `packages` is a second client of the same API, for reading the packages of eSIMs. Airalo limits
    these reads per eSIM, so a 429 there must not hold up purchases.
    """

    name = "airalo"
    remote = True
    shape: Literal["order"] = "order"
    stores_reference = True
    adds_once = False
    background_reads_per_s = 4.0  # It publishes no limit for all eSIMs together.
    settles_after = SETTLES_AFTER
    capabilities: frozenset[Capability] = frozenset()

    def __init__(self, session: Session, packages: RemoteApi, clock: Clock) -> None:
        self._session = session
        self._packages = packages
        self._clock = clock

    def probe(self, *, timeout_s: float) -> None:
        """Read our balance, which costs nothing."""
        self.balance(timeout_s=timeout_s)

    def balance(self, *, timeout_s: float) -> ProviderBalance | None:
        reply = _answer(self._session.read("/balance", timeout_s))
        return decode(reply, wire.Balances, "data").balance

    def supplied(self, *, timeout_s: float) -> Iterator[Supplied]:
        """Return the packages for new eSIMs, by their net price in USD."""
        for page in range(1, CATALOGUE_PAGES_MAX + 1):
            query = {"limit": str(AREAS_PER_PAGE), "page": str(page)}
            reply = _answer(self._session.read("/packages", timeout_s, query))
            catalogue = decode(reply, wire.CataloguePage)
            yield from catalogue.plans(page)
            if page >= catalogue.meta.last_page:
                return
        raise Unavailable("a catalogue without an end")

    def order(self, plan: ProviderPlan, reference: str, *, timeout_s: float) -> Order:
        package = plan.provider_plan_id
        body = {"quantity": 1, "package_id": package, "type": "sim", "description": reference}
        order = self._change("/orders", timeout_s, body).read(package)
        if order is None or order.reference != reference:
            raise OutcomeNotStated(OTHER_ORDER)
        return order

    def orders(
        self, plan: ProviderPlan, since: datetime, until: datetime, *, timeout_s: float
    ) -> Sequence[Order]:
        """Return the completed orders of one package on one new eSIM, oldest first.

        Airalo filters the list by whole days in an undocumented time zone, so the query includes
        one more day at both ends. The times in the list are in whole seconds.
        """
        left_s, since = time_left(timeout_s), since.replace(microsecond=0)
        days = (since - timedelta(days=1), until + timedelta(days=1))
        query = {
            "include": "sims,status",
            "filter[created_at]": " - ".join(f"{day:%Y-%m-%d}" for day in days),
            "limit": str(ORDERS_PER_PAGE),
        }
        # By reference: new orders push others to the next page, where they come a second time.
        found: dict[str, Order] = {}
        for page in range(1, ORDER_PAGES_MAX + 1):
            reply = _answer(self._session.read("/orders", left_s(), {**query, "page": str(page)}))
            listed, last_page = wire.orders_of(reply)
            read = [each.read(plan.provider_plan_id) for each in listed]
            found |= {each.order_reference: each for each in read if each is not None}
            if page >= last_page:
                these = [each for each in found.values() if since <= each.placed_at <= until]
                return sorted(these, key=lambda order: (order.placed_at, order.order_reference))
        raise Unavailable("more orders than can be looked through")

    def add_plan(
        self, endpoint_id: str, plan: ProviderPlan, reference: str, *, timeout_s: float
    ) -> Addon:
        """Buy the top-up of a package; only `usage` tells its id on the eSIM."""
        until, package = time_left(timeout_s), plan.provider_plan_id
        topup = package + wire.TOPUP
        body = {"package_id": topup, "iccid": endpoint_id, "description": reference}
        try:
            placed = self._change("/orders/topups", until(), body)
        except Rejected:
            self._sim(endpoint_id, until())  # Raises NoSuchEndpoint if the eSIM is not ours.
            raise
        if not placed.tops_up(package, endpoint_id, reference):
            raise OutcomeNotStated(OTHER_ORDER)
        return Addon(None, placed.cost)

    def topups(
        self, endpoint_id: str, plans: Sequence[str], *, timeout_s: float
    ) -> Collection[str]:
        """Return the top-ups that Airalo lists for an eSIM, none where it refuses to list any."""
        path = f"{_path(endpoint_id)}/topups"
        reply = self._session.read(path, timeout_s, api=self._packages)
        if reply.status == HTTPStatus.NOT_FOUND or blames_the_request(reply):
            return ()
        listed = decode(_answer(reply), list[wire.Named], "data")
        return {each.id.removesuffix(wire.TOPUP) for each in listed}.intersection(plans)

    def usage(self, endpoint_id: str, *, timeout_s: float) -> Usage:
        until = time_left(timeout_s)
        now = self._clock()
        sim = self._sim(endpoint_id, until())
        path = f"{_path(endpoint_id)}/packages"
        reply = _known(self._session.read(path, until(), api=self._packages))
        packages = decode(reply, list[wire.InstalledPackage], "data")
        started = [at for each in packages if (at := moment(each.activated_at)) is not None]
        return Usage(
            status="inactive" if sim.recycled else "active",
            addons=[each.usage() for each in packages],
            as_of=now,
            first_used_at=min(started, default=None),
        )

    def status(self, endpoint_id: str, *, timeout_s: float) -> NetworkStatus:
        """Return whether an eSIM was recycled; Airalo does not tell where it is."""
        now = self._clock()
        status: Literal["active", "inactive"] = "active"
        if self._sim(endpoint_id, timeout_s).recycled:
            status = "inactive"
        return NetworkStatus(status, connected=False, network=None, last_seen_at=None, as_of=now)

    def lpa(self, iccid: str, *, timeout_s: float) -> ActivationCode:
        sim = self._sim(iccid, timeout_s)
        code = sim.activation_code
        if code is None:
            raise NoActivationCode("an eSIM without activation code, at $.data.qrcode")
        return ActivationCode(code, sim.confirmation)

    def _sim(self, iccid: str, timeout_s: float) -> wire.Sim:
        """Read an eSIM; raises NoSuchEndpoint if it is not ours."""
        sim = decode(_known(self._session.read(_path(iccid), timeout_s)), wire.Sim, "data")
        if sim.iccid != iccid:
            raise OddRecord("Airalo answers about another eSIM, at $.data.iccid")
        return sim

    def _change(self, path: str, timeout_s: float, body: Mapping[str, Any]) -> wire.Placed:
        """Place an order; raises Rejected if Airalo refused it, so that nothing happened."""
        reply = self._session.change(path, timeout_s, body)
        if reply.status in DONE:
            with becoming(Malformed):
                return decode(reply, wire.Placed, "data")
        code = None  # So it is if a field of the request is wrong.
        with suppress(Malformed):
            code = decode(reply, int, "code")
        raise MEANINGS.get(code, Rejected)(f"Airalo refuses it ({reply.status})")


def _known(reply: Reply) -> Reply:
    """Return the answer about an eSIM; raises NoSuchEndpoint if it is not ours."""
    if reply.status == HTTPStatus.NOT_FOUND:
        raise NoSuchEndpoint
    if blames_the_request(reply):
        raise OddRecord(f"Airalo answers about an eSIM with {reply.status}")
    return _answer(reply)


def _answer(reply: Reply) -> Reply:
    """Return the reply to a read if its status is 200; otherwise raise Unavailable."""
    if reply.status != OK:
        raise Unavailable(f"Airalo answers with {reply.status}")
    return reply


def _is_refused(reply: Reply) -> bool:
    return reply.status == HTTPStatus.UNAUTHORIZED


def _path(iccid: str) -> str:
    return f"/sims/{quote(iccid, safe='')}"
