"""Organizations and their API clients: who may call, for how much, with which scopes."""

from collections.abc import Sequence
from dataclasses import field
from datetime import datetime, timedelta
from typing import Any, Literal, Self
from uuid import UUID

from domain.cause import Cause
from domain.daily import Daily
from domain.errors import LastClient, NotPossible
from domain.log.aggregate import ByOperator, Created, Root, fact, sets

Status = Literal["active", "suspended", "inactive"]
OF_KEYS = "clients"  # The scope of who renews and ends the clients of its organization.
SCOPES = ("lookup", "plans", "links", "wallet", "webhooks", "deposits", OF_KEYS)
# A client has these only if its list of scopes names them, and those of machines only if it is a
# machine-to-machine one. The others need an organization of their own.
NAMED_ONLY = frozenset({"deposits", OF_KEYS})
OF_MACHINES = frozenset({"deposits"})
# The scopes of the first release. A client with exactly these was registered without a list.
FIRST_SCOPES = ["lookup", "plans", "links", "wallet"]
# Changes a day (UTC). Partners make them by themselves, and the log keeps each for ever.
THRESHOLDS_MAX = 20
ROTATIONS_MAX = 20
# How long the secret before the newest still counts, so that a rotation needs no outage.
OLD_ENDS = timedelta(hours=24)
OLD_ENDS_MAX = timedelta(days=90)  # A quarter; whoever needs longer has not rotated.
# So long for rotations of releases before 1.0.0, which set no end.
ENDLESS_ENDS = timedelta(days=30)


class Organization(Root):
    """A customer. `price_micros` is its own price per lookup, None for the general one."""

    TOPIC = "organization"

    class Registered(Created, ByOperator):
        TOPIC = "organization.registered"
        SETS = sets("name", "price_micros", "monthly_link_fee_micros", thresholds_set=Daily())

        name: str
        price_micros: int | None
        monthly_link_fee_micros: int

    class Suspended(Root.Event, ByOperator):
        TOPIC = "organization.suspended"
        SETS = sets(status="suspended")

    class Activated(Root.Event, ByOperator):
        TOPIC = "organization.activated"
        SETS = sets(status="active")

    class Deactivated(Root.Event, ByOperator):
        TOPIC = "organization.deactivated"
        SETS = sets(status="inactive")

    class PriceChanged(Root.Event, ByOperator):
        TOPIC = "organization.price_changed"
        SETS = sets("price_micros")

        price_micros: int | None

    class MonthlyLinkFeeChanged(Root.Event, ByOperator):
        TOPIC = "organization.monthly_link_fee_changed"
        SETS = sets("monthly_link_fee_micros")

        monthly_link_fee_micros: int

    class LookupSwitched(Root.Event, ByOperator):
        TOPIC = "organization.lookup_switched"
        SETS = sets(lookup_enabled=fact("enabled"))

        enabled: bool

    class LowBalanceThresholdSet(Root.Event):
        """The organization chose this itself; None: it is not told of a low balance.

        `balance_micros` and `currency` are there where its wallet held less at that moment, so
        that it is told at once.
        """

        TOPIC = "organization.low_balance_threshold_set"

        threshold_micros: int | None
        balance_micros: int | None = field(default=None, kw_only=True)
        currency: str | None = field(default=None, kw_only=True)

        @property
        def organization_id(self) -> UUID:
            return self.originator_id

        def apply(self, aggregate: "Organization") -> None:
            aggregate.low_balance_threshold_micros = self.threshold_micros
            aggregate.thresholds_set = aggregate.thresholds_set.again(self.timestamp)

    class RateLimitSet(Root.Event, ByOperator):
        """Requests a minute; 0: as many as it likes, None: the general limit."""

        TOPIC = "organization.rate_limit_set"
        SETS = sets(rate_limit_per_minute=fact("per_minute"))

        per_minute: int | None

    class SpendingLimitSet(Root.Event, ByOperator):
        """What it may spend in a calendar month (UTC); None: all that it has."""

        TOPIC = "organization.spending_limit_set"
        SETS = sets(spending_limit_micros=fact("limit_micros"))

        limit_micros: int | None

    class KeyHoldersChanged(Root.Event):
        """Which of its clients have the scope `clients`; saved with what changes that.

        So two of them cannot end each other.
        """

        TOPIC = "organization.key_holders_changed"
        SETS = sets(key_holders=fact("client_ids"))

        client_ids: list[str]

    class BrandSet(Root.Event, ByOperator):
        """How the pages look that its travellers open; None: as those of everybody.

        `colour` is #rrggbb, `logo` a PNG in base64.
        """

        TOPIC = "organization.brand_set"
        SETS = sets(brand_colour=fact("colour"), brand_logo=fact("logo"))

        colour: str | None
        logo: str | None

    class SandboxReset(Root.Event):
        """It begins anew in a sandbox: what has ended before is not listed any more."""

        TOPIC = "organization.sandbox_reset"

    class CustomerNumberSet(Root.Event, ByOperator):
        """What bookkeeping calls this customer; None: it has no account of its own there."""

        TOPIC = "organization.customer_number_set"
        SETS = sets("customer_number")

        customer_number: str | None

    name: str
    price_micros: int | None
    monthly_link_fee_micros: int
    thresholds_set: Daily
    status: Status = "active"
    lookup_enabled: bool = True
    low_balance_threshold_micros: int | None = None
    rate_limit_per_minute: int | None = None
    spending_limit_micros: int | None = None
    key_holders: Sequence[str] = ()
    brand_colour: str | None = None
    brand_logo: str | None = None
    customer_number: str | None = None

    @classmethod
    def register(cls, organization_id: UUID, cause: Cause, **facts: Any) -> Self:
        """Register an organization; unless its `facts` say more, it has no terms of its own."""
        general = {"price_micros": None, "monthly_link_fee_micros": 0}
        return cls.begin(cls.Registered, cause, organization_id, **general | facts)

    def change_status(self, status: Status, cause: Cause) -> None:
        events: dict[Status, type[Root.Event]] = {
            "active": self.Activated,
            "suspended": self.Suspended,
            "inactive": self.Deactivated,
        }
        if status != self.status:
            self.record(events[status], cause)

    def change_price(self, price_micros: int | None, cause: Cause) -> None:
        """Set its own price per lookup; None returns to the general price."""
        if price_micros != self.price_micros:
            self.record(self.PriceChanged, cause, price_micros=price_micros)

    def change_monthly_link_fee(self, fee_micros: int, cause: Cause) -> None:
        if fee_micros != self.monthly_link_fee_micros:
            self.record(self.MonthlyLinkFeeChanged, cause, monthly_link_fee_micros=fee_micros)

    def switch_lookup(self, cause: Cause, *, enabled: bool) -> None:
        """Allow or forbid new lookups; accepted jobs are still finished."""
        if enabled != self.lookup_enabled:
            self.record(self.LookupSwitched, cause, enabled=enabled)

    def set_low_balance_threshold(
        self, threshold_micros: int | None, cause: Cause, wallet: tuple[int, str] | None = None
    ) -> None:
        """Choose the balance below which to be notified; None: never. Raises RateLimited.

        `wallet` is its balance in micro-units and its currency.
        """
        if threshold_micros != self.low_balance_threshold_micros:
            message = f"The threshold was changed {THRESHOLDS_MAX} times today."
            self.thresholds_set.require_less(THRESHOLDS_MAX, cause.at, message)
            is_low = wallet is not None and wallet[0] < (threshold_micros or 0)
            balance_micros, currency = wallet if wallet is not None and is_low else (None, None)
            self.record(
                self.LowBalanceThresholdSet,
                cause,
                threshold_micros=threshold_micros,
                balance_micros=balance_micros,
                currency=currency,
            )

    def set_rate_limit(self, per_minute: int | None, cause: Cause) -> None:
        """Set how many requests a minute it may send; None returns to the general limit."""
        if per_minute != self.rate_limit_per_minute:
            self.record(self.RateLimitSet, cause, per_minute=per_minute)

    def set_spending_limit(self, limit_micros: int | None, cause: Cause) -> None:
        """Set what it may spend in a month; None lets it spend all that it has."""
        if limit_micros != self.spending_limit_micros:
            self.record(self.SpendingLimitSet, cause, limit_micros=limit_micros)

    def set_brand(self, colour: str | None, logo: str | None, cause: Cause) -> None:
        if (colour, logo) != (self.brand_colour, self.brand_logo):
            self.record(self.BrandSet, cause, colour=colour, logo=logo)

    def set_customer_number(self, number: str | None, cause: Cause) -> None:
        """Set its number in bookkeeping; organizations of one customer have the same."""
        if number != self.customer_number:
            self.record(self.CustomerNumberSet, cause, customer_number=number)

    def remove_key_holder(self, client_id: str, cause: Cause, *, spares_last: bool) -> None:
        """Note that a client ends; raises LastClient if one must be left and none would be."""
        if client_id in self.key_holders:
            left = [each for each in self.key_holders if each != client_id]
            if spares_last and not left:
                raise LastClient
            self.record(self.KeyHoldersChanged, cause, client_ids=left)


class ApiClient(Root):
    """An OAuth 2.0 confidential client (RFC 6749 §2.1).

    `organization_id` is None for an approved machine-to-machine client, which names an organization
    in each request. Only keyed hashes of secrets are stored.
    """

    TOPIC = "api_client"
    OWN = ("client_id",)

    class Registered(Created, ByOperator):
        TOPIC = "api_client.registered"

        client_id: str
        organization_id: UUID | None
        scopes: list[str]
        secret_hash: str

        def apply(self, aggregate: "ApiClient") -> None:
            aggregate.client_id = self.client_id
            aggregate.organization_id = self.organization_id
            aggregate.scopes = granted(self.scopes)
            aggregate.secret_hashes, aggregate.rotations = [self.secret_hash], Daily()

    class SecretRotated(Root.Event, ByOperator):
        """`kept_hashes` are those of older secrets, which stay valid until `kept_until`.

        `organization_id` is there since its organization is told; its client may be the actor.
        """

        TOPIC = "api_client.secret_rotated"

        client_id: str
        secret_hash: str
        kept_hashes: list[str]
        kept_until: datetime | None = field(default=None, kw_only=True)
        organization_id: UUID | None = field(default=None, kw_only=True)

        def apply(self, aggregate: "ApiClient") -> None:
            aggregate.rotated_at = self.timestamp
            aggregate.rotations = aggregate.rotations.again(self.timestamp)
            aggregate.secret_hashes = [self.secret_hash, *self.kept_hashes]
            end = self.kept_until or self.timestamp + ENDLESS_ENDS
            aggregate.old_until = end if self.kept_hashes else None

    class SecretRehashed(Root.Event):
        """A secret was used, and from now on its hash is kept under a newer pepper."""

        TOPIC = "api_client.secret_rehashed"

        client_id: str
        old_hash: str
        secret_hash: str

        def apply(self, aggregate: "ApiClient") -> None:
            hashes = aggregate.secret_hashes
            aggregate.secret_hashes = [
                self.secret_hash if each == self.old_hash else each for each in hashes
            ]

    class Revoked(Root.Event, ByOperator):
        TOPIC = "api_client.revoked"
        SETS = sets(revoked=True)

        client_id: str
        organization_id: UUID | None = field(default=None, kw_only=True)

    client_id: str
    organization_id: UUID | None
    scopes: list[str]
    secret_hashes: list[str]  # Of the newest secret, then of the one that it has replaced.
    rotations: Daily
    old_until: datetime | None = None  # When the replaced one ends.
    rotated_at: datetime | None = None  # When the newest was made, if it replaced one.
    revoked: bool = False

    @classmethod
    def register(cls, client_id: str, cause: Cause, *, scopes: Sequence[str], **facts: Any) -> Self:
        """Register a client; without a list it has all scopes but those that must be named."""
        facts |= {"client_id": client_id, "scopes": list(scopes) or FIRST_SCOPES}
        return cls.begin(cls.Registered, cause, ApiClient.id_of(client_id), **facts)

    def hashes_at(self, moment: datetime) -> list[str]:
        """Return the hashes that count: the newest, and the one before it until its end."""
        counts = not_over(self.old_until, moment)
        return self.secret_hashes if counts else self.secret_hashes[:1]

    def rotate_secret(self, secret_hash: str, cause: Cause, old_ends: timedelta = OLD_ENDS) -> None:
        """Add a secret; the one before it stays valid for a while, any older one ends at once."""
        if self.revoked:
            raise NotPossible(f"client {self.client_id} is revoked")
        self.record(
            self.SecretRotated,
            cause,
            secret_hash=secret_hash,
            kept_hashes=self.secret_hashes[:1] if old_ends else [],
            kept_until=cause.at + old_ends if old_ends else None,
            organization_id=self.organization_id,
        )

    def rehash_secret(self, old_hash: str, secret_hash: str, cause: Cause) -> None:
        """Keep a secret under a newer pepper, unless it has been replaced meanwhile."""
        if old_hash in self.secret_hashes:
            self.record(self.SecretRehashed, cause, old_hash=old_hash, secret_hash=secret_hash)

    def revoke(self, cause: Cause) -> None:
        if not self.revoked:
            self.record(self.Revoked, cause, organization_id=self.organization_id)


class SecretRotation(Root):
    """A rotation that its organization asked for; with an Idempotency-Key its id is derived."""

    TOPIC = "secret_rotation"

    class Asked(Created):
        """Saved together with the rotation. No secret is kept, so no repeat shows it."""

        TOPIC = "secret_rotation.asked"
        SETS = sets("client_id", "old_ends_s")

        client_id: str
        old_ends_s: int

    client_id: str
    old_ends_s: int


def not_over(end: datetime | None, moment: datetime) -> datetime | None:
    """Return the end of an old secret, if there is one that still counts at a moment."""
    return end if end is not None and moment < end else None


def granted(listed: list[str]) -> list[str]:
    """Return the scopes of a client that was registered with this list.

    A client without a list also has the scopes that were added after it was made.
    """
    if listed != FIRST_SCOPES:
        return listed
    return [each for each in SCOPES if each not in NAMED_ONLY]
