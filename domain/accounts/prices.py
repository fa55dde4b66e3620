"""What a lookup costs every organization that has no price of its own.

The setting PRICE_PER_LOOKUP becomes the first price in the log, and from then on only a command
changes it: a setting could be another one in each process, and nobody could check it later.
"""

import time
from math import inf

from domain.accounts.currency import Currency
from domain.blocking import may_block
from domain.cause import Cause
from domain.log.aggregate import ByOperator, Created, LoadedFromNewest, sets
from domain.log.log import Log, retried

# A process reads the price each second; one that was stopped reads it before it charges again.
STALE_S = 3.0


class LookupPrice(LoadedFromNewest):
    """The price of a lookup; the log has one such stream."""

    TOPIC = "price"

    class Opened(Created):
        """Saved together with the first price."""

        TOPIC = "price.opened"

    class Set(LoadedFromNewest.Event, ByOperator):
        """It holds from the next event on. The first has no actor: it is that of the setting."""

        TOPIC = "price.set"
        SETS = sets("amount_micros", "currency")

        amount_micros: int
        currency: str

    amount_micros: int | None = None
    currency: str | None = None


class Prices:
    """The price as of the last look; only `refresh` reads the log.

    While the log has none, that of the setting holds (`setting_micros`; None: it is not set).
    """

    def __init__(self, log: Log, currency: Currency, setting_micros: int | None) -> None:
        self._log = log
        self._currency = currency
        self._micros = self._default_micros = setting_micros or 0
        self.read_s = -inf

    def of_lookup(self, own_micros: int | None) -> int:
        """Return what a lookup costs an organization: its own price, or that of all."""
        if own_micros is not None:
            return own_micros
        if time.monotonic() - self.read_s > STALE_S:
            may_block("price of a lookup", self.refresh)
            self.refresh()
        return self._micros

    def refresh(self) -> LookupPrice | None:
        """Read the log; return what it says. Raises what the log raises."""
        found = self._log.find(LookupPrice, LookupPrice.id_of())
        known = None if found is None else found.amount_micros
        self._micros = self._default_micros if known is None else known
        self.read_s = time.monotonic()
        return found

    def changed(self, amount_micros: int, cause: Cause) -> LookupPrice:
        """Return the price with a new amount, to be appended, if it is another one."""
        price_id, facts = LookupPrice.id_of(), {"currency": self._currency.code}
        price = self._log.find(LookupPrice, price_id)
        price = price or LookupPrice.begin(LookupPrice.Opened, cause, price_id)
        if price.amount_micros != amount_micros:
            price.record(LookupPrice.Set, cause, amount_micros=amount_micros, **facts)
        return price

    @retried
    def set(self, amount_micros: int, cause: Cause, *, only_first: bool = False) -> None:
        """Set the price from now on; with `only_first`, unless there is one."""
        known = self.refresh()
        if known is None or not (only_first or known.amount_micros == amount_micros):
            self._currency.append(lambda: [self.changed(amount_micros, cause)], cause)
            self.refresh()
