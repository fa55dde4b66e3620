"""The transaction stream: every entry of a wallet once, in the order of the log, page by page."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from projections.models.transactions import EntryFilter, Transaction
from tests.installation import Process, SetClock
from tests.projections.histories import DOWN, create_job, finish_job, look_up

ALL = EntryFilter()


def page(
    process: Process,
    organization_id: UUID,
    wanted: EntryFilter = ALL,
    offset: int = 0,
    limit: int = 100,
) -> tuple[list[Transaction], int]:
    process.projector.catch_up()
    with process.views.reading() as connection:
        return process.transactions.page(
            connection, organization_id, wanted, offset=offset, limit=limit
        )


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def organization_id(process: Process, clock: SetClock) -> UUID:
    """An organization with one entry a minute: 1 deposit, 8 lookups, 2 adjustments, 1 job."""
    process.clock = clock
    made = process.organization("1.00")
    process.organization("5.00", "Somebody Else")
    for number in range(8):
        clock.forward(minutes=1)
        look_up(process, made, f"+1415555010{number}")
    for amount in (-10_000, 20_000):
        clock.forward(minutes=1)
        process.accounts.adjust(
            made, amount, "a correction", process.cause(), reference=str(amount)
        )
    clock.forward(minutes=1)
    job_id = create_job(process, made, ["+14155550109", DOWN])
    clock.forward(minutes=1)
    finish_job(process, job_id)
    return made


def test_every_kind_of_entry_is_shown_whole(process: Process, organization_id: UUID) -> None:
    found, total = page(process, organization_id)
    assert total == 13
    assert [each.sequence for each in found] == [*range(13, 0, -1)]
    assert [each.position for each in found] == sorted((f.position for f in found), reverse=True)
    told = [(each.kind, each.direction, each.amount_micros) for each in found]
    assert told == [
        ("refund", "credit", 5_000),
        ("bulk_lookup", "debit", 10_000),
        ("adjustment", "credit", 20_000),
        ("adjustment", "debit", 10_000),
        *[("lookup", "debit", 5_000)] * 8,
        ("deposit", "credit", 1_000_000),
    ]
    balance = 0
    for each in reversed(found):
        balance += each.amount_micros if each.direction == "credit" else -each.amount_micros
        assert each.balance_micros == balance
        assert (each.organization_id, each.currency) == (organization_id, "USD")


@pytest.mark.any_database
def test_an_entry_names_its_reason_and_what_it_is_made_of(
    process: Process, organization_id: UUID, clock: SetClock
) -> None:
    (refund, charge, adjustment), _ = page(process, organization_id, limit=3)
    assert refund.reference == charge.reference
    assert charge.reference.type == "job"
    assert charge.metadata == {"count": 2, "price_per_lookup": "0.005"}
    assert refund.metadata == {"count": 1}
    assert (refund.refund_of, refund.reason) == (charge.id, "lookup_unavailable")
    assert (charge.refund_of, charge.reason) == (None, None)
    assert adjustment.description == "a correction"
    assert refund.charged_at == clock.now


def test_pages_neither_repeat_nor_skip(process: Process, organization_id: UUID) -> None:
    for wanted, matching in ((ALL, 13), (EntryFilter(kind="lookup"), 8)):
        pages = [page(process, organization_id, wanted, offset, 3) for offset in range(0, 18, 3)]
        assert {total for _, total in pages} == {matching}
        sequences = [each.sequence for found, _ in pages for each in found]
        assert len(sequences) == matching
        assert sequences == sorted(set(sequences), reverse=True)
        assert pages[-1][0] == []


def test_a_page_past_the_end_is_empty(process: Process, organization_id: UUID) -> None:
    assert page(process, organization_id, offset=13) == ([], 13)
    assert page(process, organization_id, offset=10**9) == ([], 13)
    assert page(process, uuid4()) == ([], 0)


@pytest.mark.parametrize(("offset", "limit"), [(0, 1), (0, 100), (5, 3), (12, 5), (13, 5)])
def test_the_unfiltered_page_is_that_of_a_filter_that_lets_all_pass(
    process: Process, organization_id: UUID, clock: SetClock, offset: int, limit: int
) -> None:
    everything = EntryFilter(since=clock.now - timedelta(days=1))
    fast = page(process, organization_id, ALL, offset, limit)
    assert fast == page(process, organization_id, everything, offset, limit)


@pytest.mark.any_database
def test_kinds_are_listed_alone(process: Process, organization_id: UUID) -> None:
    counts = {
        kind: page(process, organization_id, EntryFilter(kind=kind))[1]
        for kind in ("deposit", "lookup", "adjustment", "bulk_lookup", "refund", "topup")
    }
    assert counts == {
        "deposit": 1,
        "lookup": 8,
        "adjustment": 2,
        "bulk_lookup": 1,
        "refund": 1,
        "topup": 0,
    }


def test_a_span_of_time_has_its_first_moment_and_not_its_last(
    process: Process, organization_id: UUID, clock: SetClock
) -> None:
    started = clock.now - timedelta(minutes=12)
    third, fifth = started + timedelta(minutes=3), started + timedelta(minutes=5)
    found, total = page(process, organization_id, EntryFilter(since=third, until=fifth))
    assert total == 2
    assert [each.charged_at for each in found] == [fifth - timedelta(minutes=1), third]
    assert page(process, organization_id, EntryFilter(since=fifth, until=third)) == ([], 0)
    microsecond = timedelta(microseconds=1)
    late = EntryFilter(kind="lookup", since=third + microsecond, until=fifth + microsecond)
    assert page(process, organization_id, late)[1] == 2


def test_a_reference_finds_the_charge_and_its_refund(
    process: Process, organization_id: UUID
) -> None:
    (refund, charge, *_), _ = page(process, organization_id)
    found, total = page(process, organization_id, EntryFilter(reference=charge.reference.id))
    assert (found, total) == ([refund, charge], 2)
    both = EntryFilter(kind="refund", reference=charge.reference.id)
    assert page(process, organization_id, both) == ([refund], 1)
    assert page(process, organization_id, EntryFilter(reference="nothing"))[1] == 0


@pytest.mark.any_database
def test_nobody_sees_the_transactions_of_others(process: Process, organization_id: UUID) -> None:
    (newest,), _ = page(process, organization_id, limit=1)
    with process.views.reading() as connection:
        assert process.transactions.get(connection, organization_id, newest.id) == newest
        assert process.transactions.get(connection, uuid4(), newest.id) is None
        assert process.transactions.get(connection, organization_id, uuid4()) is None
    elsewhere = EntryFilter(reference=newest.reference.id)
    assert page(process, uuid4(), elsewhere) == ([], 0)


MOMENTS = st.integers(0, 6 * 3_600)  # Seconds: a request's time, on the clock of some machine.


@pytest.mark.slow
@given(
    moments=st.lists(MOMENTS, min_size=1, max_size=30),
    span=st.tuples(st.none() | MOMENTS, st.none() | MOMENTS),
    kind=st.sampled_from([None, "deposit", "adjustment", "lookup"]),
    place=st.tuples(st.integers(0, 12), st.integers(1, 7)),
)
@settings(
    max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
def test_a_filtered_page_is_right_whatever_the_clocks_say(
    process: Process,
    moments: list[int],
    span: tuple[int | None, int | None],
    kind: str | None,
    place: tuple[int, int],
) -> None:
    process.clock = clock = SetClock()
    start = clock.now
    owner = process.organization("1.00")
    for number, moment in enumerate(moments):
        clock.now = start + timedelta(seconds=moment)
        if number % 3:
            process.accounts.adjust(owner, 1_000, "why", process.cause(), reference=f"{number}")
        else:
            process.accounts.deposit(owner, 1_000_000, f"{number}", process.cause())
    since, until = (None if each is None else start + timedelta(seconds=each) for each in span)
    everything, _ = page(process, owner)
    right = [
        each
        for each in everything
        if (kind is None or each.kind == kind)
        and (since is None or each.charged_at >= since)
        and (until is None or each.charged_at < until)
    ]
    offset, limit = place
    found = page(process, owner, EntryFilter(kind, since, until), offset, limit)
    assert found == (right[offset : offset + limit], len(right))
