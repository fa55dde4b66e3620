"""The pattern of a phone number in E.164 form (ITU-T E.164), as the contract states it."""

import re

# `\Z` and `[0-9]`: `$` would let a trailing newline pass and `\d` non-ASCII digits.
E164_PATTERN = r"\+[1-9][0-9]{1,14}\Z"
_E164 = re.compile(E164_PATTERN)


def is_e164(text: str) -> bool:
    """Tell whether the whole text is `+`, a digit 1–9 and 1–14 further ASCII digits."""
    return _E164.match(text) is not None
