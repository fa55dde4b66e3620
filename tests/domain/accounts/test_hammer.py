"""Two real processes on one wallet: no cent is lost, made or spent twice."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from domain.accounts.committer import Committer
from domain.accounts.wallet import Wallet
from domain.money import format_amount
from tests.domain.build import ORGANIZATION, open_wallet
from tests.domain.hammer import PATIENCE_S, hammer
from tests.domain.writers import balance, ledger, open_log

PROCESSES = 2
CALLS = 400


@pytest.mark.slow
def test_two_processes_that_hammer_one_wallet_leave_it_exact(log_file: Path) -> None:
    log = open_log(log_file)
    committer = Committer(log)
    open_wallet(log, committer, "1.00", ORGANIZATION)
    committer.close()
    context = get_context("spawn")
    with context.Manager() as manager:
        ready = manager.Barrier(PROCESSES)
        with ProcessPoolExecutor(PROCESSES, mp_context=context) as pool:
            running = [
                pool.submit(hammer, log_file, ORGANIZATION, CALLS, ready) for _ in range(PROCESSES)
            ]
            charged = sum(process.result(PATIENCE_S) for process in running)
    entries = ledger(log)  # Checks versions, sequences and every balance on its way.
    deposits = [entry for entry in entries if isinstance(entry, Wallet.Deposited)]
    assert len(deposits) == PROCESSES * CALLS + 1
    assert len(entries) - len(deposits) == charged
    expected_micros = 1_000_000 + PROCESSES * CALLS * 10_000 - charged * 30_000
    assert balance(log) == format_amount(expected_micros)
    log.close()
