"""A process that charges a wallet by many threads: `python -m tests.app.adapters.charging …`.

It writes a line when it has charged once, and at its end how often it was told that it had.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from uuid import UUID

from app.bootstrap.container import Container
from app.settings import Settings
from tests.domain.build import take
from tests.support import warm

THREADS = 8


@contextmanager
def charging(
    url: str, organization: UUID, charges: int, processes: int
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Run processes that each charge 0.01 so many times; they have all begun."""
    arguments = [url, str(organization), str(charges)]
    with ExitStack() as stack:
        running = []
        for _ in range(processes):
            each = stack.enter_context(
                warm.start(arguments, os.environ, __name__, stdout=subprocess.PIPE)
            )
            stack.callback(each.kill)
            running.append(each)
        for each in running:
            assert each.stdout is not None
            assert each.stdout.readline() == b"charging\n"
        yield running


def main(url: str, organization: UUID, charges: int) -> None:
    container = Container(Settings.from_env({"DATABASE_URL": url}))
    charge = partial(take, container.committer, "0.01", organization, "USD")
    charge()
    sys.stdout.write("charging\n")
    sys.stdout.flush()
    with ThreadPoolExecutor(THREADS) as pool:
        done = [pool.submit(charge) for _ in range(charges)]
    container.close()
    sys.stdout.write(str(1 + sum(each.exception() is None for each in done)))


if __name__ == "__main__":
    main(sys.argv[1], UUID(sys.argv[2]), int(sys.argv[3]))
