"""A past for a log, appended in batches: paid lookups, jobs, and one wallet that pays."""

from uuid import UUID, uuid4

from domain.accounts.paid_price import PaidPrice
from domain.accounts.wallet import Charge, Reference, Wallet, wallet_id
from domain.log.log import Log
from domain.lookups.bulk_job import BulkJob, slice_count
from domain.lookups.single import NumberLookup
from domain.money import format_amount
from domain.personal import Sealed
from tests.bench.installation import cause
from tests.domain.build import charge, lookup
from tests.installation import PRICE_MICROS

BATCH = 250  # Steps in one transaction; only the building depends on it.
ANSWER_BYTES = 150  # What a sealed answer takes, about.
NUMBER_BYTES = 17  # The same of a sealed number.
SLICE_ITEMS = 250


def append_lookups(log: Log, organization: UUID, count: int) -> None:
    """Append paid lookups: two events each."""
    wallet = log.get(Wallet, wallet_id(organization))
    while count > 0:
        lookups = [_lookup(organization) for _ in range(min(BATCH, count))]
        for _ in lookups:
            wallet.book([new_charge()], cause())
        log.append(*lookups, wallet)
        count -= len(lookups)


def append_jobs(log: Log, organization: UUID, count: int, items: int) -> None:
    """Append paid jobs that have run to their end: three events, and two for each slice."""
    wallet = log.get(Wallet, wallet_id(organization))
    for _ in range(count):
        job = _job(organization, items)
        wallet.book([new_charge()], cause())
        for slice_index in range(slice_count(job.created)):
            job.start_slice(slice_index, cause())
            indexes = job.open_items(slice_index)
            job.complete_items(slice_index, indexes, _sealed(len(indexes) * ANSWER_BYTES), cause())
        job.finish_if_settled(cause())
        log.append(job, wallet)


def new_charge() -> Charge:
    """Return the charge of a lookup."""
    reference = Reference("lookup", str(uuid4()))
    return charge(format_amount(PRICE_MICROS), currency="USD", reference=reference)


def _lookup(organization: UUID) -> NumberLookup:
    facts = {"organization_id": organization, "personal": _sealed(ANSWER_BYTES)}
    return lookup(None, cause(), price=PaidPrice(PRICE_MICROS, "USD", uuid4()), **facts)


def _job(organization: UUID, items: int) -> BulkJob:
    return BulkJob.create(
        uuid4(),
        cause(),
        organization_id=organization,
        total_count=items,
        slice_size=SLICE_ITEMS,
        item_price_micros=PRICE_MICROS,
        price=PaidPrice(PRICE_MICROS * items, "USD", uuid4()),
        personal=_sealed(items * NUMBER_BYTES),
    )


def _sealed(size_bytes: int) -> Sealed:
    return Sealed("2026-01", bytes(size_bytes))
