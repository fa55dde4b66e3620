"""Single lookups: the number that goes in, the facts that come out."""

from collections.abc import Mapping
from typing import Any, get_args

from marshmallow import Schema, ValidationError, fields, pre_load, validates_schema

from app.http.request_context import current_request
from app.http.schemas.envelope import Output, ReplyMeta, described, reply
from app.http.schemas.phone_number import EXAMPLE, PATTERN, PhoneNumber
from domain.ports import LineType

MISSING = "Missing data for required field."
NUMBER = described("A number in E.164 form.", pattern=PATTERN, example=EXAMPLE)


class QueryNumber(PhoneNumber):
    """A number in a query; form decoding makes a space of a `+` that was not encoded."""

    def _deserialize(
        self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **kwargs: Any
    ) -> str:
        meant = f"+{value[1:]}" if value.startswith(" ") else value
        return super()._deserialize(meant, attr, data, **kwargs)


class LookupQuery(Schema):
    """The number in the query."""

    phone_number = QueryNumber(
        metadata=NUMBER | {"description": "A number in E.164 form; `+` is written `%2B`."}
    )


def no_number_in_query() -> bool:
    """Tell whether the number has to stand in the body."""
    return "phone_number" not in current_request().args


class LookupBody(Schema):
    """The number in the body, for who does not want it in a URL."""

    phone_number = PhoneNumber(metadata=NUMBER)

    @pre_load
    def let_the_query_win(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Leave the number of the body alone when there is one in the query."""
        if not no_number_in_query():
            return {name: value for name, value in data.items() if name != "phone_number"}
        return data

    @validates_schema(pass_original=True, skip_on_field_errors=False)
    def need_a_number(self, _: dict[str, Any], given: Mapping[str, Any], **__: Any) -> None:
        """Tell of a missing number beside what else is wrong: another name was meant for it."""
        if "phone_number" not in given and no_number_in_query():
            raise ValidationError(MISSING, "phone_number")


class Carrier(Output):
    """Who serves a number; what is not known is absent."""

    name = fields.String(
        metadata=described(
            "The carrier that holds the number range. Where numbers can be ported (107 of 245 "
            "regions) the number may be served by another carrier now.",
            example="Etisalat",
        )
    )
    type = fields.String(
        metadata=described("The type of line.", enum=list(get_args(LineType)), example="mobile")
    )
    mcc = fields.String(
        metadata=described(
            "Mobile Country Code (ITU-T E.212), three digits. Only where all networks that carrier "
            "and country can mean have the same.",
            example="424",
        )
    )
    mnc = fields.String(
        metadata=described(
            "Mobile Network Code (ITU-T E.212), two or three digits. Only where carrier and "
            "country name exactly one network.",
            example="02",
        )
    )


class NumberResult(Output):
    """What is known of one number; what is not known is absent."""

    phone_number = fields.String(required=True, metadata=NUMBER)
    country_code = fields.String(
        metadata=described("Country of the number (ISO 3166-1 alpha-2).", example="AE")
    )
    national_format = fields.String(
        metadata=described("The number as written in its country.", example="050 824 5915")
    )
    valid = fields.Boolean(
        metadata=described(
            "Whether such a number can exist. False is an answer like any other, and is charged."
        )
    )
    carrier = fields.Nested(Carrier, metadata=described("Absent for a number that is not valid."))


class Charge(Output):
    """What a lookup cost."""

    transaction_id = fields.UUID(required=True, metadata=described("The entry in the wallet."))
    amount = fields.String(required=True, metadata=described("A decimal.", example="0.005"))
    currency = fields.String(required=True, metadata=described("ISO 4217.", example="USD"))


class LookupMeta(ReplyMeta):
    """What the reply to a lookup says about itself."""

    lookup_id = fields.UUID(required=True, metadata=described("The lookup in our records."))
    source = fields.String(
        required=True,
        metadata=described("Where the answer came from.", enum=["live", "cache"]),
    )
    as_of = fields.String(
        required=True, metadata=described("When the provider said so.", format="date-time")
    )
    provider = fields.String(required=True, metadata=described("Who said so.", example="offline"))
    charge = fields.Nested(Charge, metadata=described("Absent when nothing was charged."))


LookupReply = reply("LookupReply", fields.Nested(NumberResult, required=True), LookupMeta)
