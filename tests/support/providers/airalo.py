"""A scripted Airalo, Partner API v2: logins, credit, orders, eSIMs and their packages.

What its document leaves open is our reading of it, of which `docs/providers/airalo.md` tells.
Time is `clock`'s, quantities are MB, of which 1 GB has 1024.
"""

import itertools
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from app.adapters.networks.airalo.network import Airalo, Session
from app.adapters.remote.api import RemoteApi
from domain.cause import Clock
from tests.support.providers.server import Answer, Handler, Request, ScriptedServer

CLIENT_ID = "airalo-client-5d21"
CLIENT_SECRET = "airalo-secret-9c40e7a1b3"
GB = 1024
TOPUP = "-topup"
NOT_FOUND: Answer = (404, {"data": [], "meta": {"message": "messages.resource_not_found"}}, {})


@dataclass
class Offer:
    """A package of the catalogue; its top-up has `-topup` behind its id."""

    id: str
    net_price: Decimal
    amount: int
    day: int
    countries: tuple[str, ...]


@dataclass
class Held:
    """A package on an eSIM."""

    id: int
    offer: Offer
    is_topup: bool
    remaining: int
    activated_at: datetime | None = None

    def shown(self, now: datetime) -> dict[str, Any]:
        begun, ends = self.activated_at, None
        if begun is not None:
            ends = begun + timedelta(days=self.offer.day)
        state = "NOT_ACTIVE" if ends is None else "ACTIVE" if now < ends else "EXPIRED"
        return {
            "id": self.id,
            "status": state if self.remaining else "FINISHED",
            "remaining": self.remaining,
            "activated_at": begun and begun.isoformat(),
            "expired_at": ends and ends.isoformat(),
            "finished_at": None,
            "package": packed(self.offer, topup=self.is_topup),
        }


@dataclass
class Esim:
    iccid: str
    held: list[Held] = field(default_factory=list)
    recycled: bool = False


@dataclass
class Sale:
    """An order as the provider's books have it."""

    code: str
    offer: Offer
    iccid: str
    placed_at: datetime
    description: str
    is_topup: bool


class AiraloServer(ScriptedServer):
    """The far side of one account.

    Orders of the package `slow` have their effect `slow_s` late. `refuses`: the code with which
    every order is refused. `tells` replaces parts of the replies to orders, `done` is their status.
    `by_hand` are orders of the list that people have placed.
    """

    prefix = "/v2"
    slow = "slow-7days-1gb"
    rechargeable = True
    foreign = ""  # A package of another operator, which no eSIM takes as a top-up.
    operator: Mapping[str, Any] = {}  # What the catalogue says of the operator besides.

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock
        self.balance = Decimal("1000.00")
        self.offered: dict[str, Offer] = {}
        self.esims: dict[str, Esim] = {}
        self.sales: list[Sale] = []
        self.refuses: int | None = None
        self.tells: dict[str, Any] = {}
        self.done = 200
        self.tells_of_esims: dict[str, Any] = {}
        self.by_hand: list[Any] = []
        self.tokens: list[str] = []
        self._numbers = itertools.count(1)
        esim = "/sims/(?P<iccid>[^/]+)"
        self.route("token", "POST", "/token", self._log_in)
        self._serve("balance", "GET", "/balance", self._balance)
        self._serve("catalogue", "GET", "/packages", self._catalogue)
        self._serve("order", "POST", "/orders", self._order)
        self._serve("order", "POST", "/orders/topups", self._topup)
        self._serve("orders", "GET", "/orders", self._orders)
        self._serve("esim", "GET", esim, self._of_esim(self._esim))
        self._serve("packages", "GET", f"{esim}/packages", self._of_esim(self._packages))
        self._serve("topups", "GET", f"{esim}/topups", self._of_esim(self._topups))

    def offer(self, package: str, price: str = "2.30", *, gb: int = 1, day: int = 7) -> None:
        """Put a package and its top-up into the catalogue."""
        self.offered[package] = Offer(package, Decimal(price), gb * GB, day, ("FR", "DE"))

    def use(self, iccid: str, mb: int) -> None:
        """Have a device use data of the first package that has any left."""
        with self.lock:
            for held in self.esims[iccid].held:
                if held.remaining:
                    held.activated_at = held.activated_at or self.clock()
                    held.remaining = max(0, held.remaining - mb)
                    return

    def _serve(self, name: str, method: str, path: str, handler: Handler) -> None:
        def checked(request: Request) -> Answer:
            token = request.headers.get("authorization", "").removeprefix("Bearer ")
            if token not in self.tokens:
                return 401, {"data": [], "meta": {"message": "Unauthenticated."}}, {}
            return handler(request)

        self.route(name, method, path, checked)

    def _of_esim(self, handler: Callable[[Request, Esim], Answer]) -> Handler:
        def found(request: Request) -> Answer:
            esim = self.esims.get(request.parts["iccid"])
            return NOT_FOUND if esim is None else handler(request, esim)

        return found

    def _log_in(self, request: Request) -> Answer:
        given = request.form()
        if given["grant_type"] != "client_credentials":
            return wrong("grant_type", "The selected grant type is invalid.")
        if (given["client_id"], given["client_secret"]) != (CLIENT_ID, CLIENT_SECRET):
            return 401, {"data": [], "meta": {"message": "Client authentication failed"}}, {}
        self.tokens.append(f"airalo-token-{len(self.tokens)}")
        token = {"token_type": "Bearer", "expires_in": 86400, "access_token": self.tokens[-1]}
        return success(token)

    def _balance(self, _: Request) -> Answer:
        amount = {"amount": float(self.balance), "currency": "USD"}
        return success({"balances": {"name": "balance", "availableBalance": amount}})

    def _catalogue(self, request: Request) -> Answer:
        """Show one area for each package; the second page on numbers its areas."""
        areas = [
            {
                "slug": each.id,
                "country_code": "",
                "operators": [
                    {
                        "title": "Brand",
                        "type": "global",
                        "packages": [packed(each)],
                        "countries": [{"country_code": code} for code in each.countries],
                        **self.operator,
                    }
                ],
            }
            for each in self.offered.values()
        ]
        page, size = int(request.query["page"]), int(request.query["limit"])
        begin = (page - 1) * size
        shown: Any = areas[begin : begin + size]
        if page > 1:
            shown = {str(begin + index): area for index, area in enumerate(shown)}
        return 200, {"data": shown, "meta": pages(len(areas), page, size)}, {}

    def _order(self, request: Request) -> Answer:
        asked = request.json()
        offer = self.offered.get(asked["package_id"])
        if offer is None:
            return coded(34)
        if asked["quantity"] != 1 or asked["type"] != "sim":
            return wrong("quantity", "The quantity may not be greater than 50.")
        return self._sell(offer, None, asked["description"])

    def _topup(self, request: Request) -> Answer:
        asked = request.json()
        esim = self.esims.get(asked["iccid"])
        if esim is None:
            return wrong("iccid", "The selected iccid is invalid.")
        if esim.recycled:
            return coded(73)
        offer = self.offered.get(asked["package_id"].removesuffix(TOPUP))
        fits = self.rechargeable and offer is not None and offer.id != self.foreign
        if offer is None or not fits or not asked["package_id"].endswith(TOPUP):
            return wrong("package_id", "invalid topup package")
        return self._sell(offer, esim, asked["description"])

    def _sell(self, offer: Offer, esim: Esim | None, description: str) -> Answer:
        """Take the money, and put the package on this eSIM or on a new one."""
        if self.refuses is not None or offer.net_price > self.balance:
            return coded(self.refuses or 11)
        number, now, is_topup = next(self._numbers), self.clock(), esim is not None
        if esim is None:
            iccid = f"89450000000000{number:05}"
            esim = self.esims[iccid] = Esim(iccid)
        esim.held.append(Held(700 + number, offer, is_topup, offer.amount))
        self.balance -= offer.net_price
        code = f"{now:%Y%m%d}-{number:06}"
        sale = Sale(code, offer, esim.iccid, now, description, is_topup)
        self.sales.append(sale)
        told = placed(sale) | {"pricing_model": "net_pricing", "net_price": float(offer.net_price)}
        return self.done, success(told | self.tells)[1], {}

    def _orders(self, request: Request) -> Answer:
        first, _, last = request.query["filter[created_at]"].partition(" - ")
        listed = [
            placed(each) | {"price": "9.50", "status": {"name": "Completed", "slug": "completed"}}
            for each in reversed(self.sales)
            if first <= f"{each.placed_at:%Y-%m-%d}" <= last
        ] + self.by_hand
        page, size = int(request.query["page"]), int(request.query["limit"])
        shown = listed[(page - 1) * size : page * size]
        return 200, {"data": shown, "meta": pages(len(listed), page, size)}, {}

    def _esim(self, _: Request, esim: Esim) -> Answer:
        return success(simmed(esim.iccid) | {"recycled": esim.recycled} | self.tells_of_esims)

    def _topups(self, _: Request, esim: Esim) -> Answer:
        """List those of the operator; none for an eSIM that cannot be topped up."""
        offers = [] if esim.recycled or not self.rechargeable else self.offered.values()
        return success([packed(each, topup=True) for each in offers if each.id != self.foreign])

    def _packages(self, _: Request, esim: Esim) -> Answer:
        return success([each.shown(self.clock()) for each in reversed(esim.held)])


def airalo_at(url: str, clock: Clock, secret: str = CLIENT_SECRET) -> tuple[Airalo, ExitStack]:
    """Return an adapter as a process has it, and its clients of the API to close."""
    opened = ExitStack()
    api, packages = (
        opened.enter_context(closing(RemoteApi(Airalo.name, url, clock=clock))) for _ in range(2)
    )
    return Airalo(Session(api, CLIENT_ID, secret), packages, clock), opened


def success(data: Any) -> Answer:
    """Return what a success comes in."""
    return 200, {"data": data, "meta": {"message": "success"}}, {}


def coded(code: int) -> Answer:
    """Refuse by a code of the provider's table."""
    return 422, {"code": code, "reason": "a reason"}, {}


def wrong(name: str, why: str) -> Answer:
    """Refuse a field of a request."""
    return 422, {"data": {name: why}, "meta": {"message": "the parameter is invalid"}}, {}


def pages(total: int, page: int, size: int) -> dict[str, Any]:
    """Return what a page says of its list."""
    last = max(1, -(-total // size))
    return {"message": "success", "current_page": page, "last_page": last, "total": total}


def packed(offer: Offer, *, topup: bool = False) -> dict[str, Any]:
    """Return a package as the provider shows it."""
    return {
        "id": offer.id + (TOPUP if topup else ""),
        "type": "topup" if topup else "sim",
        "price": 4.5,
        "net_price": float(offer.net_price),
        "amount": offer.amount,
        "day": offer.day,
        "is_unlimited": False,
        "title": f"{offer.amount // GB} GB - {offer.day} Days",
        "data": f"{offer.amount // GB} GB",
        "short_info": None,
    }


def simmed(iccid: str) -> dict[str, Any]:
    """Return an eSIM as the provider shows it."""
    return {
        "id": 11047,
        "iccid": iccid,
        "lpa": "lpa.airalo.example",
        "matching_id": f"MATCH-{iccid[-5:]}",
        "qrcode": f"LPA:1$lpa.airalo.example$MATCH-{iccid[-5:]}",
        "airalo_code": None,
        "confirmation_code": None,
    }


def placed(sale: Sale) -> dict[str, Any]:
    """Return what every view of an order has; times are UTC without a zone."""
    told = {
        "id": int(sale.code[-6:]),
        "code": sale.code,
        "currency": "USD",
        "package_id": sale.offer.id + (TOPUP if sale.is_topup else ""),
        "quantity": 1,
        "type": "topup" if sale.is_topup else "sim",
        "description": f"Topup ({sale.iccid})" if sale.is_topup else sale.description,
        "price": 4.5,
        "created_at": f"{sale.placed_at.astimezone(UTC):%Y-%m-%d %H:%M:%S}",
    }
    return told if sale.is_topup else told | {"sims": [simmed(sale.iccid)]}
