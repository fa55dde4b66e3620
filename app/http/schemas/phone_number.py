"""Phone numbers as input: one, or the list of a job."""

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, fields

from app.http.request_context import container
from domain.phone_number import is_e164

PATTERN = r"^\+[1-9][0-9]{1,14}$"
NOT_E164 = "Must be an E.164 number: a plus sign, then 2 to 15 digits of which the first is not 0."
NOT_A_STRING = "Not a valid string."
NOT_A_LIST = "Not a valid list."
EXAMPLE = "+14155552671"


class PhoneNumber(fields.String):
    """A number in E.164 form (ITU-T E.164), whole and ASCII."""

    def _deserialize(
        self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **kwargs: Any
    ) -> str:
        number = super()._deserialize(value, attr, data, **kwargs)
        if not is_e164(number):
            raise ValidationError(NOT_E164)
        return number


class PhoneNumbers(fields.List[str]):
    """The numbers of a job: unique, at least one, at most BULK_NUMBERS_MAX.

    One loop: a field per number would take longer than looking the numbers up.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(fields.String(metadata={"pattern": PATTERN}), **kwargs)

    def _deserialize(
        self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **kwargs: Any
    ) -> list[Any]:
        _ = attr, data, kwargs
        if not isinstance(value, list):
            raise ValidationError(NOT_A_LIST)
        limit = container().settings.bulk_numbers_max
        if not 1 <= len(value) <= limit:
            message = f"Must hold 1 to {limit} numbers."
            raise ValidationError(message)
        errors = _errors(value)
        if errors:
            raise ValidationError(errors)
        return value


def _errors(numbers: list[Any]) -> dict[Any, Any]:
    first: dict[str, int] = {}
    found: dict[Any, Any] = {}
    for index, number in enumerate(numbers):
        if not isinstance(number, str):
            found[index] = [NOT_A_STRING]
        elif not is_e164(number):
            found[index] = [NOT_E164]
        elif first.setdefault(number, index) != index:
            found[index] = [f"The same number stands at index {first[number]}."]
    return found
