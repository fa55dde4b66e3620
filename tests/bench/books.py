"""Time and memory of the commands of finance: `python -m tests.bench.books [EVENTS]`.

Writes an export of a year of lookups in a thousand wallets, makes an installation of it, and runs
each command as a process of its own, beside merely reading the log. Prints a table in Markdown.
"""

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import msgspec

from domain.accounts.currency import Ledger
from domain.accounts.paid_price import PaidPrice
from domain.accounts.wallet import Charge, Deposit, Reference, Wallet
from domain.cause import Cause
from domain.finance.month import Month
from domain.ids import derive_id
from domain.log.aggregate import Root
from domain.log.mapper import MsgspecMapper
from domain.lookups.number_lookup import NumberLookup
from domain.months import month_of
from projections.audit.export import Exported
from projections.audit.tree import leaf_hash
from tests.bench.engine import database_url
from tests.golden.building import SEALED
from tests.tidy.source import ROOT

EVENTS, WALLETS = 1_000_000, 1_000
BEGIN, YEAR = datetime(2025, 1, 1, tzinfo=UTC), timedelta(days=365)
PRICE = 5_000
READ = """
import sys; sys.path.insert(0, ".")
from app.bootstrap.container import Container
from app.settings import Settings
log, after = Container(Settings.load()).log, 0
while stretch := log.follow(after, 2_000).last: after = stretch.position
"""


def history(events: int) -> Iterator[Sequence[Root]]:
    """Yield what is committed together, until there are so many events."""
    dice, at = random.Random(1), BEGIN
    cause = Cause(at, "bench")
    wallets = [Wallet.open(uuid4(), "USD", cause) for _ in range(WALLETS)]
    yield [Ledger.open("USD", cause), *wallets]
    for wallet in wallets:
        deposit = Deposit.make(wallet.organization_id, "bank", 10**12, cause)
        wallet.deposit(deposit, "USD", cause)
        yield [deposit, wallet]
    lookups = (events - 3 * WALLETS - 1) // 2
    for _ in range(lookups):
        before, at = month_of(at), at + YEAR / lookups
        cause, wallet = Cause(at, f"req-{uuid4()}"), dice.choice(wallets)
        if month_of(at) > before:
            yield [Month.close(before, Cause(at + timedelta(minutes=5), f"month-{before}"))]
        lookup_id = uuid4()
        price = PaidPrice(PRICE, "USD", derive_id("transaction", lookup_id))
        facts = {"source": "live", "as_of": at, "provider": "offline", "personal": SEALED}
        lookup = NumberLookup.begin(
            NumberLookup.Answered,
            cause,
            lookup_id,
            organization_id=wallet.organization_id,
            price=price,
            **facts,
        )
        reference = Reference("lookup", str(lookup.id))
        charge = (price.transaction_id, "lookup", PRICE, "USD", reference, "Number lookup")
        wallet.charge(Charge(*charge, {"count": 1}), cause)
        yield [lookup, wallet]


def write(file: Path, events: int) -> None:
    """Write a history as an export."""
    encode, store = msgspec.json.Encoder().encode, MsgspecMapper().to_stored_event
    position = 0
    with file.open("wb") as out:
        for commit in history(events):
            for event in (event for each in commit for event in each.collect_events()):
                position += 1
                stored = store(event)
                stream = stored.originator_id
                place = (position, stream, stored.originator_version, stored.topic)
                leaf = leaf_hash(*place, stored.state).hex()
                out.write(encode(Exported(*place, stored.state.decode(), leaf)) + b"\n")


def measured(name: str, *command: str) -> None:
    """Run a program and print a line: its time and the most memory that it had."""
    begun = time.monotonic()
    with subprocess.Popen([sys.executable, *command], cwd=ROOT, stdout=subprocess.DEVNULL) as run:
        _, status, used = os.wait4(run.pid, 0)
        run.returncode = os.waitstatus_to_exitcode(status)
    assert run.returncode == 0, name
    wall = time.monotonic() - begun
    print(f"| {name} | {used.ru_utime:.0f} s | {wall:.0f} s | {used.ru_maxrss / 1024:.0f} MB |")


def main(events: int) -> None:
    with TemporaryDirectory() as home:
        log = Path(home) / "log.jsonl"
        os.environ["DATABASE_URL"] = database_url(Path(home))
        os.environ |= {"SIGNING_KEYS": f"{home}/keys", "CHECKPOINT_LAG_S": "0"}
        write(log, events)
        print(f"{events:,} events, {WALLETS:,} wallets, {log.stat().st_size >> 20} MB\n")
        print("| Command | Processor | Clock | Memory at most |\n|---|---|---|---|")
        audit, out = ("-m", "app", "audit"), ("--out", f"{home}/out")
        measured("`audit import`", *audit, "import", str(log))
        measured("reading the log, nothing else", "-c", READ)
        for form in ("jsonl", "csv", "beancount"):
            measured(f"`audit export --format {form}`", *audit, "export", "--format", form, *out)
        measured("`audit checkpoint`, the first", *audit, "checkpoint", "--out", f"{home}/note")
        verify = (str(ROOT / "docs/verifier/verify.py"), str(log), "--checkpoint", f"{home}/note")
        measured("`verify.py` with that checkpoint", *verify)
        every = ("--all", "2025-12", "--out", f"{home}/statements")
        measured("`audit statement --all`, December", *audit, "statement", *every)
        measured("`audit trial-balance`", *audit, "trial-balance")
        measured("`audit margin`", *audit, "margin")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else EVENTS)
