"""The adapter of eSIM Go, API v2.5.

eSIM Go keeps no reference of ours, and no change is safe to repeat. So after a lost reply we look
for an order in the list of orders, or for a bundle among those of its eSIM. The ICCID is the id of
the endpoint.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, Literal, TypeVar
from urllib.parse import quote

from msgspec import Raw

from app.adapters.networks.esimgo import wire
from app.adapters.networks.wire import entries, operators_by_country
from app.adapters.remote.api import RemoteApi
from app.adapters.remote.exchange import (
    Malformed,
    OddRecord,
    Query,
    Reply,
    balance_of,
    blames_the_request,
    decode,
    time_left,
)
from app.adapters.remote.limits import moment_of_header
from domain.catalogue.supplied import OddEntry, Supplied
from domain.cause import Clock
from domain.cost import ProviderBalance
from domain.links.lost_order import APART
from domain.links.network import (
    ActivationCode,
    Addon,
    Capability,
    NetworkStatus,
    NoActivationCode,
    NoSuchEndpoint,
    Order,
    ProviderPlan,
    Usage,
)
from domain.provider_errors import OutcomeNotStated, Rejected, Unavailable, becoming, in_doubt

# A bundle is usually put on its eSIM at once, but it may take ten minutes (guide "Ordering").
SETTLES_AFTER = timedelta(minutes=10)
# An eSIM counts as connected this long after its network last heard of it, because eSIM Go tells
# no more. Devices report every one to three hours (3GPP TS 24.301, T3412).
CONNECTED_FOR = timedelta(hours=3)
BEHIND_MAX = timedelta(minutes=1)  # The largest error of eSIM Go's clock that is corrected.
ORDERS_PER_PAGE = 100
ORDER_PAGES_MAX = 20  # 2,000 orders; in the ten minutes of a search we place 1,200 at most.
SECONDS = "%Y-%m-%dT%H:%M:%S"
CATALOGUE_PER_PAGE = 50
CATALOGUE_PAGES_MAX = 400
TOPUPS_READ_MAX = 10  # As many as one change adds; they take a second of our calls.
ASSIGNMENTS_MAX = 200  # The most that one reply lists.

DONE = range(200, 300)  # The statuses of a change that was made; its body may still be unreadable.
NO_SUCH_ESIM = {HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.GONE}

NOT_COMPLETED = "eSIM Go does not tell of one completed order, at $.order"
KEY_REFUSED = "eSIM Go refuses our key; check ESIMGO_API_KEY"

T = TypeVar("T")


class EsimGo:
    """An order network over the HTTP API of eSIM Go.

    `api` sends the key with each call, and observes the limit of ten calls a second that all
    processes at one address share. `key` signs notifications. `refunds` says that our account may
    refund unused bundles to its balance, which is off by default.
    """

    name = "esimgo"
    remote = True
    shape: Literal["order"] = "order"
    stores_reference = False
    adds_once = False
    background_reads_per_s = 1.0  # Each takes two of the eight calls a second.
    settles_after = SETTLES_AFTER

    def __init__(self, api: RemoteApi, key: str, clock: Clock, *, refunds: bool) -> None:
        self._api = api
        self._key = key
        self._clock = clock
        self._refunds = refunds
        can: set[Capability] = {"suspend", "location", "remove_plan"}
        if refunds:
            can.add("cancel")
        self.capabilities = frozenset(can)

    def probe(self, *, timeout_s: float) -> None:
        """Read our account, which costs nothing."""
        self._organisation(timeout_s)

    def balance(self, *, timeout_s: float) -> ProviderBalance | None:
        """Return the balance of our account, including test credit."""
        account = self._organisation(timeout_s)
        return balance_of(account.balance, account.currency)

    def supplied(self, *, timeout_s: float) -> Iterator[Supplied]:
        odd: list[OddEntry] = []
        currency = self._organisation(timeout_s).currency
        reply = self._read("/networks", timeout_s, {"returnAll": "true"})
        named = decode(reply, list[Any], "countryNetworks")
        operators = operators_by_country(named, "$.countryNetworks", odd)
        for page in range(1, CATALOGUE_PAGES_MAX + 1):
            query = {"page": str(page), "perPage": str(CATALOGUE_PER_PAGE)}
            reply = self._read("/catalogue", timeout_s, query)
            listed, where = wire.listed_in(reply, list[Any], "bundles"), f"page {page} $.bundles"
            for at, bundle in entries(listed, wire.CatalogueBundle, where, odd, "name"):
                yield bundle.supplied(currency, operators, at, odd)
            if len(listed) < CATALOGUE_PER_PAGE:
                yield from odd
                return
        raise Unavailable("a catalogue without an end")

    def order(self, plan: ProviderPlan, reference: str, *, timeout_s: float) -> Order:  # noqa: ARG002  # It keeps none.
        order = self._order(plan, timeout_s).read(plan.provider_plan_id)
        if order is None:  # The order may be in progress; the list of orders will show it.
            raise OutcomeNotStated(NOT_COMPLETED)
        return order

    def orders(
        self, plan: ProviderPlan, since: datetime, until: datetime, *, timeout_s: float
    ) -> Sequence[Order]:
        """Return the orders of one bundle on one eSIM, oldest first.

        The list also has orders for existing eSIMs, which look the same. If eSIM Go's clock is
        behind, times are corrected. Otherwise an order whose reply was lost would seem older than
        its call.
        """
        left_s = time_left(timeout_s)
        found: list[Order] = []
        first = since - BEHIND_MAX
        for page in range(1, ORDER_PAGES_MAX + 1):
            query = {
                "includeIccids": "true",
                "page": str(page),
                "limit": str(ORDERS_PER_PAGE),
                "createdAt": (f"gte:{first:{SECONDS}}.000Z", f"lte:{until:{SECONDS}}.999Z"),
            }
            reply = self._read("/orders", left_s(), query)
            listed = wire.listed_in(reply, list[Raw], "orders")
            behind = _behind(reply, self._clock())
            found += wire.matching(listed, plan.provider_plan_id, since, until, behind)
            if len(listed) < ORDERS_PER_PAGE:
                return sorted(found, key=lambda order: order.placed_at)
        raise Unavailable("more orders than can be looked through")

    def take_back(self, order: Order, *, timeout_s: float) -> bool:
        """Revoke the unused bundle of an order and get its price refunded; False if impossible.

        Without its last bundle an eSIM that is not installed goes back to eSIM Go.
        """
        if not self._refunds:
            return False
        until = time_left(timeout_s)
        try:
            left = [*self._bundles(order.iccid, until()).present]
        except NoSuchEndpoint:  # The eSIM is back at eSIM Go.
            return True
        if not left:
            return True
        if any(name != order.provider_plan_id or each.has_started for name, each in left):
            return False
        (name, put), *more = left
        status = None if more else self._revoke(order.iccid, name, put.id, until)
        return status is not None and (not status or "refunded" in status.lower())

    def add_plan(
        self,
        endpoint_id: str,
        plan: ProviderPlan,
        reference: str,  # noqa: ARG002  # It keeps none.
        *,
        timeout_s: float,
    ) -> Addon:
        """Buy one more bundle for an eSIM; only `usage` tells its id on the eSIM."""
        until = time_left(timeout_s)
        try:
            order = self._order(plan, until(), endpoint_id).read(plan.provider_plan_id)
        except Rejected:
            self._esim(endpoint_id, until())  # Raises NoSuchEndpoint if the eSIM is not ours now.
            raise
        if order is None or order.iccid != endpoint_id:
            raise OutcomeNotStated(NOT_COMPLETED)
        return Addon(None, order.cost)

    def remove_plan(self, endpoint_id: str, addon_id: str, *, timeout_s: float) -> None:
        """Revoke a bundle, but never the last one of an eSIM that is not installed.

        Without a bundle that eSIM would go back to eSIM Go, and its link would have no eSIM.
        """
        until = time_left(timeout_s)
        try:
            present = [*self._bundles(endpoint_id, until()).present]
            names = [name for name, each in present if each.id == addon_id]
            if not names:
                return
            if len(present) == 1 and self._esim(endpoint_id, until()).installed_at is None:
                raise Rejected("the last bundle of an eSIM that is not installed")
        except NoSuchEndpoint:
            return
        if self._revoke(endpoint_id, names[0], addon_id, until) is None:
            raise Rejected("eSIM Go keeps the bundle on the eSIM")

    def topups(
        self, endpoint_id: str, plans: Sequence[str], *, timeout_s: float
    ) -> Collection[str]:
        """Ask for each of the first plans whether an eSIM takes it; there is no list of them."""
        until, found = time_left(timeout_s), set[str]()
        for each in plans[:TOPUPS_READ_MAX]:
            path = f"{_path(endpoint_id)}/compatible/{_escaped(each)}"
            with suppress(NoSuchEndpoint):  # The eSIM is not ours now, or no such bundle is sold.
                if decode(self._known(path, until()), bool, "compatible"):
                    found.add(each)
        return found

    def usage(self, endpoint_id: str, *, timeout_s: float) -> Usage:
        """Return bundles, usage and state; bundles that are used up or expired are included."""
        until = time_left(timeout_s)
        now = self._clock()
        bundles = self._bundles(endpoint_id, until())
        esim = self._esim(endpoint_id, until())
        return Usage(
            status=esim.status,
            addons=[each.usage(name, now) for name, each in bundles.present],
            as_of=now,
            installed_at=esim.installed_at,
            first_used_at=bundles.first_used_at,
            msisdn=esim.number,
        )

    def status(self, endpoint_id: str, *, timeout_s: float) -> NetworkStatus:
        until = time_left(timeout_s)
        now = self._clock()
        esim = self._esim(endpoint_id, until())
        path = f"{_path(endpoint_id)}/location"
        seen = decode(self._known(path, until()), wire.Location)
        at = seen.last_seen_at
        recent = at is not None and now - at <= CONNECTED_FOR
        connected = esim.status == "active" and recent
        return NetworkStatus(
            status=esim.status,
            connected=connected,
            network=seen.serving if connected else None,
            last_seen_at=at,
            as_of=now,
        )

    def suspend(self, endpoint_id: str, *, timeout_s: float) -> None:
        """Suspend an eSIM; its bundles stay, and their time runs on."""
        self._switch(endpoint_id, "suspended", timeout_s)

    def resume(self, endpoint_id: str, *, timeout_s: float) -> None:
        """Lift our suspension; raises Rejected if eSIM Go has suspended or deactivated the eSIM."""
        self._switch(endpoint_id, "active", timeout_s)

    def lpa(self, iccid: str, *, timeout_s: float) -> ActivationCode:
        lpa = self._esim(iccid, timeout_s).lpa
        if lpa is None:
            raise NoActivationCode("an eSIM without activation code, at $.matchingId")
        return ActivationCode(lpa)

    def notified(self, headers: Mapping[str, str], body: bytes) -> str | None:
        return wire.iccid_of(headers, body, self._key)

    def _organisation(self, timeout_s: float) -> wire.Organisation:
        return decode(self._read("/organisation", timeout_s), wire.Organisation)

    def _esim(self, iccid: str, timeout_s: float) -> wire.EsimDetails:
        esim = decode(self._known(_path(iccid), timeout_s), wire.EsimDetails)
        if esim.iccid != iccid:
            raise OddRecord("eSIM Go answers about another eSIM, at $.iccid")
        return esim

    def _bundles(self, iccid: str, timeout_s: float) -> wire.Bundles:
        query = {"includeUsed": "true", "limit": str(ASSIGNMENTS_MAX)}
        return decode(self._known(f"{_path(iccid)}/bundles", timeout_s, query), wire.Bundles)

    def _known(self, path: str, timeout_s: float, query: Query | None = None) -> Reply:
        """Read about an eSIM; raises NoSuchEndpoint if it is not, or no longer, ours."""
        until = time_left(timeout_s)
        reply = self._api.read("GET", path, query=query, timeout_s=until())
        if reply.status == HTTPStatus.FORBIDDEN:
            self._organisation(until())  # Raises if it is our key that is refused.
        if reply.status in NO_SUCH_ESIM:
            raise NoSuchEndpoint
        if blames_the_request(reply):
            raise OddRecord(f"eSIM Go answers about an eSIM with {reply.status}")
        return _answer(reply)

    def _read(self, path: str, timeout_s: float, query: Query | None = None) -> Reply:
        return _answer(self._api.read("GET", path, query=query, timeout_s=timeout_s))

    def _order(self, plan: ProviderPlan, timeout_s: float, iccid: str | None = None) -> wire.Placed:
        """Order a bundle for a new eSIM, or for `iccid`.

        We do not use the API's validation of orders: an order makes the same checks before it
        charges us, and something may change between a validation and the order.
        """
        line: dict[str, Any] = {
            "type": "bundle",
            "quantity": 1,
            "item": plan.provider_plan_id,
            "allowReassign": False,  # Otherwise the bundle could be put on another eSIM.
        }
        if iccid is not None:
            line["iccids"] = [iccid]
        body = {"type": "transaction", "assign": True, "order": [line]}
        reply = self._change("POST", "/orders", timeout_s, json=body)
        return _understood(reply, wire.Placed)

    def _revoke(
        self, iccid: str, bundle: str, assignment: str, until: Callable[[], float]
    ) -> str | None:
        """Revoke a bundle; return the status in eSIM Go's reply, None if eSIM Go refuses.

        It also refuses if the bundle is revoked already, for example because a proxy has sent the
        request twice. Then the result is "", which counts as done.
        """
        path = f"{_path(iccid)}/bundles/{_escaped(bundle)}/assignments/{_escaped(assignment)}"
        query = {"type": "transaction", "refundToBalance": "true" if self._refunds else "false"}
        try:
            reply = self._change("DELETE", path, until(), query=query)
        except Rejected:
            with suppress(NoSuchEndpoint), in_doubt():
                present = self._bundles(iccid, until()).present
                return None if assignment in {each.id for _, each in present} else ""
            return ""
        return _understood(reply, str, "status")

    def _switch(self, iccid: str, state: wire.State, timeout_s: float) -> None:
        """Suspend or resume; a refusal because the eSIM has this state already is no error."""
        until = time_left(timeout_s)
        body = {"suspend": state == "suspended"}
        try:
            self._change("POST", f"{_path(iccid)}/suspend", until(), json=body)
        except Rejected:
            with in_doubt():
                found = self._esim(iccid, until()).state
            if found != state:
                raise

    def _change(self, method: str, path: str, timeout_s: float, **options: Any) -> Reply:
        """Send a change; raises Rejected if eSIM Go refused it, so that nothing happened."""
        until = time_left(timeout_s)
        reply = self._api.change(method, path, timeout_s=until(), **options)
        if reply.status in DONE:
            return reply
        if reply.status == HTTPStatus.UNAUTHORIZED:
            raise Unavailable(KEY_REFUSED)
        if reply.status == HTTPStatus.FORBIDDEN:
            self._organisation(until())  # Raises if it is our key that is refused.
        raise Rejected(f"eSIM Go refuses it ({reply.status})")


def _answer(reply: Reply) -> Reply:
    """Return the reply to a read if its status is 200; otherwise raise Unavailable."""
    if reply.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        raise Unavailable(KEY_REFUSED)
    if reply.status != HTTPStatus.OK:
        raise Unavailable(f"eSIM Go answers with {reply.status}")
    return reply


def _understood(reply: Reply, kind: type[T], *path: str) -> T:
    """Read the reply to a change; an unreadable one is OutcomeUnknown: the change may be made."""
    with becoming(Malformed):
        return decode(reply, kind, *path)


def _behind(reply: Reply, now: datetime) -> timedelta:
    """Return how far the network's clock is behind, by the date of its reply."""
    sent = moment_of_header(reply.headers.get("date", ""))
    behind = now - sent if sent is not None else timedelta(0)
    # A small difference is no error: the header has whole seconds, and the reply took its time.
    return min(behind, BEHIND_MAX) if behind > APART else timedelta(0)


def _path(iccid: str) -> str:
    return f"/esims/{_escaped(iccid)}"


def _escaped(part: str) -> str:
    return quote(part, safe="")
