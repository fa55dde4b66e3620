"""The replies of Airalo as its document of v2 describes them, converted to our terms.

Times without a zone are UTC. Airalo counts 1 GB as 1024 MB; we count 1000 MB.
"""

import re
from collections.abc import Collection, Iterator
from decimal import Decimal
from typing import Any

from msgspec import Raw, Struct

from app.adapters.networks.wire import Quantity, cost_of, entries, moment, operators_by_country
from app.adapters.remote.exchange import OddRecord, Reply, balance_of, decode, decode_entry
from domain.catalogue.supplied import (
    APN,
    AT_INSTALLATION,
    IDENTITY,
    NOTICES,
    VOICE,
    OddEntry,
    Supplied,
    SuppliedCountry,
    SuppliedPlan,
)
from domain.cost import Cost, ProviderBalance
from domain.links.network import AddonUsage, Order

TOPUP = "-topup"  # The id of a top-up is that of the package for a new eSIM, with this suffix.
ICCID = re.compile(r"[0-9]{16,22}")
ISO = re.compile(r"[A-Z]{2}")
REFERENCE = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Sim(Struct):
    """An eSIM. A recycled one can no longer be used or topped up."""

    iccid: str
    lpa: str | None = None
    matching_id: str | None = None
    qrcode: str | None = None
    confirmation_code: str | int | None = None
    recycled: bool | None = False

    @property
    def activation_code(self) -> str | None:
        """The activation code (GSMA SGP.22 §4.1)."""
        if (self.qrcode or "").startswith("LPA:1$"):
            return self.qrcode
        return f"LPA:1${self.lpa}${self.matching_id}" if self.lpa and self.matching_id else None

    @property
    def confirmation(self) -> str | None:
        """What the phone will ask for; nearly all eSIMs ask for nothing."""
        code = self.confirmation_code
        return None if code is None else str(code).strip() or None


class Status(Struct):
    """The state of an order; only the list of orders has it."""

    slug: str


class Placed(Struct):
    """An order. Its `price` is not read, because it is what consumers pay, not what we pay."""

    code: str
    package_id: str
    quantity: int
    type: str
    created_at: str
    currency: str | None = None
    description: str | None = None
    net_price: Decimal | None = None
    total_amount_paid: Decimal | None = None
    sims: list[Sim] | None = None
    status: Status | None = None

    @property
    def cost(self) -> Cost | None:
        """What we pay, if Airalo tells it: the amount paid after a discount, else the net price."""
        paid = self.net_price if self.total_amount_paid is None else self.total_amount_paid
        return cost_of(paid, self.currency, self.code)

    def read(self, package: str) -> Order | None:
        """Return the order if it put one package of this name on one new eSIM; else None."""
        placed_at, sims = moment(self.created_at), self.sims or []
        done = self.status is None or self.status.slug == "completed"
        of_one = (self.type, self.package_id, self.quantity, len(sims)) == ("sim", package, 1, 1)
        if not done or not of_one or placed_at is None or not ICCID.fullmatch(sims[0].iccid):
            return None
        iccid, reference = sims[0].iccid, self.description
        return Order(self.code, iccid, package, placed_at, reference=reference, cost=self.cost)

    def tops_up(self, package: str, iccid: str, reference: str) -> bool:
        """Tell whether this order put a package on an eSIM.

        The description may be our reference or the ICCID.
        """
        ours = {iccid, reference} & {*re.findall(r"[\w-]+", self.description or "")}
        wanted = ("topup", package + TOPUP, 1)
        return bool(ours) and (self.type, self.package_id, self.quantity) == wanted


class Described(Struct):
    """The description of an order, which tells our orders from others."""

    description: str | None = None


class Pages(Struct):
    """How many pages a list has."""

    last_page: int


class OrderPage(Struct):
    """A page of the list of orders, which are decoded one by one: see `orders_of`."""

    data: list[Raw]
    meta: Pages


def orders_of(reply: Reply) -> tuple[list[Placed], int]:
    """Return the orders of a page and how many pages there are.

    People also place orders in the same account. So an order that cannot be read is skipped, unless
    its description holds an id, as ours do. Raises OddRecord.
    """
    page, found = decode(reply, OrderPage), []
    for each in page.data:
        try:
            found.append(decode_entry(each, Placed))
        except OddRecord:
            if REFERENCE.search(decode_entry(each, Described).description or ""):
                raise
    return found, page.meta.last_page


class Package(Struct):
    """A package for sale; `amount` is in MB as Airalo counts them."""

    id: str
    amount: Quantity
    day: int
    type: str = "sim"
    is_unlimited: bool | None = False
    title: str | None = None
    net_price: Decimal | None = None
    voice: Any = None
    text: Any = None

    def supplied(
        self, brand: str, coverage: tuple[SuppliedCountry, ...], notices: Collection[str]
    ) -> SuppliedPlan:
        """Return the package as a plan; its cost is an estimate, because only an order is exact."""
        talks = self.voice or self.text
        return SuppliedPlan(
            provider_plan_id=self.id,
            name=f"{brand} {self.title or self.id}",
            data_mb=None if self.is_unlimited else round(ours_mb(self.amount)),
            validity_days=self.day,
            coverage=coverage,
            cost=cost_of(self.net_price, "USD", None, estimated=True),
            notices=tuple(each for each in NOTICES if each in notices or (each == VOICE and talks)),
        )


class Named(Struct):
    """A package of a list, by its id."""

    id: str


class Content(Struct):
    """What a package on an eSIM holds."""

    id: str
    amount: Quantity


class InstalledPackage(Struct):
    """A package on an eSIM; `remaining` may be None, which tells nothing."""

    id: int
    status: str
    package: Content
    remaining: Quantity | None = None
    activated_at: str | None = None
    expired_at: str | None = None

    def usage(self) -> AddonUsage:
        """Return what is left; Airalo tells no numbers about a package without a limit."""
        initial_mb = ours_mb(self.package.amount)
        left = 0.0 if self.status == "FINISHED" else self.remaining
        if left is None:
            raise OddRecord("a package does not say what is left, at $.data[...].remaining")
        remaining_mb = min(max(0.0, ours_mb(left)), initial_mb)
        has_started = self.activated_at is not None or self.status == "EXPIRED"
        expires_at = moment(self.expired_at) if has_started else None
        plan = self.package.id.removesuffix(TOPUP)
        return AddonUsage(str(self.id), plan, initial_mb - remaining_mb, remaining_mb, expires_at)


class Country(Struct):
    """A country in which an operator's packages work."""

    country_code: str


class Operator(Struct):
    """An operator, or a brand of Airalo over several, with its packages and what they ask for."""

    title: str
    packages: list[Any]
    countries: list[Any]
    coverages: list[Any] | None = None
    is_kyc_verify: Any = None
    activation_policy: Any = None
    plan_type: Any = None
    apn_type: Any = None

    @property
    def notices(self) -> set[str]:
        said = {
            IDENTITY: str(self.is_kyc_verify).lower() in {"true", "1"},
            AT_INSTALLATION: self.activation_policy == "installation",
            VOICE: self.plan_type not in {None, "", "data"},
            APN: self.apn_type == "manual",
        }
        return {notice for notice, applies in said.items() if applies}

    def covered(self, where: str, odd: list[OddEntry]) -> tuple[SuppliedCountry, ...]:
        networks = operators_by_country(self.coverages or [], f"{where}.coverages", odd)
        named = entries(self.countries, Country, f"{where}.countries", odd)
        codes = sorted({country.country_code for _, country in named})
        return tuple(SuppliedCountry(c, networks.get(c, ())) for c in codes if ISO.fullmatch(c))


class Area(Struct):
    """A country or region of the catalogue."""

    operators: list[Any]


class CataloguePage(Struct):
    """A page of the catalogue; from the second page on, `data` is an object with numbered keys."""

    data: list[Any] | dict[str, Any]
    meta: Pages

    def plans(self, page: int) -> Iterator[Supplied]:
        """Yield the packages for new eSIMs with their countries, and what cannot be read."""
        odd: list[OddEntry] = []
        for at, area in entries(self.data, Area, f"page {page} $.data", odd):
            for where, operator in entries(area.operators, Operator, f"{at}.operators", odd):
                coverage = operator.covered(where, odd)
                listed = entries(operator.packages, Package, f"{where}.packages", odd, "id")
                for _, package in listed:
                    if package.type == "sim":
                        yield package.supplied(operator.title, coverage, operator.notices)
        yield from odd


class Amount(Struct):
    """An amount of money."""

    amount: Decimal
    currency: str


class Account(Struct, rename="camel"):
    """An account with its credit."""

    available_balance: Amount


class Balances(Struct):
    """Our account; an empty list if there is none."""

    balances: Account | list[Account]

    @property
    def balance(self) -> ProviderBalance | None:
        accounts = self.balances if isinstance(self.balances, list) else [self.balances]
        left = [each.available_balance for each in accounts]
        return balance_of(left[0].amount, left[0].currency) if left else None


def ours_mb(theirs: float) -> float:
    """Convert MB of Airalo, of which a GB has 1024, to ours, of which a GB has 1000."""
    return theirs * 1000 / 1024
