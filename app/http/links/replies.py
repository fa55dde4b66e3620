"""The replies about links: eSIM, usage, plans and where they work."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, get_args
from urllib.parse import quote
from uuid import UUID

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import asdict

from app.http.catalogue import CountryCode, CountryCoverage, Notices, SponsorProfile, show_country
from app.http.edge.replies import ErrorDetail, Mcc, Mnc, Page, ReplyMeta, example, time_or_null
from app.http.edge.schemas import example_of
from domain.catalogue import plan
from domain.links import network
from domain.links.esim import ICCID_FORM
from domain.links.link import LINK_STATES
from domain.links.link import Link as LinkAggregate
from domain.links.readings import LinkReading, PlanStage, PlanUsage
from projections.engine.shape import (
    MORE_MAY_COME,
    PLAN_NAME,
    Amount,
    Currency,
    Moment,
    Shape,
    format_time,
    id_of,
    means,
    one_of,
)
from projections.models.links import LinkRow

# What a network can do, and for how long after its activation a link can be cancelled.
Offered = tuple[Collection[str], timedelta]

APPLE = "https://esimsetup.apple.com/esim_qrcode_provisioning?carddata="
ANDROID = "https://esimsetup.android.com/esim_qrcode_provisioning?carddata="
LPA: Final = "LPA:1$rsp.example$JQ-XK2F"  # In examples.
MB_DECIMALS = 3  # A kilobyte; smaller digits come from adding fractions.

STATUSES: Final = LINK_STATES
CAPABILITIES: Final = get_args(network.Capability)
STATUS: Final = one_of("LinkStatus", STATUSES, MORE_MAY_COME)
Capability = Annotated[str, means(**one_of("NetworkCapability", CAPABILITIES, MORE_MAY_COME))]
Iccid = Annotated[
    str,
    means("The number of the eSIM (ITU-T E.118)."),
    means(example="8988399901234567897", pattern=f"^{ICCID_FORM}$"),
]
UsedMb = Annotated[float, means("Data used so far, in MB (1 GB is 1000 MB).", example=104.2)]
RemainingMb = Annotated[float, means("Data that is left, in MB.", example=4895.8)]
Paid = Annotated[Amount, means("What your wallet has paid.", example="4.50")]


class Link(Shape, kw_only=True):
    """An eSIM of its reader's organization, without its plans."""

    id: Annotated[UUID, means("The link.")]
    name: Annotated[str | None, means("How you call it, if at all.", example="Van 12")]
    iccid: Iccid
    status: Annotated[
        str,
        means("Whether it can be used: in a list as last seen; `ended`: it is over."),
        means(**STATUS, example="active"),
    ]
    created_at: Annotated[Moment, means("When it was activated (UTC).")]
    sponsor_profile: Annotated[
        SponsorProfile | None, means("The profile of the network that it runs on; null: not known.")
    ]
    installed_at: Annotated[Moment | None, means("When it was first seen in a device (UTC).")]
    first_used_at: Annotated[Moment | None, means("When it first carried traffic (UTC).")]
    lpa_profile: Annotated[
        str | None,
        means("Its activation code (GSMA SGP.22 §4.1); null: not known, or erased.", example=LPA),
    ]
    confirmation_code: Annotated[
        str | None,
        means("What the phone asks for when it is installed; null: nothing, not known, or erased."),
        means(example="4711"),
    ]
    apple_activation_url: Annotated[
        str | None,
        means("Opens the installation on an iPhone (iOS 17.4 or later)."),
        means(example=APPLE + quote(LPA, safe="")),
    ]
    android_activation_url: Annotated[
        str | None,
        means("Opens the installation on Android.", example=ANDROID + quote(LPA, safe="")),
    ]
    msisdn: Annotated[
        str | None,
        means("Its phone number (ITU-T E.164); null: it has none, or not yet."),
        means(example="+883999765432109"),
    ]
    data_used_mb: UsedMb
    data_remaining_mb: RemainingMb
    data_total_mb: Annotated[
        float, means("Data of its plans as bought, in MB; expired ones count.", example=5000.0)
    ]
    expires_at: Annotated[
        Moment | None,
        means(
            "The latest end of a plan that is in use and has data left; null: there is none (UTC).",
            example="2026-12-21T03:06:20.000Z",
        ),
    ]
    notices: Notices
    usage_as_of: Annotated[Moment, means("When usage was read from the network (UTC).")]
    network: Annotated[
        str, means("The network that it runs on, with all its plans.", example="simulated")
    ]
    capabilities: Annotated[
        list[Capability],
        means(
            "What this network can do: another request is 409 `NOT_SUPPORTED_BY_NETWORK`. Without "
            "`location` the network status has no `network`. No `cancel`: no link is cancelled.",
            example=[*CAPABILITIES],
        ),
    ]
    cancellable_until: Annotated[
        Moment | None,
        means(
            "Until when it can be cancelled while nobody installs or uses it; null: it cannot "
            "(UTC).",
            example="2026-12-05T03:04:05.678Z",
        ),
    ]


class Activation(Struct):
    """A plan on a link, as it was bought."""

    id: Annotated[UUID, means("The activation, to remove it by.")]
    plan_id: Annotated[UUID, means("The plan.")]
    plan_name: Annotated[str, means("Its name when it was bought.", example=PLAN_NAME)]
    status: Annotated[
        str,
        means("One that is used up stays active until it expires."),
        means(**one_of("ActivationStatus", ["active", "expired"], MORE_MAY_COME)),
    ]
    activation_date: Annotated[Moment, means("When it was bought (UTC).")]
    expiry_date: Annotated[
        Moment | None,
        means("When it ends; null until it is first used (UTC)."),
        means(example="2026-12-21T03:06:20.000Z"),
    ]
    data_used_mb: UsedMb
    data_remaining_mb: RemainingMb
    coverage_countries: list[CountryCode]


class LinkDetail(Link, kw_only=True):
    """An eSIM of its reader's organization with its plans."""

    activations: Annotated[
        list[Activation],
        means(
            "Its plans: those in use with data left come first, then those that wait "
            "for their first use, used up and expired ones, each oldest first. Removed ones are "
            "not listed."
        ),
    ]
    coverage_data: Annotated[
        list[CountryCoverage], means("Where its active plans work, all taken together.")
    ]


class ChangedLink(LinkDetail, kw_only=True):
    """A link after a change of its plans, and what that cost."""

    amount_charged: Paid
    currency: Currency


class PlayedLink(LinkDetail, kw_only=True):
    """A link after what a sandbox has let happen to it."""

    changed: Annotated[bool, means("Whether anything has happened; false: it was so already.")]


class NewLink(LinkDetail, kw_only=True):
    """A link that has just been created, and what it cost."""

    lpa_profile: Annotated[
        str, means("Its activation code (GSMA SGP.22 §4.1); empty: erased since.", example=LPA)
    ]
    activation_url: Annotated[
        str | None,
        means("The same as `apple_activation_url`.", example=APPLE + quote(LPA, safe="")),
    ]
    amount_charged: Paid
    currency: Currency


class Handover(Struct, kw_only=True):
    """The address of a traveller's page."""

    url: Annotated[
        str | None,
        means(
            "Give it to the traveller alone: whoever has it can install the eSIM. Null: there is "
            "none, or this is a replay, for it is not stored and is told once.",
            example="https://api.partner.test/e/hov_dGhpcyBpcyBub3QgYSBzZWNyZXQsIG9ubHkgdGV4dA",
        ),
    ]
    expires_at: Annotated[Moment | None, means("When it ends; null: there is none (UTC).")]


class LinkQuote(Shape):
    """What a link would cost now; nothing was made, taken or kept."""

    plan_id: Annotated[UUID, means("The plan.")]
    plan_name: Annotated[str, means("Its name.", example=PLAN_NAME)]
    price: Annotated[Amount, means("What your wallet would pay.", example="4.50")]
    currency: Currency
    balance_after: Annotated[
        Amount | None, means("What your wallet would then hold; null: you have none.")
    ]


class LinkRequest(Struct, kw_only=True):
    """A link that was asked for."""

    id: Annotated[
        UUID,
        means("The request; the link has the same id once there is one.", example=id_of("link")),
    ]
    status: Annotated[
        str,
        means("Whether it is being made, is there, or has failed."),
        means(**one_of("LinkRequestStatus", ["pending", "active", "failed"], MORE_MAY_COME)),
    ]


class LinkOutcome(LinkRequest, kw_only=True):
    """A link that was asked for, and what has become of it."""

    link: Annotated[NewLink | None, means("The link; null: there is none, or not yet.")]
    error: Annotated[ErrorDetail | None, means("Why it has failed; null: it has not.")]
    refunded: Annotated[
        Amount | None, means("What has come back after a failure; null: it has not failed.")
    ]


class ServingNetwork(Struct):
    """The mobile network that serves a device; what is not known is absent."""

    country_code: CountryCode
    operator: Annotated[str, means("Who runs it.", example="Orange")]
    mcc: Mcc | UnsetType = UNSET
    mnc: Mnc | UnsetType = UNSET
    radio: Annotated[str, means("Its generation.", example="5G")] | UnsetType = UNSET


class NetworkStatus(Shape):
    """Whether and where a link is connected."""

    link_id: Annotated[UUID, means("The link.")]
    iccid: Iccid
    status: Annotated[str, means("Whether it can be used.", **STATUS, example="active")]
    connected: Annotated[bool, means("Whether it is online; false where the network cannot tell.")]
    network: Annotated[
        ServingNetwork | None,
        means("The network that serves it; null: it is offline, or nobody knows."),
    ]
    last_seen_at: Annotated[Moment | None, means("When it was last online (UTC).")]
    as_of: Annotated[Moment, means("When the network said so (UTC).")]
    cached: Annotated[bool, means("Whether this was stored, and not asked of the network now.")]


class LinkMeta(ReplyMeta, kw_only=True):
    """What the reply about a link says about itself."""

    stale: Annotated[
        bool | UnsetType,
        means("There when the network could not be reached: what it said last is shown."),
        means(enum=[True]),
    ] = UNSET


class LinkPage(Page[Link]):
    """Links."""


def show_link(
    reading: LinkReading, terms: Mapping[UUID, plan.PlanTerms], offered: Offered
) -> LinkDetail:
    """Return a link with its plans; `terms` are the present terms of these plans, by id."""
    link = reading.link
    assert link.iccid is not None
    assert link.activated_at is not None
    return LinkDetail.of(
        reading,
        link,
        created_at=format_time(link.activated_at),
        **_codes(reading.code),
        **_usage(reading.plans, reading.usage, reading.as_of),
        **_network(link, reading.status, link.activated_at, offered),
        activations=[_activation(each) for each in reading.plans],
        coverage_data=_coverage(reading.plans, terms),
    )


def show_row(
    row: LinkRow,
    plans: Sequence[PlanUsage],
    usage: network.Usage | None,
    code: network.ActivationCode | None,
    offered: Offered,
) -> Link:
    """Return a link of a list; `plans` are its current plans with their usage."""
    return Link.of(
        row,
        **_codes(code),
        **_usage(plans, usage, usage.as_of if usage is not None else row.created_at),
        **_network(row, row.status, row.created_at, offered),
    )


def _network(
    link: LinkAggregate | LinkRow, status: str, activated_at: datetime, offered: Offered
) -> dict[str, Any]:
    capabilities, cancel_within = offered
    known = {*capabilities} - ({"cancel"} if not cancel_within else set())
    is_new = status != "ended" and not (link.installed_at or link.first_used_at)
    until = activated_at + cancel_within if is_new and "cancel" in known else None
    return {
        "network": link.network,
        "capabilities": [each for each in CAPABILITIES if each in known],  # As for all others.
        "cancellable_until": time_or_null(until),
    }


def show_status(
    link: LinkAggregate, status: network.NetworkStatus, *, cached: bool
) -> NetworkStatus:
    assert link.iccid is not None
    serving = status.network
    known = {} if serving is None else {k: v for k, v in asdict(serving).items() if v is not None}
    return NetworkStatus.of(
        status,
        link_id=link.id,
        iccid=link.iccid,
        status=status.status if link.ended is None else "ended",
        network=serving and ServingNetwork(**known),
        cached=cached,
    )


def _codes(code: network.ActivationCode | None) -> dict[str, Any]:
    """Return the activation code and the pages that install it; null if the code is not known."""
    carddata = quote(code.lpa, safe="") if code is not None else None
    return {
        "lpa_profile": code and code.lpa,
        "confirmation_code": code and code.confirmation_code,
        "apple_activation_url": carddata and APPLE + carddata,
        "android_activation_url": carddata and ANDROID + carddata,
    }


def _usage(
    plans: Sequence[PlanUsage], usage: network.Usage | None, as_of: datetime
) -> dict[str, Any]:
    bought = [each.activation.plan for each in plans if not each.is_expired]
    in_use = [each for each in plans if each.stage is PlanStage.IN_USE]
    ends = [each.expires_at for each in in_use if each.expires_at is not None]
    return {
        "msisdn": usage.msisdn if usage is not None else None,
        "data_used_mb": round(sum((each.used_mb for each in plans), 0.0), MB_DECIMALS),
        "data_remaining_mb": round(sum((each.remaining_mb for each in plans), 0.0), MB_DECIMALS),
        "data_total_mb": float(sum(each.activation.plan.data_mb for each in plans)),
        "expires_at": time_or_null(max(ends, default=None)),
        "notices": [*dict.fromkeys(notice for each in bought for notice in each.notices or ())],
        "usage_as_of": format_time(as_of),
    }


def _activation(each: PlanUsage) -> Activation:
    bought = each.activation.plan
    return Activation(
        id=each.activation.id,
        plan_id=bought.plan_id,
        plan_name=bought.name,
        status="expired" if each.is_expired else "active",
        activation_date=format_time(each.activation.bought_at),
        expiry_date=time_or_null(each.expires_at),
        data_used_mb=round(each.used_mb, MB_DECIMALS),
        data_remaining_mb=round(each.remaining_mb, MB_DECIMALS),
        coverage_countries=bought.countries,
    )


def _coverage(
    plans: Sequence[PlanUsage], terms: Mapping[UUID, plan.PlanTerms]
) -> list[CountryCoverage]:
    """Return the countries of the active plans as bought, with their networks of today."""
    found: dict[str, dict[str, plan.MobileOperator]] = {}
    for bought in (each.activation.plan for each in plans if not each.is_expired):
        today = terms.get(bought.plan_id)
        networks = {each.country_code: each.operators for each in today.coverage} if today else {}
        for code in bought.countries:
            operators = found.setdefault(code, {})
            for each in networks.get(code, []):  # A known one gets the generations that it lacks.
                known = [operators[each.name]] if each.name in operators else []
                types = dict.fromkeys(it for of in (*known, each) for it in of.network_types)
                operators[each.name] = plan.MobileOperator(each.name, [*types])
    return [show_country(code, operators.values()) for code, operators in sorted(found.items())]


LINK: Final = example("The link.", LinkDetail, "LinkReply", meta=LinkMeta)
_UNUSED: Final[Any] = {"data_used_mb": 0.0, "data_remaining_mb": 5000.0}
_LATER: Final[Any] = dict.fromkeys(("expires_at", "installed_at", "first_used_at"))
_NEW: Final = [example_of(Activation, expiry_date=None, **_UNUSED)]
CREATED: Final = example(
    "The link is active, and paid.", NewLink, activations=_NEW, **_UNUSED, **_LATER
)
OUTCOME: Final = example(
    "What has become of the request.",
    LinkOutcome,
    status="active",
    error=None,
    refunded=None,
    link=CREATED.data,
)
