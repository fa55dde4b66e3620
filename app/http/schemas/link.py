"""Links: what partners read of them."""

from typing import Any

from marshmallow import fields

from app.http.schemas.envelope import Output, ReplyMeta, described, reply
from app.http.schemas.link_input import STATUSES
from app.http.schemas.page import page_reply
from app.http.schemas.plan import COUNTRY, CountryCoverage, Plan, SponsorProfile
from app.http.schemas.wallet import AMOUNT, CURRENCY

ICCID = described("The number of the eSIM (ITU-T E.118).", example="8988399901234567897")
USED = described("Data used so far, in MB (1 GB is 1000 MB).", example=104.2)
REMAINING = described("Data that is left, in MB.", example=4895.8)


def moment(description: str, *, may_be_null: bool = False) -> fields.String:
    """Return the field of a moment."""
    facts = described(f"{description} (UTC).", format="date-time")
    return fields.String(required=True, allow_none=may_be_null, metadata=facts)


class Link(Output):
    """An eSIM of your organization, without its plans."""

    id = fields.UUID(required=True, metadata=described("The link."))
    name = fields.String(
        required=True, allow_none=True, metadata=described("How you call it, if at all.")
    )
    iccid = fields.String(required=True, metadata=ICCID)
    msisdn = fields.String(
        required=True,
        allow_none=True,
        metadata=described("Its phone number (ITU-T E.164); null: it has none, or not yet."),
    )
    status = fields.String(
        required=True,
        metadata=described("Whether it can be used: in a list as last seen.", enum=list(STATUSES)),
    )
    created_at = moment("When it was activated")
    sponsor_profile = fields.Nested(
        SponsorProfile,
        required=True,
        allow_none=True,
        metadata=described("The profile of the network that it runs on; null: not known."),
    )
    lpa_profile = fields.String(
        required=True,
        allow_none=True,
        metadata=described(
            "Its activation code (GSMA SGP.22 §4.1); null: not known, or erased.",
            example="LPA:1$rsp.example$JQ-XK2F",
        ),
    )
    apple_activation_url = fields.String(
        required=True,
        allow_none=True,
        metadata=described("Opens the installation on an iPhone (iOS 17.4 or later)."),
    )
    android_activation_url = fields.String(
        required=True, allow_none=True, metadata=described("Opens the installation on Android.")
    )
    data_used_mb = fields.Float(required=True, metadata=USED)
    data_remaining_mb = fields.Float(required=True, metadata=REMAINING)
    data_total_mb = fields.Float(
        required=True,
        metadata=described(
            "Data of its plans as bought, in MB; expired ones count.", example=5000.0
        ),
    )
    expires_at = moment(
        "The latest end of a plan that is in use and has data left; null: there is none",
        may_be_null=True,
    )
    installed_at = moment("When it was first seen in a device", may_be_null=True)
    first_used_at = moment("When it first carried traffic", may_be_null=True)
    usage_as_of = moment("When usage was read from the network")


class Activation(Output):
    """A plan on a link, as it was bought."""

    id = fields.UUID(required=True, metadata=described("The activation, to remove it by."))
    plan_id = fields.UUID(required=True, metadata=described("The plan."))
    plan_name = fields.String(required=True, metadata=described("Its name when it was bought."))
    status = fields.String(
        required=True,
        metadata=described(
            "One that is used up stays active until it expires.", enum=["active", "expired"]
        ),
    )
    activation_date = moment("When it was bought")
    expiry_date = moment("When it ends; null until it is first used", may_be_null=True)
    data_used_mb = fields.Float(required=True, metadata=USED)
    data_remaining_mb = fields.Float(required=True, metadata=REMAINING)
    coverage_countries = fields.List(fields.String(metadata=COUNTRY), required=True)


class LinkDetail(Link):
    """An eSIM of your organization with its plans."""

    activations = fields.List(
        fields.Nested(Activation),
        required=True,
        metadata=described(
            "Its plans: those in use with data left come first, then those that wait for their "
            "first use, used up and expired ones, each oldest first. Removed ones are not listed."
        ),
    )
    coverage_data = fields.List(
        fields.Nested(CountryCoverage),
        required=True,
        metadata=described("Where its active plans work, all taken together."),
    )


class ChangedLink(LinkDetail):
    """A link after a change of its plans, and what that cost."""

    amount_charged = fields.String(
        required=True, metadata=AMOUNT | {"description": "What your wallet has paid."}
    )
    currency = fields.String(required=True, metadata=CURRENCY)


class NewLink(ChangedLink):
    """A link that has just been created, and what it cost."""

    activation_url = fields.String(
        required=True,
        allow_none=True,
        metadata=described("The same as `apple_activation_url`."),
    )


class LinkMeta(ReplyMeta):
    """What the reply about a link says about itself."""

    stale = fields.Boolean(
        metadata=described(
            "There when the network could not be reached: what it said last is shown.", enum=[True]
        )
    )


class ServingNetwork(Output):
    """The mobile network that serves a device."""

    country_code = fields.String(required=True, metadata=COUNTRY)
    operator = fields.String(required=True, metadata=described("Who runs it.", example="Orange"))
    mcc = fields.String(
        required=True, metadata=described("Mobile Country Code (ITU-T E.212).", example="208")
    )
    mnc = fields.String(
        required=True, metadata=described("Mobile Network Code (ITU-T E.212).", example="01")
    )
    radio = fields.String(required=True, metadata=described("Its generation.", example="5G"))


class NetworkStatus(Output):
    """Whether and where a link is connected."""

    link_id = fields.UUID(required=True, metadata=described("The link."))
    iccid = fields.String(required=True, metadata=ICCID)
    status = fields.String(
        required=True, metadata=described("Whether it can be used.", enum=list(STATUSES))
    )
    connected = fields.Boolean(required=True, metadata=described("Whether it is online."))
    network = fields.Nested(
        ServingNetwork,
        required=True,
        allow_none=True,
        metadata=described("The network that serves it; null while it is not connected."),
    )
    last_seen_at = moment("When it was last online", may_be_null=True)
    as_of = moment("When the network said so")
    cached = fields.Boolean(
        required=True,
        metadata=described("Whether this was stored, and not asked of the network now."),
    )


def _about(name: str, data: type[Output]) -> Any:
    return reply(name, fields.Nested(data, required=True), LinkMeta)


LinkPageReply = page_reply("LinkPageReply", Link)
LinkReply = _about("LinkReply", LinkDetail)
NewLinkReply = reply("NewLinkReply", fields.Nested(NewLink, required=True))
ChangedLinkReply = _about("ChangedLinkReply", ChangedLink)
NetworkStatusReply = _about("NetworkStatusReply", NetworkStatus)
TopupPlansReply = reply("TopupPlansReply", fields.List(fields.Nested(Plan), required=True))
