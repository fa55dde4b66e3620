"""The replies to single lookups: the facts of a number and what the answer cost."""

from typing import Annotated, Any, Final, cast, get_args
from uuid import UUID

from msgspec import UNSET, Struct, UnsetType

from app.http.edge.replies import CommonMeta, Mcc, Mnc, Success, common_meta
from app.http.edge.request import Given
from app.http.edge.schemas import example_of
from app.http.lookups.input import EXAMPLE, PATTERN
from domain.lookups.ports import LineType
from domain.lookups.single import LookupResult
from domain.money import format_amount
from projections.engine.shape import Amount, Currency, Moment, format_time, means, one_of

PhoneNumber = Annotated[str, means("A number in E.164 form.", pattern=PATTERN, example=EXAMPLE)]


class Carrier(Struct):
    """Who serves a number; what is not known is absent."""

    name: Annotated[
        str | UnsetType,
        means(
            "The carrier that serves the number, where the provider knows the porting. Else the "
            "one that holds the number range: where numbers can be ported (107 of 245 regions), "
            "another carrier may serve it now.",
            example="Etisalat",
        ),
    ] = UNSET
    type: Annotated[
        str | UnsetType,
        means("The type of line.", **one_of("LineType", get_args(LineType)), example="mobile"),
    ] = UNSET
    mcc: (
        Annotated[
            Mcc,
            means(
                "Mobile Country Code (ITU-T E.212), three digits. Only where all networks that "
                "carrier and country can mean have the same.",
                example="424",
            ),
        ]
        | UnsetType
    ) = UNSET
    mnc: (
        Annotated[
            Mnc,
            means(
                "Mobile Network Code (ITU-T E.212), two or three digits. Only where carrier and "
                "country name exactly one network, so `mcc` may be there without it.",
                example="02",
            ),
        ]
        | UnsetType
    ) = UNSET


class NumberResult(Struct):
    """What is known of one number; what is not known is absent.

    Views send NumberFacts of the domain instead, or the JSON in which they are stored: these have
    the same form, and a reply of a thousand numbers need not be read to be passed on.
    """

    phone_number: PhoneNumber
    valid: Annotated[
        bool | UnsetType,
        means(
            "Whether such a number can exist. False is an answer like any other, and is charged.",
            example=True,
        ),
    ] = UNSET
    country_code: Annotated[
        str | UnsetType, means("Country of the number (ISO 3166-1 alpha-2).", example="AE")
    ] = UNSET
    national_format: Annotated[
        str | UnsetType, means("The number as written in its country.", example="050 824 5915")
    ] = UNSET
    carrier: Annotated[Carrier | UnsetType, means("Absent for a number that is not valid.")] = UNSET


class Charge(Struct):
    """What a lookup cost."""

    transaction_id: Annotated[UUID, means("The entry in the wallet.")]
    amount: Annotated[Amount, means("What the wallet paid.", example="0.01")]
    currency: Currency


class LookupMeta(CommonMeta, kw_only=True):
    """What the reply to a lookup says about itself."""

    lookup_id: Annotated[UUID, means("The lookup in our records.")]
    source: Annotated[
        str, means("Where the answer came from.", **one_of("LookupSource", ["live", "cache"]))
    ]
    as_of: Annotated[Moment, means("When the provider said so.")]
    provider: Annotated[str, means("Who said so.", example="offline")]
    canonical: Annotated[
        str | UnsetType,
        means(
            "What was probably meant by a number that is not valid because it is not its own "
            "canonical form, such as one that keeps a trunk 0 behind the country code. Absent "
            "otherwise.",
            pattern=PATTERN,
        ),
    ] = UNSET
    charge: Annotated[Charge | UnsetType, means("Absent when nothing was charged.")] = UNSET


class LookupReply(Success[NumberResult], kw_only=True):
    """The answer."""

    meta: LookupMeta


def lookup_reply(given: Given[Any], result: LookupResult) -> LookupReply:
    answer = result.lookup.answer
    price = answer.price
    meta = LookupMeta(
        **common_meta(given),
        lookup_id=result.lookup.id,
        source=answer.source,
        as_of=format_time(answer.as_of),
        provider=answer.provider,
        canonical=given.parts.answers.canonical(result.facts) or UNSET,
        charge=UNSET
        if price is None
        else Charge(price.transaction_id, format_amount(price.amount_micros), price.currency),
    )
    return LookupReply(data=cast("NumberResult", result.facts), meta=meta)  # Of the same form.


ANSWER: Final = LookupReply(**example_of(LookupReply))
