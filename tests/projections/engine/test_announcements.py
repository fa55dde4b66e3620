"""What was announced has to be booked: in the same commit, in the same wallet, for the same sum."""

from collections.abc import Callable

import pytest

from domain.accounts.wallet import Reference, Wallet, wallet_id
from domain.finance.month import Month
from tests.installation import Process
from tests.projections.forgery import Forger, forged
from tests.projections.looking import register


@pytest.fixture
def forger(process: Process) -> Forger:
    return Forger(process)


def a_charge_that_was_not_taken(forger: Forger) -> int:
    return forger.write(forger.lookup())


def a_refund_that_was_not_given(forger: Forger) -> int:
    return forger.write(forger.failed(forger.job(), 0))


def a_deposit_that_was_not_booked(forger: Forger) -> int:
    return forger.write(forger.deposit()[0])


OMISSIONS: dict[Callable[[Forger], int], str] = {
    a_charge_that_was_not_taken: "which never comes",
    a_refund_that_was_not_given: "which never comes",
    a_deposit_that_was_not_booked: "which never comes",
}


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("omission", "reason"), OMISSIONS.items(), ids=[each.__name__ for each in OMISSIONS]
)
def test_what_was_announced_and_not_booked_is_found_where_it_was_announced(
    forger: Forger, omission: Callable[[Forger], int], reason: str
) -> None:
    position = omission(forger)
    register(forger.process, 3)
    (failure,) = forger.failures()
    assert reason in failure.reason
    assert failure.position == position


def wallet_of_somebody_else(forger: Forger) -> Wallet:
    organization_id = forger.process.organization("1.00", "Somebody Else")
    return forger.process.log.get(Wallet, wallet_id(organization_id))


def a_charge(forger: Forger, victim: Wallet) -> int:
    lookup = forger.lookup()
    forger.write(lookup)
    forger.wallet = victim
    return forger.write(forger.charge_for(lookup))


def a_refund(forger: Forger, friend: Wallet) -> int:
    job = forger.job()
    failed = forger.failed(job, 0)
    forger.write(failed)
    forger.wallet = friend
    return forger.write(forger.refund_for(job, failed))


def a_deposit(forger: Forger, friend: Wallet) -> int:
    forger.wallet = friend
    made, deposited = forger.deposit()
    forger.write(made)
    return forger.write(deposited)


@pytest.mark.any_database
@pytest.mark.parametrize("booking", [a_charge, a_refund, a_deposit])
def test_a_booking_in_the_wallet_of_somebody_else_is_found(
    forger: Forger, booking: Callable[[Forger, Wallet], int]
) -> None:
    position = booking(forger, wallet_of_somebody_else(forger))
    assert [failure.position for failure in forger.failures()] == [position]


@pytest.mark.any_database
def test_a_log_of_today_has_no_adjustment_of_an_earlier_release(forger: Forger) -> None:
    _, entry = forger.adjustment(-100_000)
    alone = Reference("adjustment", str(entry.transaction_id))
    forger.expect(forger.write(forged(entry, reference=alone)), "no event before it says so")


@pytest.mark.any_database
def test_nor_has_one_that_began_earlier_and_has_closed_a_month(forger: Forger) -> None:
    late = forger.adjusted(-100_000)
    (closed,) = Month.close("2026-01", forger.cause).collect_events()
    forger.write(closed)
    forger.expect(forger.write(late), "no event before it says so")


@pytest.mark.any_database
def test_an_adjustment_below_zero_is_found(forger: Forger) -> None:
    deeper = {"amount_micros": -1_000_001, "balance_micros": -1}
    position = forger.write(forger.adjusted(-1_000_000, **deeper))
    assert [failure.position for failure in forger.failures()] == [position]


@pytest.mark.any_database
def test_one_charge_does_not_pay_for_two_things(forger: Forger) -> None:
    first, second = forger.lookup(), forger.lookup()
    forger.write(first)
    position = forger.write(forged(second, price=first.price))
    forger.write(forger.charge_for(first))
    forger.expect(position, "announces again what has not come")
