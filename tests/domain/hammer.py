"""What one real process does to a wallet that it shares with others."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from uuid import UUID

from domain.accounts.committer import Committer
from domain.errors import InsufficientBalance
from tests.domain.build import pay_in, take
from tests.domain.writers import open_log

THREADS = 8
PATIENCE_S = 30.0


def hammer(file: Path, organization: UUID, calls: int, ready: Barrier) -> int:
    """Charge 0.03 so many times and pay 0.01 in as often; return how many charges were made."""
    log = open_log(file)
    committer = Committer(log)

    def once(_: int) -> bool:
        pay_in(committer, "0.01", organization)
        try:
            take(committer, "0.03", organization)
        except InsufficientBalance:
            return False
        return True

    ready.wait(PATIENCE_S)
    with ThreadPoolExecutor(THREADS) as pool:
        charged = sum(pool.map(once, range(calls)))
    committer.close()
    log.close()
    return charged
