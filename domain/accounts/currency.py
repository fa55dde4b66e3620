"""The setting CURRENCY beside the currency of the log: they are the same, or nothing is done."""

from collections.abc import Callable, Sequence

from domain.accounts.ledger import Ledger, ledger_id
from domain.accounts.monthly_fee import MonthlyFee
from domain.accounts.wallet import Wallet
from domain.cause import Cause
from domain.errors import Conflict, WrongCurrency
from domain.log.aggregate import Root
from domain.log.log import Log


class Currency:
    """The currency that this process is set to; asks the log itself, not what was read from it."""

    def __init__(self, log: Log, code: str) -> None:
        self._log = log
        self.code = code
        self._is_agreed = False  # Once the log has it nothing changes it.

    def check(self) -> None:
        """Raise WrongCurrency when the log has another one; a log without money has none yet."""
        if self._is_agreed:
            return
        found = self._of_the_log()
        if found not in {None, self.code}:
            raise WrongCurrency(str(found))
        self._is_agreed = found is not None

    def append(self, make: Callable[[], Sequence[Root]], cause: Cause) -> None:
        """Append what brings this currency into the log: a wallet, a fee.

        The first one brings the ledger too, in front: the last event of a commit tells which log
        it is (`belongs`), and the ledger has one place in every log. The Conflict of the first one
        may be the ledger's, then all is made and tried once more; the next one is raised. Raises
        WrongCurrency as `check`.
        """
        ledger = self._new_ledger(cause)
        try:
            self._log.append(*ledger, *make())
        except Conflict:
            if not ledger:
                raise
            self._log.append(*self._new_ledger(cause), *make())

    def _new_ledger(self, cause: Cause) -> list[Ledger]:
        """Return what has to come too; asks the log each time, which may have lost its end."""
        ledger = self._log.find(Ledger, ledger_id())
        if ledger is None:
            self._is_agreed = False
            self.check()
            return [Ledger.open(self.code, cause)]
        if ledger.currency != self.code:
            raise WrongCurrency(ledger.currency)
        return []

    def _of_the_log(self) -> str | None:
        ledger = self._log.find(Ledger, ledger_id())
        if ledger is not None:
            return ledger.currency
        first = self._log.first(Wallet.Opened, MonthlyFee.Due)  # Older releases kept no ledger.
        match first:
            case Wallet.Opened():
                return first.currency
            case MonthlyFee.Due():
                return first.price.currency
        return None
