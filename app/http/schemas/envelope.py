"""The envelope in the OpenAPI document."""

from typing import Any

from marshmallow import EXCLUDE, Schema, fields


def described(description: str, **more: Any) -> dict[str, Any]:
    """Return the metadata of a field."""
    return {"description": description, **more}


class Output(Schema):
    """A part of a reply: described, never loaded; later versions may add fields to it."""

    class Meta:
        unknown = EXCLUDE


class ReplyMeta(Output):
    """What every reply says about itself."""

    timestamp = fields.String(
        required=True,
        metadata=described(
            "When the reply was made (UTC).", format="date-time", example="2026-11-21T03:04:05.678Z"
        ),
    )
    response_time_ms = fields.Float(
        required=True, metadata=described("How long the service took.", example=12.3)
    )
    request_id = fields.String(
        required=True,
        metadata=described(
            "The X-Request-Id of the request, or the one that was made for it.",
            example="3f2b7a52-6c0e-4b5e-9d0e-0a4a7b8f4f11",
        ),
    )
    stale = fields.Boolean(
        metadata=described(
            "There when the data lack what has happened in the last seconds or longer.",
            enum=[True],
        )
    )
    as_of = fields.String(
        metadata=described("Beside `stale`: when they last lacked nothing.", format="date-time")
    )


def reply(name: str, data: fields.Field[Any], meta: type[Schema] = ReplyMeta) -> type[Schema]:
    """Return the schema of a successful reply around its data."""
    members: dict[str, fields.Field[Any]] = {
        "success": fields.Boolean(required=True, metadata={"enum": [True]}),
        "data": data,
        "meta": fields.Nested(meta, required=True),
    }
    return Output.from_dict(members, name=name)


class ErrorDetail(Output):
    """What went wrong."""

    code = fields.String(
        required=True,
        metadata=described("What happened, for programs; a code never changes its meaning."),
    )
    message = fields.String(required=True, metadata=described("The same, for people."))
    details = fields.Dict(
        metadata=described(
            "More about it, where there is more. `retryable` stands on 409, 429 and every 5xx; "
            "`reason` says why the network did not do something."
        )
    )


class Error(Output):
    """A reply that is no success."""

    success = fields.Boolean(required=True, metadata={"enum": [False]})
    error = fields.Nested(ErrorDetail, required=True)
    meta = fields.Nested(ReplyMeta, required=True)


class ValidationProblem(Error):
    """A reply to input that breaks a rule, in both shapes that clients know."""

    message = fields.String(metadata=described("The same as `error.message`."))
    errors = fields.Dict(
        keys=fields.String(),
        values=fields.List(fields.String()),
        metadata=described("The same as `error.details`: field name to messages."),
    )
