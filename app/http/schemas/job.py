"""Bulk jobs: the numbers that go in, the job that is polled."""

from marshmallow import Schema, fields

from app.http.schemas.envelope import Output, described, reply
from app.http.schemas.lookup import NUMBER, NumberResult
from app.http.schemas.phone_number import EXAMPLE, PhoneNumbers


class BulkBody(Schema):
    """The numbers of a job."""

    phone_numbers = PhoneNumbers(
        required=True,
        metadata=described(
            "Numbers in E.164 form, all different.",
            minItems=1,
            maxItems=1000,
            uniqueItems=True,
            example=[EXAMPLE, "+971508245915"],
        ),
    )


class JobAccepted(Output):
    """What a new job is known by."""

    job_id = fields.UUID(required=True, metadata=described("The id to poll with."))


class JobItem(Output):
    """One number of a job."""

    phone_number = fields.String(required=True, metadata=NUMBER)
    status = fields.String(
        required=True,
        metadata=described(
            "How far it is; a failed item has been refunded.",
            enum=["pending", "completed", "failed"],
        ),
    )
    result = fields.Nested(
        NumberResult,
        required=True,
        allow_none=True,
        metadata=described("There when the item is completed, else null."),
    )
    error = fields.String(
        required=True,
        allow_none=True,
        metadata=described("Why the item failed, else null."),
    )


class Job(Output):
    """A bulk job and its items in the order submitted."""

    job_id = fields.UUID(required=True, metadata=described("The job."))
    status = fields.String(
        required=True,
        metadata=described(
            "`pending`: no item has ended; `processing`; `completed`, perhaps with failed items; "
            "`failed`: every item failed. The last two are final.",
            enum=["pending", "processing", "completed", "failed"],
        ),
    )
    total_count = fields.Integer(required=True, metadata=described("Numbers in the job."))
    processed_count = fields.Integer(required=True, metadata=described("Items that have ended."))
    failed_count = fields.Integer(required=True, metadata=described("Items that have failed."))
    created_at = fields.String(
        required=True, metadata=described("When it was accepted (UTC).", format="date-time")
    )
    finished_at = fields.String(
        required=True,
        allow_none=True,
        metadata=described("When its last item ended, else null.", format="date-time"),
    )
    items = fields.List(
        fields.Nested(JobItem), required=True, metadata=described("In the order submitted.")
    )


JobAcceptedReply = reply("JobAcceptedReply", fields.Nested(JobAccepted, required=True))
JobReply = reply("JobReply", fields.Nested(Job, required=True))
