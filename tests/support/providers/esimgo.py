"""A scripted eSIM Go, API v2.5: an account with a balance, orders, eSIMs and their bundles.

What the provider's document and guides leave open is our reading of them, of which
`docs/providers/esimgo.md` tells. Time is `clock`'s, quantities are bytes.
"""

import base64
import hashlib
import hmac
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from email.utils import format_datetime
from typing import Any

from domain.cause import Clock
from tests.support.providers.server import Answer, Handler, Request, ScriptedServer

KEY = "esimgo-key-3f9c1a7be2"
SMDP = "http://rsp.esim.example"
GB = 1_000_000_000
MB = 1_000_000
LAPSE = timedelta(days=365)
EVER, NEVER = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
OVER = {"depleted", "expired", "lapsed", "revoked"}


@dataclass
class Offer:
    """A bundle of the catalogue."""

    name: str
    price: Decimal
    quantity: int = GB
    days: int = 7
    unlimited: bool = False
    countries: tuple[str, ...] = ("FR",)
    roaming: tuple[str, ...] = ("DE", "IT")


@dataclass
class Put:
    """A bundle on an eSIM."""

    id: str
    offer: Offer
    reference: str
    assigned_at: datetime
    remaining: int
    started_at: datetime | None = None
    revoked: bool = False

    @property
    def ends_at(self) -> datetime | None:
        """When its time is over; None before its first use."""
        return self.started_at and self.started_at + timedelta(days=self.offer.days)

    def state(self, now: datetime) -> str:
        """Return its state, in the provider's words."""
        if self.revoked:
            return "revoked"
        if self.ends_at is not None and now >= self.ends_at:
            return "expired"
        if not self.remaining and not self.offer.unlimited:
            return "depleted"
        if self.ends_at is not None:
            return "active"
        if now >= self.assigned_at + LAPSE:
            return "lapsed"
        return "queued"


@dataclass
class Esim:
    """An eSIM of the account; `gone` when it went back to the provider."""

    iccid: str
    matching_id: str
    state: str = "active"
    by_policy: bool = False
    installed_at: datetime | None = None
    seen_at: datetime | None = None
    gone: bool = False
    puts: list[Put] = field(default_factory=list)

    @property
    def present(self) -> list[Put]:
        """Its bundles that were not revoked."""
        return [each for each in self.puts if not each.revoked]


@dataclass
class Sale:
    """An order as the provider's books have it; `given_back` when its money went back."""

    reference: str
    offer: Offer
    iccid: str
    placed_at: datetime
    given_back: bool = False


class EsimGoServer(ScriptedServer):
    """The far side of one account.

    The orders of the bundle `slow` have their effect `slow_s` late. `refunds`: the account may give
    bundles back.
    """

    prefix = "/v2.5"
    slow = "esim_slow"

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock
        self.refunds = True
        self.balance = Decimal("1000.00")
        self.offered: dict[str, Offer] = {}
        self.esims: dict[str, Esim] = {}
        self.sales: list[Sale] = []
        self.odd_orders: list[Any] = []  # Shown in the list as they are.
        self.keeps = False  # Whether it refuses to revoke any bundle.
        self.foreign: set[str] = set()  # Bundles that no eSIM takes besides its own.
        self.done_with = 200  # The status of an order that was placed.
        self._numbers = itertools.count(1)
        bundle = "/bundles/(?P<name>[^/]+)/assignments/(?P<id>[^/]+)"
        self._serve("organisation", "GET", "/organisation", self._organisation)
        self._serve("catalogue", "GET", "/catalogue", self._catalogue)
        self._serve("networks", "GET", "/networks", self._networks)
        self._serve("order", "POST", "/orders", self._order)
        self._serve("orders", "GET", "/orders", self._orders)
        self._serve_esim("esim", "GET", "", self._esim)
        self._serve_esim("bundles", "GET", "/bundles", self._bundles)
        self._serve_esim("revoke", "DELETE", bundle, self._revoke)
        self._serve_esim("suspend", "POST", "/suspend", self._suspend)
        self._serve_esim("location", "GET", "/location", self._location)
        self._serve_esim("compatible", "GET", "/compatible/(?P<name>[^/]+)", self._compatible)

    def offer(self, name: str, price: str = "2.28", **more: Any) -> Offer:
        made = self.offered[name] = Offer(name, Decimal(price), **more)
        return made

    # What happens at the far side without us.

    def install(self, iccid: str) -> None:
        self.esims[iccid].installed_at = self.clock()

    def use(self, iccid: str, quantity: int) -> None:
        """Have a device use data of the first bundle that has any left."""
        with self.lock:
            esim, now = self.esims[iccid], self.clock()
            esim.installed_at = esim.installed_at or now
            esim.seen_at = now
            for put in esim.puts if esim.state == "active" else ():
                if put.state(now) in {"queued", "active"}:
                    put.started_at = put.started_at or now
                    put.remaining = max(0, put.remaining - quantity)
                    return

    def suspend_by_policy(self, iccid: str) -> None:
        self.esims[iccid].state, self.esims[iccid].by_policy = "suspended", True

    def deactivate(self, iccid: str) -> None:
        self.esims[iccid].state = "deactivated"

    # The provider's own books.

    @property
    def held(self) -> set[str]:
        """The eSIMs that were bought and have not gone back."""
        return {iccid for iccid, esim in self.esims.items() if not esim.gone}

    # Operations.

    def _serve(self, name: str, method: str, path: str, handler: Handler) -> None:
        def checked(request: Request) -> Answer:
            if request.headers.get("x-api-key") != KEY:
                return (401 if name == "order" else 403), said("access denied"), {}
            return handler(request)

        self.route(name, method, path, checked)

    def _serve_esim(
        self, name: str, method: str, path: str, handler: Callable[[Request, Esim], Answer]
    ) -> None:
        def found(request: Request) -> Answer:
            esim = self.esims.get(request.parts["iccid"])
            if esim is None or esim.gone:
                return 403, said("access denied"), {}
            return handler(request, esim)

        self._serve(name, method, f"/esims/(?P<iccid>[^/]+){path}", found)

    def _compatible(self, request: Request, _: Esim) -> Answer:
        name = request.parts["name"]
        if name not in self.offered:
            return 400, said("no such bundle"), {}
        return 200, {"compatible": name not in self.foreign}, {}

    def _organisation(self, _: Request) -> Answer:
        told = {
            "name": "Tests",
            "apiKey": KEY,
            "currency": "USD",
            "balance": float(self.balance),
            "testCredit": 0,
            "users": [{"firstName": "Ada", "phoneNumber": "+15550001111"}],
        }
        return 200, told, {}

    def _catalogue(self, request: Request) -> Answer:
        shown = page_of([*self.offered.values()], request, "perPage")
        return 200, [catalogued(each) for each in shown], {}

    def _networks(self, _: Request) -> Answer:
        codes = {code for each in self.offered.values() for code in each.countries + each.roaming}
        told = [
            {
                "name": code,
                "networks": [
                    {
                        "name": f"{code} Telecom",
                        "brandName": f"Mobile {code}",
                        "mcc": "208",
                        "mnc": "01",
                        "tagid": f"{code}AF1",
                        "speed": ["4G", "5G"],
                    }
                ],
            }
            for code in sorted(codes)
        ]
        return 200, {"countryNetworks": told}, {}

    def _order(self, request: Request) -> Answer:
        asked = request.json()
        lines = asked.get("order") or []
        if asked.get("type") != "transaction" or len(lines) != 1:
            return 400, said("invalid order"), {}
        (line,) = lines
        offer, iccids = self.offered.get(line.get("item")), line.get("iccids") or []
        if offer is None or not asked.get("assign") or line.get("quantity") != max(1, len(iccids)):
            return 400, said("invalid bundle"), {}
        if not self.held.issuperset(iccids):
            return 403, said("access denied"), {}
        if any(self.esims[each].state == "deactivated" for each in iccids):
            return 400, said("eSIM is deactivated"), {}
        if offer.price > self.balance:
            return 400, said("insufficient balance"), {}
        sale = self._sell(offer, iccids[0] if iccids else None)
        told = {**self._shown(sale), "runningBalance": f"{self.balance}"}
        return self.done_with, told, {}

    def _sell(self, offer: Offer, iccid: str | None) -> Sale:
        """Take the money, and put the bundle on this eSIM or on a new one."""
        number, now = next(self._numbers), self.clock()
        reference = f"order-ref-{number:06}"
        if iccid is None:
            iccid = f"89440000000000{number:05}"
            self.esims[iccid] = Esim(iccid, f"MATCH-{number:06}")
        put = Put(f"{200_000_000 + number}", offer, f"{reference}-0", now, offer.quantity)
        self.esims[iccid].puts.append(put)
        self.balance -= offer.price
        sale = Sale(reference, offer, iccid, now)
        self.sales.append(sale)
        return sale

    def _shown(self, sale: Sale) -> dict[str, Any]:
        price, iccid = float(sale.offer.price), sale.iccid
        matching_id = self.esims[iccid].matching_id
        install = {"iccid": iccid, "matchingId": matching_id, "smdpAddress": SMDP}
        line = {"type": "bundle", "item": sale.offer.name, "quantity": 1, "AllowReassign": False}
        line |= {"subTotal": price, "pricePerUnit": price, "esims": [install], "iccids": [iccid]}
        return {
            "order": [line],
            "total": price,
            "currency": "USD",
            "createdDate": time_of(sale.placed_at),
            "assigned": True,
            "status": "completed",
            "statusMessage": "Order completed: 1 eSIMs assigned",
            "orderReference": sale.reference,
            "sourceIP": "127.0.0.1",
        }

    def _orders(self, request: Request) -> Answer:
        limits = [each.partition(":") for each in request.queries.get("createdAt", [])]
        at = {operator: datetime.fromisoformat(text) for operator, _, text in limits}
        since, until = at.get("gte", EVER), at.get("lte", NEVER)
        now = self.clock()
        listed = [each for each in self.sales if since <= each.placed_at <= until]
        shown = [self._shown(each) for each in page_of(listed[::-1], request, "limit")]
        return 200, [*self.odd_orders, *shown], {"Date": format_datetime(now, usegmt=True)}

    def _esim(self, _: Request, esim: Esim) -> Answer:
        installed_at = esim.installed_at
        told = {
            "iccid": esim.iccid,
            "msisdn": "",
            "pin": "0000",
            "puk": "12344567",
            "matchingId": esim.matching_id,
            "smdpAddress": SMDP,
            "profileStatus": "Installed" if installed_at else "Released",
            "firstInstalledDateTime": int(installed_at.timestamp() * 1000) if installed_at else 0,
            "customerRef": "",
            "profileName": "Profile 1",
            "state": esim.state,
        }
        return 200, told, {}

    def _bundles(self, request: Request, esim: Esim) -> Answer:
        used, now = request.query.get("includeUsed") == "true", self.clock()
        listed = [each for each in esim.puts if used or each.state(now) not in OVER]
        listed = listed[-int(request.query.get("limit", 15)) :]
        told = [
            {
                "name": name,
                "description": f"eSIM, {name}",
                "assignments": [
                    assigned(each, now) for each in listed[::-1] if each.offer.name == name
                ],
            }
            for name in dict.fromkeys(each.offer.name for each in listed[::-1])
        ]
        return 200, {"bundles": told}, {}

    def _revoke(self, request: Request, esim: Esim) -> Answer:
        wanted = (request.parts["id"], request.parts["name"])
        put = next((each for each in esim.present if (each.id, each.offer.name) == wanted), None)
        if put is None or self.keeps:
            return 400, said("bundle cannot be revoked"), {}
        unused = put.state(self.clock()) == "queued"
        put.revoked, told = True, "Successfully Revoked Bundle"
        if self.refunds and unused and request.query.get("refundToBalance") == "true":
            told += ", bundle has been refunded to balance"
            self.balance += put.offer.price
            (sale,) = [each for each in self.sales if f"{each.reference}-0" == put.reference]
            sale.given_back = True
        esim.gone = not esim.present and esim.installed_at is None
        return 200, {"status": told}, {}

    def _suspend(self, request: Request, esim: Esim) -> Answer:
        wanted = "suspended" if request.json()["suspend"] else "active"
        if esim.state in {wanted, "deactivated"}:
            return 400, said(f"eSIM is {esim.state}"), {}
        if esim.by_policy:
            return 403, said("eSIM was suspended by policy enforcement"), {}
        esim.state = wanted
        return 201, {"status": f"eSIM is {wanted}"}, {}

    def _location(self, _: Request, esim: Esim) -> Answer:
        told = {
            "mobileNetworkCode": "FRAF1",
            "networkName": "Orange",
            "networkBrandName": "Orange France",
            "country": "FR",
            "lastSeen": time_of(esim.seen_at),
        }
        return 200, told if esim.seen_at else {}, {}


def signature(body: bytes, *, form: str = "hex", key: str = KEY) -> dict[str, str]:
    """Return the header that signs a callback, version 3: in hexadecimal or base64."""
    digest = hmac.new(key.encode(), body, hashlib.sha256)
    told = digest.hexdigest() if form == "hex" else base64.b64encode(digest.digest()).decode()
    return {"X-Signature-SHA256": told}


def said(message: str) -> dict[str, str]:
    """Return the body of an error."""
    return {"message": message}


def page_of(listed: list[Any], request: Request, size_name: str) -> list[Any]:
    """Return the page that a request asks for, counted from 1."""
    page, size = int(request.query.get("page", 1)), int(request.query.get(size_name, 10))
    return listed[(page - 1) * size : page * size]


def assigned(put: Put, now: datetime) -> dict[str, Any]:
    """Return a bundle on an eSIM as the provider shows it."""
    times = {"startTime": time_of(put.started_at), "endTime": time_of(put.ends_at)}
    return {
        "id": put.id,
        "callTypeGroup": "data",
        "initialQuantity": put.offer.quantity,
        "remainingQuantity": put.remaining,
        "assignmentDateTime": time_of(put.assigned_at),
        "assignmentReference": put.reference,
        "bundleState": put.state(now),
        "unlimited": put.offer.unlimited,
        **(times if put.started_at else {}),
    }


def catalogued(offer: Offer) -> dict[str, Any]:
    def named(codes: tuple[str, ...]) -> list[dict[str, str]]:
        return [{"name": f"Country {code}", "region": "Europe", "iso": code} for code in codes]

    return {
        "name": offer.name,
        "description": f"eSIM, {offer.name}",
        "groups": ["Standard Fixed"],
        "countries": named(offer.countries),
        "dataAmount": -1 if offer.unlimited else offer.quantity // MB,
        "duration": offer.days,
        "speed": ["4G"],
        "autostart": True,
        "unlimited": offer.unlimited,
        "roamingEnabled": named(offer.roaming),
        "price": float(offer.price),
        "billingType": "FixedCost",
        "profileName": "Profile 1",
    }


def time_of(moment: datetime | None) -> str:
    """Write a moment as the provider does, with nanoseconds; "" for none."""
    return "" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}000Z"
