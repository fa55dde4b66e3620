"""The one currency of a log, which its ledger fixes and all wallets share.

`Currency` checks that the setting CURRENCY is that currency; otherwise it refuses to write.
"""

from collections.abc import Callable, Sequence

from domain.accounts.monthly_fee import MonthlyFee
from domain.accounts.wallet import Wallet
from domain.cause import Cause
from domain.errors import Conflict, WrongCurrency
from domain.log.aggregate import Created, Root, sets
from domain.log.log import Log


class Ledger(Root):
    """Opened once, in the commit of the first wallet or monthly fee.

    There is one stream for it, so two processes with different settings cannot both be first.
    """

    TOPIC = "ledger"

    class Opened(Created):
        TOPIC = "ledger.opened"
        SETS = sets("currency")

        currency: str

    currency: str


class Currency:
    """The currency that this process is set to, compared with the log itself."""

    def __init__(self, log: Log, code: str) -> None:
        self._log = log
        self.code = code
        # True once the log has this currency; nothing changes it afterwards.
        self._is_agreed = False

    def check(self) -> None:
        """Raise WrongCurrency if the log has another currency; a log without money has none yet."""
        if self._is_agreed:
            return
        ledger = self._log.find(Ledger, Ledger.id_of())
        # Older releases wrote no ledger.
        found = currency_of(ledger or self._log.first(Wallet.Opened, MonthlyFee.Due))
        if found not in {None, self.code}:
            raise WrongCurrency(str(found))
        self._is_agreed = found is not None

    def append(self, make: Callable[[], Sequence[Root]], cause: Cause) -> None:
        """Append the first things that have a currency: a wallet, a fee.

        The ledger is added if it does not exist yet. It must not come last, because the last event
        of a commit identifies the log (`belongs`), and a ledger looks the same in every log. The
        first Conflict may be about the ledger, so everything is made and tried once more; a second
        one is raised. Raises WrongCurrency as `check` does.
        """
        ledger = self._new_ledger(cause)
        try:
            self._log.append(*ledger, *make())
        except Conflict:
            if not ledger:
                raise
            self._log.append(*self._new_ledger(cause), *make())

    def _new_ledger(self, cause: Cause) -> list[Ledger]:
        """Return the ledger if it must be written; reads the log, which may have lost its end."""
        ledger = self._log.find(Ledger, Ledger.id_of())
        if ledger is None:
            self._is_agreed = False
            self.check()
            return [Ledger.begin(Ledger.Opened, cause, Ledger.id_of(), currency=self.code)]
        if ledger.currency != self.code:
            raise WrongCurrency(ledger.currency)
        return []


def currency_of(found: object) -> str | None:
    """Return the currency that the ledger or an event fixes for its log."""
    match found:
        case Ledger() | Ledger.Opened() | Wallet.Opened():
            return found.currency
        case MonthlyFee.Due():
            return found.price.currency
    return None
