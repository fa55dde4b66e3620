"""The replies of eSIM Go as its document of v2.5 describes them, converted to our terms.

Fields that we do not use are ignored. Where the provider's pages, document and examples differ, all
their forms are read. Quantities are bytes, 1 MB = 1,000,000.

Also its notifications (callbacks, version 3). They have neither a number nor a time, so a recorded
one could be replayed for ever. Therefore only the ICCID is taken from them: it says which eSIM to
read.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal, TypeVar

from msgspec import MsgspecError, Raw, Struct
from msgspec.json import decode as decode_json
from msgspec.structs import replace

from app.adapters.networks.wire import Operators, Quantity, cost_of, entries, moment
from app.adapters.remote.exchange import OddRecord, Reply, decode, decode_entry
from domain.catalogue.supplied import VOICE, OddEntry, SuppliedCountry, SuppliedPlan
from domain.links.esim import ICCID
from domain.links.network import AddonUsage, Forged, LinkStatus, Order, ServingNetwork

MB = 1_000_000
FAR_MS = 10**14  # The year 5138; datetime cannot hold much later moments.
LAPSES_AFTER = timedelta(days=365)  # A bundle that nobody has used for twelve months.

ISO = re.compile(r"[A-Z]{2}")
SIGNATURE = "x-signature-sha256"

State = Literal["active", "suspended", "deactivated"]
T = TypeVar("T")

STATUS: Mapping[State, LinkStatus] = {
    "active": "active",
    "suspended": "suspended",
    "deactivated": "inactive",
}


class Installed(Struct):
    """An eSIM as an order lists it."""

    iccid: str


class OrderLine(Struct):
    """One item of an order; `item` is the name of a bundle."""

    type: str
    quantity: int = 1
    item: str | None = None
    esims: list[Installed] | None = None
    iccids: list[str] | None = None


class Placed(Struct, rename="camel"):
    """An order, as its placement and the list of orders show it."""

    order: list[OrderLine]
    status: str
    order_reference: str
    total: Decimal | None = None
    currency: str | None = None
    created_date: str | None = None
    create_date: str | None = None

    def read(self, bundle: str) -> Order | None:
        """Return the order if it put one bundle of this name on one eSIM; None if it did not."""
        placed_at = moment(self.created_date or self.create_date)
        if len(self.order) != 1 or self.status.lower() != "completed" or placed_at is None:
            return None
        (line,) = self.order
        iccids = {each.iccid for each in line.esims or []} | {*(line.iccids or [])}
        if line.item != bundle or line.quantity != 1 or len(iccids) != 1:
            return None
        (iccid,) = iccids
        if not ICCID.fullmatch(iccid):
            return None
        cost = cost_of(self.total, self.currency, self.order_reference)
        return Order(self.order_reference, iccid, bundle, placed_at, cost=cost)


class OddOrder(Struct, rename="camel"):
    """The fields that decide whether an order in an unknown form matters."""

    order: Any = None
    created_date: Any = None
    create_date: Any = None

    def may_be(self, bundle: str, since: datetime, until: datetime) -> bool:
        date = self.created_date or self.create_date
        placed_at = moment(date) if isinstance(date, str) else None
        if placed_at is not None and not since <= placed_at <= until:
            return False
        lines = self.order if isinstance(self.order, list) else [{}]
        items = [each.get("item") if isinstance(each, dict) else None for each in lines]
        return any(each == bundle or not isinstance(each, str) for each in items)


class Assignment(Struct, rename="camel"):
    """A bundle on an eSIM; `start_time` is when its data was first used."""

    id: str
    bundle_state: str
    initial_quantity: Quantity
    remaining_quantity: Quantity
    assignment_date_time: str | None = None
    assignment_reference: str | None = None
    start_time: str | None = None
    end_time: str | None = None
    unlimited: bool = False

    @property
    def has_started(self) -> bool:
        """Whether any of its data was used, so that it cannot be given back."""
        return (
            self.bundle_state.lower() not in {"processing", "queued"}
            or moment(self.start_time) is not None
            or self.remaining_quantity < self.initial_quantity
        )

    def usage(self, bundle: str, now: datetime) -> AddonUsage:
        """Return what is left of the bundle. One without a limit is never used up."""
        state = self.bundle_state.lower()
        initial_mb = self.initial_quantity / MB
        remaining_mb = min(max(0.0, self.remaining_quantity / MB), initial_mb)
        used_mb = initial_mb - remaining_mb
        expires_at = self._expires_at()
        if state == "lapsed":
            expires_at, remaining_mb = self._lapsed_at(now), 0.0
        elif state == "depleted" and not self.unlimited:
            used_mb, remaining_mb = initial_mb, 0.0
        elif self.unlimited:
            remaining_mb = initial_mb
        # The reference is that of the order and the number of its line, counted from 0.
        order, _, _ = (self.assignment_reference or "").rpartition("-")
        return AddonUsage(self.id, bundle, used_mb, remaining_mb, expires_at, order or None)

    def _expires_at(self) -> datetime | None:
        used = moment(self.start_time) is not None or self.bundle_state.lower() == "expired"
        return moment(self.end_time) if used else None

    def _lapsed_at(self, now: datetime) -> datetime:
        assigned_at = moment(self.assignment_date_time)
        if assigned_at is None or assigned_at > now:
            assigned_at = now
        return min(moment(self.end_time) or assigned_at + LAPSES_AFTER, now)


class Bundle(Struct):
    """All assignments of one bundle to an eSIM."""

    name: str
    assignments: list[Assignment]


class Bundles(Struct):
    """The bundles of an eSIM."""

    bundles: list[Bundle]

    @property
    def present(self) -> Iterator[tuple[str, Assignment]]:
        """The names and assignments of bundles that are not revoked."""
        for bundle in self.bundles:
            for assignment in bundle.assignments:
                if assignment.bundle_state.lower() != "revoked":
                    yield bundle.name, assignment

    @property
    def first_used_at(self) -> datetime | None:
        starts = [moment(each.start_time) for _, each in self.present]
        return min((each for each in starts if each is not None), default=None)


class EsimDetails(Struct, rename="camel"):
    """An eSIM; `first_installed_date_time` is in ms since 1970, 0 before it was installed."""

    iccid: str
    state: State = "active"
    matching_id: str | None = None
    smdp_address: str | None = None
    first_installed_date_time: int | str | None = None
    msisdn: str | None = None

    @property
    def status(self) -> LinkStatus:
        return STATUS[self.state]

    @property
    def installed_at(self) -> datetime | None:
        value = self.first_installed_date_time
        if isinstance(value, str) and value.isdecimal():
            value = int(value[:20])  # A longer one is out of range all the same.
        if isinstance(value, int) and 0 < value < FAR_MS:
            return datetime.fromtimestamp(value / 1000, UTC)
        return moment(value) if isinstance(value, str) else None

    @property
    def lpa(self) -> str | None:
        """The activation code (GSMA SGP.22 §4.1); of an address that is a URL, only the host."""
        host = re.sub(r"^[a-z]+://", "", self.smdp_address or "").rstrip("/")
        return f"LPA:1${host}${self.matching_id}" if host and self.matching_id else None

    @property
    def number(self) -> str | None:
        """The phone number as E.164; only eSIMs with voice or SMS have one."""
        digits = (self.msisdn or "").removeprefix("+")
        return f"+{digits}" if re.fullmatch("[1-9][0-9]{1,14}", digits) else None


class Location(Struct, rename="camel"):
    """Where an eSIM was last seen; empty strings before it was seen anywhere."""

    network_name: str | None = None
    network_brand_name: str | None = None
    country: str | None = None
    last_seen: str | None = None

    @property
    def last_seen_at(self) -> datetime | None:
        return moment(self.last_seen)

    @property
    def serving(self) -> ServingNetwork | None:
        """The network in which the eSIM was seen; eSIM Go tells neither codes nor generation."""
        operator = self.network_brand_name or self.network_name
        if not operator or not ISO.fullmatch(self.country or ""):
            return None
        assert self.country is not None
        return ServingNetwork(self.country, operator)


class Organisation(Struct):
    """Our account."""

    balance: Decimal
    currency: str


class Country(Struct):
    """A country of a bundle."""

    iso: str | None = None


NAMED: Any = Country | str  # How a bundle names a country.


class Allowance(Struct):
    """A kind of use that a bundle allows, such as DATA, VOICE or SMS."""

    type: str = "DATA"


class CatalogueBundle(Struct, rename="camel"):
    """A bundle that can be ordered; it works in `countries` and in `roaming_enabled`."""

    name: str
    duration: int
    data_amount: Quantity
    description: str | None = None
    countries: list[Any] | None = None
    roaming_enabled: list[Any] | None = None
    unlimited: bool | None = False
    price: Decimal | None = None
    allowances: list[Any] | None = None

    def supplied(
        self, currency: str, operators: Operators, where: str, odd: list[OddEntry]
    ) -> SuppliedPlan:
        """Return the bundle as a plan; its cost is an estimate, because only an order is exact."""
        listed = [*(self.countries or []), *(self.roaming_enabled or [])]
        named = entries(listed, NAMED, f"{where}.countries", odd)
        codes = {each if isinstance(each, str) else each.iso or "" for _, each in named}
        allowed = entries(self.allowances or [], Allowance, f"{where}.allowances", odd)
        kinds = {each.type.upper() for _, each in allowed}
        return SuppliedPlan(
            provider_plan_id=self.name,
            name=self.description or self.name,
            data_mb=None if self.unlimited or self.data_amount <= 0 else round(self.data_amount),
            validity_days=self.duration,
            coverage=tuple(
                SuppliedCountry(code, operators.get(code, ()))
                for code in sorted(codes)
                if ISO.fullmatch(code)
            ),
            cost=cost_of(self.price, currency, None, estimated=True),
            notices=(VOICE,) if kinds - {"DATA"} else (),
        )


def listed_in(reply: Reply, kind: type[list[T]], name: str) -> list[T]:
    """Read a page of a list: an array, or an object that holds one under a name."""
    is_array = reply.body.lstrip().startswith(b"[")
    return decode(reply, kind, *([] if is_array else [name]))


def matching(
    orders: Sequence[Raw], bundle: str, since: datetime, until: datetime, behind: timedelta
) -> list[Order]:
    """Return the orders of one eSIM with a bundle that were placed from `since` to `until`.

    `behind` is how far eSIM Go's clock is behind ours. Raises OddRecord for an unreadable order
    that may be one of them; other unreadable orders are skipped.
    """
    read = [_order_of(each, bundle, since - behind, until) for each in orders]
    there = [replace(each, placed_at=each.placed_at + behind) for each in read if each is not None]
    return [order for order in there if since <= order.placed_at <= until]


def _order_of(raw: Raw, bundle: str, since: datetime, until: datetime) -> Order | None:
    may_be = True
    try:
        return decode_entry(raw, Placed).read(bundle)
    except OddRecord:
        with suppress(OddRecord):
            may_be = decode_entry(raw, OddOrder).may_be(bundle, since, until)
        if may_be:
            raise
    return None


class Notification(Struct):
    """A callback; one about our account has no ICCID. In one example the ICCID is a number."""

    iccid: str | int | None = None


def iccid_of(headers: Mapping[str, str], body: bytes, key: str) -> str | None:
    """Return the ICCID that a notification is about; None if it names none.

    The signature is HMAC-SHA256 of the body under the API key. The guide writes it in hexadecimal,
    the reference in base64, so both are accepted. Raises Forged if it is wrong or missing.
    """
    digest = hmac.new(key.encode(), body, hashlib.sha256).digest()
    signature = headers.get(SIGNATURE, "").strip().encode("utf-8", "replace")
    good = (digest.hex().encode(), base64.b64encode(digest))
    if not key or not any([hmac.compare_digest(signature, each) for each in good]):  # noqa: C419  # Both are compared, whatever the first says.
        raise Forged
    try:
        iccid = decode_json(body, type=Notification).iccid
    except MsgspecError:
        return None
    return str(iccid) if iccid is not None and ICCID.fullmatch(str(iccid)) else None
