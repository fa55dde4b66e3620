"""Reads the parts that replies of all lookup providers have, and raises for refusals."""

import logging
import re
from typing import Any, Final, NoReturn, TypeVar

from msgspec import Struct, ValidationError, convert

from app.adapters.remote.exchange import OddRecord, Reply, blames_the_request, decode, path_of
from domain.lookups.ports import Carrier, LineType, NumberFacts
from domain.provider_errors import NotAnswered, Unavailable

LOOKUP_S: Final = 4.0  # For all tries at one provider; a request has time for two providers.
PROBE_S: Final = 5.0

MCC: Final = re.compile(r"[0-9]{3}", re.ASCII)
MNC: Final = re.compile(r"[0-9]{2,3}", re.ASCII)
COUNTRY: Final = re.compile(r"[A-Z]{2}", re.ASCII)
CODE: Final = re.compile(r"[A-Za-z0-9_]{1,40}", re.ASCII)
REFERENCE: Final = re.compile(r"[A-Za-z0-9_.:-]{1,80}", re.ASCII)
OK: Final = 200
REFUSED: Final = {401, 403}
TEXT_MAX: Final = 255
ODD_FIELDS_MAX: Final = 20  # Of one record; with more of them it is not understood.

T = TypeVar("T")

logger = logging.getLogger(__name__)


class NumberData(Struct, kw_only=True):
    """What replies tell of a number."""

    phone_number: str
    country_code: str | None = None
    national_format: str | None = None


class LineData(Struct):
    """What they tell of its line. The codes may be numbers, and the country's a region as US."""

    type: str | None = None
    mobile_country_code: str | int | None = None
    mobile_network_code: str | int | None = None
    error_code: Any = None


def read_record(provider: str, reply: Reply, kind: type[T]) -> T:
    """Return what a reply says of a number; an optional field that makes no sense is left out.

    Raises OddRecord if a required field makes no sense, and Malformed for what is no reply.
    """
    record, at = decode(reply, dict[str, Any]), "$"
    for _ in range(ODD_FIELDS_MAX):
        try:
            return convert(record, kind, strict=False)
        except ValidationError as error:
            at = path_of(error)
        if not _leave_out(record, at):
            break
        logger.warning("%s: an odd record: left out what is at %s", provider, at)
    raise OddRecord(_odd(provider, at))


def _leave_out(record: dict[str, Any], at: str) -> bool:
    """Remove the field at a place, a list as a whole; False if there is none."""
    *path, name = at.partition("[")[0].split(".")
    for each in path[1:]:
        record = record[each]
    return record.pop(name, None) is not None


def _odd(provider: str, at: str) -> str:
    return f"a reply of {provider} makes no sense at {at}"


def text_of(value: str | None) -> str | None:
    """Return a text without outer spaces; None for an empty one."""
    return value.strip()[:TEXT_MAX] or None if value else None


def codes_of(*values: object) -> tuple[str, ...]:
    """Return the values that have the form of an error code."""
    texts = [str(each) for each in values if each and isinstance(each, str | int)]
    return tuple(each for each in texts if CODE.fullmatch(each))


def reference_of(reply: Reply, header: str) -> str | None:
    """Return the provider's own id of a call, by which its support finds it."""
    text = reply.headers.get(header, "")
    return text if REFERENCE.fullmatch(text) else None


def facts_of(number: NumberData, kind: LineType, name: str | None, line: LineData) -> NumberFacts:
    """Return the facts of a valid number; only mobile lines keep codes, and only codes of digits.

    A code sent as a number has lost its leading zeros, so it is kept only if it has three digits.
    """
    mcc, mnc = _digits(line.mobile_country_code, MCC), _digits(line.mobile_network_code, MNC)
    if kind != "mobile" or mcc is None:
        mcc = mnc = None
    region = number.country_code
    return NumberFacts(
        number.phone_number,
        valid=True,
        country_code=region if region and COUNTRY.fullmatch(region) else None,
        national_format=text_of(number.national_format),
        carrier=Carrier(text_of(name), kind, mcc, mnc),
    )


def _digits(value: str | int | None, pattern: re.Pattern[str]) -> str | None:
    if isinstance(value, int):
        value = str(value) if MCC.fullmatch(str(value)) else None
    return value if value and pattern.fullmatch(value) else None


def require(provider: str, at: str, *, makes_sense: bool) -> None:
    """Raise OddRecord unless the value at a place makes sense.

    It does not in a reply about another number. That may be a late copy of another reply, or the
    provider has corrected our number, such as one with a trunk 0 kept.
    """
    if not makes_sense:
        raise OddRecord(_odd(provider, at))


def has_no_answer(provider: str, code: object, at: str) -> NoReturn:
    """Raise NotAnswered: the provider is up but does not know this number; another one may."""
    codes = codes_of(code)
    why = codes[0] if codes else "no data"
    logger.info("%s does not answer for a number: %s at %s", provider, why, at)
    raise NotAnswered(f"{provider} has no answer for this number")


def require_ok(provider: str, reply: Reply) -> None:
    """Raise Unavailable for a reply that is no answer; operators read why in the log.

    It is NotAnswered where the provider blames the number.
    """
    if reply.status == OK:
        return
    if reply.status in REFUSED:
        logger.warning(
            "%s refuses our credentials (%d): check its settings", provider, reply.status
        )
        raise Unavailable(f"{provider} refuses our credentials ({reply.status})")
    logger.warning("%s answers a lookup with %d", provider, reply.status)
    message = f"{provider} answers with {reply.status}"
    raise (NotAnswered if blames_the_request(reply) else Unavailable)(message)
