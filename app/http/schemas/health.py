"""Health and probes."""

from marshmallow import fields

from app.http.schemas.envelope import Output, described


class Health(Output):
    """Whether lookups can be served."""

    ok = fields.Boolean(required=True, metadata=described("Whether lookups can be served now."))
    timestamp = fields.String(
        required=True, metadata=described("When this was found (UTC).", format="date-time")
    )


class Liveness(Output):
    """Whether the process answers."""

    ok = fields.Boolean(required=True, metadata={"enum": [True]})


class Readiness(Output):
    """Whether the process can serve."""

    ok = fields.Boolean(required=True, metadata=described("Whether to send requests here."))
    database = fields.Boolean(required=True, metadata=described("Whether it can be reached."))
    migrated = fields.Boolean(required=True, metadata=described("Whether its tables are made."))
    missing = fields.List(
        fields.String(),
        required=True,
        metadata=described("What stands in the way, in the words of the database."),
    )
    failed_read_models = fields.List(
        fields.String(),
        required=True,
        metadata=described("Read models that have stopped; what they show is old."),
    )
    clock_offset_seconds = fields.Float(
        required=True,
        metadata=described(
            "How far the database's clock is ahead of this machine's. It is added to every time."
        ),
    )
    signing_keys = fields.Boolean(
        required=True, metadata=described("Whether tokens can be signed and checked.")
    )
