"""Organizations with a past, whose monthly fees fall due while everything else goes on."""

from datetime import timedelta
from uuid import UUID, uuid4

from domain.accounts.organization import Organization
from domain.accounts.wallet import Deposit, Wallet
from domain.cause import utc_now
from domain.errors import Refused
from domain.money import parse_amount
from domain.months import month_of, months_before, next_month
from tests.faults.ledger import Ledger, Promise
from tests.installation import Installation
from tests.workers.fees import active_link

FEE = "0.25"
PAID_IN = "10.00"
PAST = timedelta(days=70)  # Two or three months have begun since.


class Debtors:
    """Makes them with a clock that is late, by events alone: nobody could buy in the past."""

    def __init__(self, installation: Installation, ledger: Ledger) -> None:
        self._late = installation.process(lambda: utc_now() - PAST)
        self._ledger = ledger

    def add(self, key: str, began_at: float) -> None:
        """Let one more organization owe fees; without a promise when that is not certain."""
        try:
            organization_id = self._make()
        except Refused:
            self._ledger.refused("debtor not made")
        else:
            fee = parse_amount(FEE)
            self._ledger.promise(Promise("fees", str(organization_id), key, fee, began_at))

    def _make(self) -> UUID:
        """Append all of it at once: a round of fees in between would find no link in a month."""
        cause, organization_id = self._late.cause(), uuid4()
        organization = Organization.register(
            organization_id, cause, name="Debtor", monthly_link_fee_micros=parse_amount(FEE)
        )
        deposit = Deposit.make(organization_id, "bank-1", parse_amount(PAID_IN), cause)
        wallet = Wallet.open(organization_id, self._late.settings.currency, cause)
        wallet.enter(deposit, wallet.currency, cause)
        self._late.log.append(organization, deposit, wallet, *active_link(organization_id, cause))
        return organization_id


def months_owed(newest: str = "") -> list[str]:
    """Return the months that each owes by now, or up to a later one if a clock was ahead."""
    now = utc_now()
    first, last = next_month(month_of(now - PAST)), max(newest, month_of(now))
    return [*months_before(first, next_month(last))]
