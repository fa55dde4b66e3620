"""The results of a job as a file (JSON, CSV, NDJSON), sent block by block while they are opened."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Final, cast

import msgspec
from flask import Response
from msgspec.structs import astuple

from app.bootstrap.container import Container
from app.http.edge.media import CSV, JSON, NDJSON, attachment, csv_reply, preferred
from app.http.edge.replies import Reply, example, reply_meta
from app.http.lookups.job_replies import ITEMS, JobItem, items_of, open_numbers
from domain.lookups.ports import Carrier, NumberFacts
from projections.models.jobs import JobRow

TYPES: Final = {"json": JSON, "csv": CSV, "ndjson": NDJSON}
COLUMNS = (
    "phone_number",
    "status",
    "valid",
    "country_code",
    "national_format",
    "carrier_name",
    "carrier_type",
    "mcc",
    "mnc",
    "error",
)
EXAMPLES: Final = {
    CSV: f"{','.join(COLUMNS)}\r\n'+971508245915,completed,true,AE,050 824 5915,Etisalat,mobile,"
    "424,02,\r\n'+15005550001,failed,,,,,,,,The lookup service is unavailable.\r\n",
    NDJSON: '{"phone_number":"+14155552671","status":"pending","result":null,"error":null}\n',
}


RESULTS: Final = example(
    "The items of the job, in the order submitted.", ITEMS, "JobResultsReply", of=Sequence[JobItem]
)
_ENCODER = msgspec.json.Encoder()
_FACTS = msgspec.json.Decoder(NumberFacts)


def results_reply(parts: Container, row: JobRow, wanted: str, status: str | None) -> Response:
    """Reply with the items of a job, or with those of one status; NotFound once it is erased.

    `wanted` is a format of `TYPES`. A thread is held until the last block is sent, so its operation
    first holds a place of the container's `downloads`.
    """
    left = items_of(parts, row, open_numbers(parts, row))
    # The first block before the reply begins, so that most jobs, which have few, are whole or 404.
    blocks: Iterable[list[JobItem]] = chain([*islice(left, 1)], left)
    if status is not None:
        blocks = ([item for item in block if item.status == status] for block in blocks)
    name = f"job-{row.id}.{wanted}"
    if wanted == "csv":
        return csv_reply(COLUMNS, (_cells(item) for block in blocks for item in block), name)
    sent = _as_json(blocks) if wanted == "json" else map(_ENCODER.encode_lines, blocks)
    return Response(sent, headers=attachment(name), content_type=TYPES[wanted])


def format_of(asked: str | None) -> str:
    """Return the format that a request asks for, by its query or else by `Accept`."""
    if asked:
        return asked
    media = preferred(CSV, NDJSON)
    return next(name for name, its in TYPES.items() if its == media)


def _as_json(blocks: Iterable[list[JobItem]]) -> Iterator[bytes]:
    before, _, after = _ENCODER.encode(Reply(data=None, meta=reply_meta())).partition(b"null")
    return _enveloped(before, blocks, after)


def _enveloped(before: bytes, blocks: Iterable[list[JobItem]], after: bytes) -> Iterator[bytes]:
    lead = before + b"["
    for block in blocks:
        if block:
            yield lead + _ENCODER.encode(block)[1:-1]
            lead = b","
    yield (b"" if lead == b"," else lead) + b"]" + after


def _cells(item: JobItem) -> Sequence[object]:
    if item.result is None:
        return (item.phone_number, item.status, *[None] * 7, item.error)
    known = _FACTS.decode(cast("msgspec.Raw", item.result))  # Facts come as they were stored.
    carrier = astuple(known.carrier or Carrier())
    number = (known.country_code, known.national_format)
    is_valid = "true" if known.valid else "false"
    return (item.phone_number, item.status, is_valid, *number, *carrier, item.error)
