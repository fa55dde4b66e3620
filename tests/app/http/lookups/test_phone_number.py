"""The form of a phone number, whatever a naive pattern would let pass."""

import pytest

from app.http.lookups.input import is_e164


@pytest.mark.parametrize("text", ["+12", "+14155552671", "+9991234567", "+123456789012345"])
def test_e164_form_is_accepted_without_asking_whether_the_number_exists(text: str) -> None:
    assert is_e164(text)


NO_NUMBERS = [
    "",
    "+",
    "+1",
    "+01234",
    "14155552671",
    "0014155552671",
    "+1234567890123456",
    "+1 415 555 2671",
    "+1-415",
    "+1415555267a",
    "+14155552671\n",
    " +14155552671",
    "x+14155552671",
    "+1٤١٥",  # noqa: RUF001  # The Arabic-Indic digits are the point.
    "+１４１５",  # noqa: RUF001  # So are the fullwidth digits.
    "＋14155552671",  # noqa: RUF001  # And the fullwidth plus.
]


def test_anything_else_is_refused() -> None:
    assert [text for text in NO_NUMBERS if is_e164(text)] == []
