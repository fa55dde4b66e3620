"""Input of links: their creation, lists, changes of plans and status."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.request import parse_http_list

from marshmallow import Schema, ValidationError, fields, pre_load, validate
from marshmallow import validates_schema as validates_whole

from app.http.accounts.input import Moment
from app.http.edge.input import (
    A_UUID,
    NOT_A_FLAG,
    Few,
    Flag,
    Id,
    IdempotencyHeader,
    JsonNumber,
    PageQuery,
    Search,
    Text,
    WholeNumber,
    choice,
    per_page,
)
from app.http.edge.request import CURRENT
from app.http.edge.schemas import OR_EMPTY
from app.http.links.replies import STATUSES
from app.http.links.traveller import LANGUAGES
from domain.webhooks.destination import URL_CHARS_MAX, NotAllowed, read_destination
from projections.engine.shape import id_of, one_of
from projections.models.links import SORTS

NAME_CHARS_MAX = 255
QR_SIZE_MIN, QR_SIZE_MAX = 128, 2048
CHANGES_MAX = 10
NO_CONTROLS = "Must not hold control characters."
NO_CHANGE = "Name at least one activation to remove or one plan to add."
TOO_MANY = f"Must hold at most {CHANGES_MAX} entries, together with the other list."
TOGETHER = f"The two lists together hold 1 to {CHANGES_MAX} entries."
LASTS_MIN_S, LASTS_S, LASTS_MAX_S = 300, 30 * 86_400, 366 * 86_400
DRY = frozenset({"true", "True", "TRUE", "1"})
RESPOND_ASYNC = "respond-async"
LINK_NAME = "How you want to call it. No control characters; blank or null: it has no name."
CONTROLS = r"\x00-\x1f\x7f-\x9f"
NAME_PATTERN = rf"^[^{CONTROLS}]*$"
# Nor half a surrogate pair, which UTF-8 cannot say; any other script and sign is allowed.
_NO_CONTROLS = validate.Regexp(rf"[^{CONTROLS}\ud800-\udfff]*\Z", error=NO_CONTROLS)


class LinkQuery(PageQuery):
    """Which links to list; an empty filter counts as absent."""

    per_page = per_page(20, "links")
    status = choice(STATUSES, "Only those that had this status when last seen.", "KnownLinkStatus")
    search = Search("ICCID, name, phone number, id or plan name")
    changed_since = Moment("Only those that have changed at this time or later")
    created_from = Moment("Only those created at this time or later")
    created_to = Moment("Only those created before this time")
    plan_id = Id("Only those with this plan, used up or not.", anyOf=[A_UUID, OR_EMPTY])
    expires_before = Moment("Only those whose `expires_at` is before this time")
    sort = choice(
        SORTS,
        "The order, with `-` from behind; else the newest first. What never expires stands last.",
        "LinkSort",
    )


class Name(Text):
    """A name that a partner gives; None if it is blank or left out.

    It has no default: generators of TypeScript demand each field that has one.
    """

    def __init__(self, says: str, **kwargs: Any) -> None:
        rules = [validate.Length(max=NAME_CHARS_MAX), _NO_CONTROLS]
        super().__init__(says, allow_none=True, validate=rules, pattern=NAME_PATTERN, **kwargs)

    def deserialize(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        name = super().deserialize(value, *args, **kwargs)
        return name if name and not name.isspace() else None


class LinkBody(Schema):
    """The link to create."""

    example: ClassVar = {"plan_id": id_of("plan"), "name": "Van 12"}

    plan_id = Id("The plan that it begins with.", required=True)
    name = Name(LINK_NAME)


def _flag(description: str) -> fields.Boolean:
    return fields.Boolean(
        load_default=False,
        truthy=DRY,
        falsy={"false", "False", "FALSE", "0"},
        error_messages={"invalid": NOT_A_FLAG},
        metadata={"description": description},
    )


class CreateQuery(Schema):
    """Whether the link is to be made."""

    dry_run = _flag(
        "Whether only to check the request and to tell the price: nothing is made, taken or "
        "kept, and `Idempotency-Key` and `Prefer` are ignored."
    )


class CreateHeaders(IdempotencyHeader):
    """The key of the request, and whether to wait for the link; a dry run ignores both."""

    prefer = Text(
        "`respond-async` (RFC 7240): reply at once, and tell the outcome at `Location`. It is "
        "no part of the request that `Idempotency-Key` stands for.",
        data_key="Prefer",
        examples=["respond-async"],
    )

    @pre_load
    def ignore_them_in_a_dry_run(self, data: Mapping[str, Any], **_: Any) -> Mapping[str, Any]:
        """Read no header of a dry run, so that a malformed key refuses none."""
        is_dry = data and not DRY.isdisjoint(CURRENT.get().sent_query.get("dry_run", ()))
        return {} if is_dry else data


def is_waited_for(prefer: str) -> bool:
    """Tell whether a reply is to wait; other preferences are ignored, as RFC 7240 has it."""
    named = parse_http_list(prefer.lower())  # A quoted value may hold a comma.
    return RESPOND_ASYNC not in {re.split("[;=]", each)[0].strip() for each in named}


class RenameBody(Schema):
    """The new name of a link."""

    example: ClassVar = {"name": "Van 13"}

    name = Name(LINK_NAME, required=True)


def check_url(url: str, *, allow_private: bool = False) -> None:
    """Refuse a URL that no webhook may have; its name is judged at each delivery."""
    try:
        read_destination(url, allow_private=allow_private)
    except NotAllowed as refused:
        raise ValidationError(str(refused)) from None


class HandoverBody(Schema):
    """How long the address of a traveller's page lasts, and what the page says besides."""

    example: ClassVar = {"expires_in": 604_800, "top_up_url": "https://shop.example/top-up"}

    expires_in = JsonNumber(
        "How many seconds it lasts; 30 days unless said.",
        LASTS_MAX_S,
        lowest=LASTS_MIN_S,
        load_default=lambda: LASTS_S,
    )
    language = Text(
        "Its language; null: its reader's.",
        allow_none=True,
        load_default=lambda: None,
        validate=validate.OneOf(LANGUAGES),
        type="string",
        **one_of("PageLanguage", LANGUAGES, {"type": "null"}),
    )
    top_up_url = Text(
        "Where your shop is: https.",
        allow_none=True,
        load_default=lambda: None,
        validate=check_url,  # A page or a mail could read another one otherwise.
        format="uri",
        maxLength=URL_CHARS_MAX,
    )
    picture = Flag(
        "Whether `url` with `/qr.png` behind it is the QR code alone, for an e-mail. Mailboxes "
        "fetch and keep such pictures.",
        load_default=bool,
    )


def _ids(says: str, same: str = "") -> Few:
    bounds: Any = {"maxItems": CHANGES_MAX, "uniqueItems": bool(same), "load_default": list}
    return Few(says + TOGETHER, Id(), most=CHANGES_MAX, too_many=TOO_MANY, same=same, **bounds)


class LinkPlansBody(Schema):
    """The plans to remove from a link and those to add, in this order."""

    example: ClassVar = {"remove": [id_of("activation")], "add": [id_of("plan")]}

    remove = _ids(
        "Activations to remove, by their id; no money comes back. ",
        same="The same activation stands at index {}.",
    )
    add = _ids("Plans to add, by their id. The same one may be added more than once. ")

    @validates_whole
    def check_count(self, data: dict[str, Any], **_: Any) -> None:
        """Refuse a change of nothing, and one that is too long for one request."""
        count = len(data["remove"]) + len(data["add"])
        if not count:
            raise ValidationError({"remove": [NO_CHANGE], "add": [NO_CHANGE]})
        if count > CHANGES_MAX:
            raise ValidationError({"remove": [TOO_MANY], "add": [TOO_MANY]})


class HistoryQuery(PageQuery):
    """Which page of a link's history to list."""

    per_page = per_page(15, "transactions")


class QrQuery(Schema):
    """How large the image of a QR code is."""

    size = WholeNumber(
        "How many pixels it is wide and high.", QR_SIZE_MAX, lowest=QR_SIZE_MIN, load_default=256
    )


class StatusQuery(Schema):
    """How recent a network status must be."""

    live = _flag("Whether to ask the network now, whatever is stored.")
