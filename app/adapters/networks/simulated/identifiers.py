"""ICCIDs, codes, numbers, ids and random draws, each determined by a seed and a name."""

import json
from base64 import b32encode
from hashlib import sha256
from typing import Final

# Both identify the simulator. 883 is the country code of international networks (ITU-T E.164), and
# 999 is its own choice of an identification code. 89 stands for telecommunications (ITU-T E.118).
_NUMBERS: Final = "883999"
_ISSUER: Final = f"89{_NUMBERS}0"
_ACCOUNT_DIGITS: Final = 9  # Together with 883 999 they make the 15 digits that E.164 allows.

SMDP_HOST: Final = "rsp.simulated.example"  # A domain of RFC 2606, which nobody can own.


class Identifiers:
    """Makes up identifiers. The same seed and names give the same ones in every process."""

    def __init__(self, seed: str) -> None:
        self._seed = seed

    def iccid(self, sponsor_profile_id: str, serial: int) -> str:
        """Return 19 digits that end in their check digit (ITU-T E.118)."""
        account = int.from_bytes(self._digest("iccid", sponsor_profile_id, serial))
        digits = f"{_ISSUER}{account % 10**_ACCOUNT_DIGITS:0{_ACCOUNT_DIGITS}d}"
        return f"{digits}{check_digit(digits)}"

    def lpa(self, iccid: str) -> str:
        """Return the activation code of an eSIM (GSMA SGP.22 §4.1)."""
        secret = b32encode(self._digest("matching id", iccid)[:10]).decode("ascii")
        groups = (secret[start : start + 4] for start in range(0, len(secret), 4))
        return f"LPA:1${SMDP_HOST}${'-'.join(groups)}"

    def confirmation_code(self, iccid: str) -> str | None:
        """Return what the phone asks for: four digits if the ICCID ends in 0, else nothing."""
        number = int.from_bytes(self._digest("confirmation code", iccid)[:4])
        return f"{number % 10_000:04}" if iccid.endswith("0") else None

    def endpoint_id(self, iccid: str, reference: str) -> str:
        """Return the id of the endpoint of a creation; a repeated creation gets the same id."""
        return f"ep-{self._digest('endpoint', iccid, reference).hex()[:20]}"

    def addon_id(self, endpoint_id: str, reference: str | None) -> str:
        return f"ad-{self._digest('addon', endpoint_id, reference).hex()[:20]}"

    def roll(self, purpose: str, name: str) -> float:
        """Return the random number, 0 ≤ number < 1, of this purpose and name; always the same."""
        return (int.from_bytes(self._digest("roll", purpose, name)[:8]) >> 11) / 2**53

    def _digest(self, kind: str, *names: object) -> bytes:
        # As a JSON array, so that two different lists of names cannot give the same text.
        return sha256(json.dumps([self._seed, kind, *names]).encode()).digest()


def msisdn_of(iccid: str) -> str:
    """Return the number of an eSIM (ITU-T E.164): its account reversed, so none is shared."""
    account = iccid[len(_ISSUER) : len(_ISSUER) + _ACCOUNT_DIGITS]
    return f"+{_NUMBERS}{account[::-1]}"


def check_digit(digits: str) -> str:
    """Return the Luhn check digit of these digits (ISO/IEC 7812-1)."""
    doubled = (int(digit) * 2 for digit in digits[::-1][0::2])
    total = sum(map(int, digits[::-1][1::2])) + sum(
        number // 10 + number % 10 for number in doubled
    )
    return str(-total % 10)
