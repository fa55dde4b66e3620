"""Real processes charge one wallet on PostgreSQL: none is lost, doubled, or held up for long."""

import signal
import subprocess

from domain.accounts.wallet import Wallet, wallet_id
from tests.app.adapters.charging import charging
from tests.domain.writers import ledger
from tests.installation import Installation, Process, postgresql_only, wait_until

CHARGES = 80
PATIENCE_S = 60.0

pytestmark = postgresql_only("turns are taken there")


def told(process: subprocess.Popen[bytes]) -> int:
    """Return how many charges a process was told of, once it has ended."""
    assert process.stdout is not None
    output = process.stdout.read()
    assert process.wait(PATIENCE_S) == 0
    return int(output)


def test_a_process_that_is_killed_and_one_that_stands_still_take_nobody_with_them(
    installation: Installation, process: Process
) -> None:
    organization = process.organization("100.00")
    url = installation.environment["DATABASE_URL"]
    with charging(url, organization, CHARGES, processes=3) as (killed, stopped, steady):
        begun = process.log.head()
        wait_until(lambda: process.log.head() > begun + 20)  # They race each other.
        killed.kill()
        stopped.send_signal(signal.SIGSTOP)
        assert told(steady) == CHARGES + 1
        stopped.send_signal(signal.SIGCONT)
        assert told(stopped) == CHARGES + 1
    assert len(ledger(process.log, organization)) >= 1 + 2 * (CHARGES + 1)


def test_three_processes_spend_a_limit_to_the_last_charge_and_no_more(
    installation: Installation, process: Process
) -> None:
    organization = process.organization("100.00")
    process.accounts.set_spending_limit(organization, 2_000_000, process.cause())
    url = installation.environment["DATABASE_URL"]
    with charging(url, organization, CHARGES, processes=3) as running:
        assert sum(told(each) for each in running) == 200
    wallet = process.log.get(Wallet, wallet_id(organization))
    assert wallet.balance_micros == 98_000_000
    assert wallet.spending is not None
    assert wallet.spending.spent_micros == wallet.spending.limit_micros == 2_000_000
