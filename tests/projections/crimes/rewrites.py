"""Complete rewrites: a whole log in which one thing is wrong, with leaves and notes made anew.

`REWRITES` are found without anything that was kept outside. `UNSEEN` are not: such a log is what
another honest history would be, so only a kept checkpoint convicts it (docs/finance.md).
"""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

from domain.ids import derive_id
from tests.projections.rewriting import Rewriting, Row

Rewrite = Callable[[Rewriting], object]


def _id(*parts: Any) -> str:
    return str(derive_id(*parts))


def _replace(log: Rewriting, old: str, new: str) -> None:
    """Name something otherwise wherever it is named."""
    for row in log.rows:
        row.stream = new if row.stream == old else row.stream
        row.state = _with(row.state, old, new)


def _with(value: Any, old: str, new: str) -> Any:
    if isinstance(value, dict):
        return {name: _with(each, old, new) for name, each in value.items()}
    if isinstance(value, list):
        return [_with(each, old, new) for each in value]
    return new if value == old else value


def _paid(log: Rewriting, topic: str, at: int = 0) -> tuple[Row, Row]:
    """Return an event with a price, and the charge of it."""
    row = [row for row in log.all(topic) if row.state["price"]][at]
    return row, log.entry(row.state["price"]["transaction_id"])


def _refunded(log: Rewriting, topic: str) -> tuple[Row, Row]:
    """Return an event with a refund, and its entry."""
    row = next(row for row in log.all(topic) if row.state["refund"])
    return row, log.entry(row.state["refund"]["transaction_id"])


def _copied(log: Rewriting, row: Row, behind: Row, **changes: Any) -> tuple[Row, Row]:
    """Put in a second deposit or lookup under an id of its own, with its entry."""
    stream = str(uuid4())
    transaction = _id("transaction", stream)
    copied = Row(stream, 1, row.topic, row.state | changes)
    reference = behind.state["reference"]
    if row.topic.startswith("number_lookup"):
        copied.state["price"] = row.state["price"] | {"transaction_id": transaction}
        reference = {"type": "lookup", "id": stream}
    else:
        copied.state["transaction_id"] = transaction
    booked = log.again(behind, transaction_id=transaction, reference=reference)
    log.insert(behind, copied, booked)
    return copied, booked


def play_money_booked_as_a_payment(log: Rewriting) -> None:
    played = log.first("deposit.played").state
    log.entry(played["transaction_id"]).state["reference"]["type"] = "deposit"


def play_money_under_the_id_of_a_payment(log: Rewriting) -> None:
    """Both would be the deposit of one reference."""
    row = log.all("deposit.played")[1]
    stream = _id("deposit", row.state["organization_id"], row.state["reference"])
    transaction = row.state["transaction_id"]
    _replace(log, row.stream, stream)
    _replace(log, transaction, _id("transaction", stream))


def an_item_that_is_named_twice_in_one_event(log: Rewriting) -> None:
    failed, entry = _refunded(log, "bulk_job.items_failed")
    one, _ = failed.state["indexes"]
    failed.state["indexes"] = [one, one]
    _replace(log, entry.state["transaction_id"], _id("refund", failed.stream, one))


def _end(log: Rewriting) -> tuple[Row, Row]:
    ended = log.first("link.ended", reason="cancelled")
    return ended, log.entry(ended.state["refunds"][0]["transaction_id"])


def a_cancellation_under_another_id(log: Rewriting) -> None:
    _replace(log, _end(log)[0].state["refunds"][0]["transaction_id"], str(uuid4()))


def _fee(log: Rewriting) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    due, charged = log.first("monthly_fee.due").state, log.first("monthly_fee.charged").state
    return due, charged, log.entry(due["price"]["transaction_id"]).state


def a_fee_that_counts_a_link_twice(log: Rewriting) -> None:
    due, charged, entry = _fee(log)
    due["link_ids"].append(due["link_ids"][0])
    for each in (due["price"], charged["price"], entry):
        each["amount_micros"] += due["fee_micros"]


def _fee_of(log: Rewriting, micros: int, links: list[str]) -> None:
    """Let a fee be that of other links, in every place."""
    due, charged, entry = _fee(log)
    due |= {"fee_micros": micros, "link_ids": links}
    for each in (due["price"], charged["price"], entry):
        each["amount_micros"] = micros * len(links)


def a_fee_at_another_rate(log: Rewriting) -> None:
    due, *_ = _fee(log)
    _fee_of(log, due["fee_micros"] - 1_000, due["link_ids"])


def a_fee_that_leaves_out_a_link(log: Rewriting) -> None:
    due, *_ = _fee(log)
    _fee_of(log, due["fee_micros"], due["link_ids"][1:])


def a_fee_for_a_link_of_nobody(log: Rewriting) -> None:
    due, *_ = _fee(log)
    _fee_of(log, due["fee_micros"], [*due["link_ids"], str(uuid4())])


def a_fee_forgotten_whole(log: Rewriting) -> None:
    due, charged = log.first("monthly_fee.due"), log.first("monthly_fee.charged")
    log.drop(due, charged, log.entry(due.state["price"]["transaction_id"]))


def a_month_closed_before_its_end_by_a_clock_that_was_ahead(log: Rewriting) -> None:
    """And all before it, as if it were over; its own entries are behind that."""
    early = log.all("month.closed")[3:-1]
    log.drop(*early)
    log.insert(log.first("month.closed", month="2026-03"), *early)


def a_lookup_dearer_in_every_place(log: Rewriting) -> None:
    answered, charged = _paid(log, "number_lookup.answered")
    answered.state["price"]["amount_micros"] += 5_000
    charged.state["amount_micros"] += 5_000


def a_lookup_for_nothing(log: Rewriting) -> None:
    answered, charged = _paid(log, "number_lookup.answered")
    answered.state["price"] = None
    log.drop(charged)


def an_addition_to_another_link(log: Rewriting) -> None:
    log.first("plan_change.plan_addition_done").state["link_id"] = str(uuid4())


def a_job_at_twice_the_price(log: Rewriting) -> None:
    job = log.first("bulk_job.created")
    job.state["item_price_micros"] *= 2
    for row in log.rows:
        its = [row.state.get("price"), row.state.get("refund")] if row.stream == job.stream else []
        if row.state.get("reference") == {"type": "job", "id": job.stream}:
            its.append(row.state)
        for each in filter(None, its):
            each["amount_micros"] *= 2


def a_month_that_is_left_out(log: Rewriting) -> None:
    log.drop(log.first("month.closed", month="2026-02"))


# What nobody can see in the log itself.


def a_lookup_that_never_was(log: Rewriting) -> None:
    _copied(log, *_paid(log, "number_lookup.answered"))


def a_lookup_forgotten_whole(log: Rewriting) -> None:
    log.drop(*_paid(log, "number_lookup.answered"))


def a_deposit_that_never_came(log: Rewriting) -> None:
    made = log.all("deposit.made")[-1]
    owner, entry = made.state["organization_id"], log.entry(made.state["transaction_id"])
    copied, booked = _copied(log, made, entry, reference="bank-8")
    copied.stream = _id("deposit", owner, "bank-8")
    transaction = _id("transaction", copied.stream)
    copied.state["transaction_id"] = booked.state["transaction_id"] = transaction
    booked.state["reference"] = {"type": "deposit", "id": "bank-8"}


def an_adjustment_with_another_cause_in_both(log: Rewriting) -> None:
    made = log.first("adjustment.made").state
    made["reason"] = log.entry(made["transaction_id"]).state["description"] = "a present"


def another_who_paid_in(log: Rewriting) -> None:
    log.first("deposit.made").state["actor"] = "os:somebody"


def another_moment(log: Rewriting) -> None:
    row = _paid(log, "number_lookup.answered")[1]
    row.state["timestamp"] = row.state["timestamp"][:-4] + "001Z"


def another_cost_at_the_provider(log: Rewriting) -> None:
    log.first("number_lookup.answered").state["cost"] = {"amount_micros": 1, "currency": "USD"}


def an_end_that_is_cut_off(log: Rewriting) -> None:
    del log.rows[-2:]  # A whole commit.


UNSEEN: tuple[Rewrite, ...] = (
    a_lookup_that_never_was,
    a_lookup_forgotten_whole,
    a_deposit_that_never_came,
    an_adjustment_with_another_cause_in_both,
    another_who_paid_in,
    another_moment,
    another_cost_at_the_provider,
    an_end_that_is_cut_off,
)

# And by which sentence each is found.
REWRITES: dict[Rewrite, str] = {
    play_money_booked_as_a_payment: "has announced something else",
    play_money_under_the_id_of_a_payment: "follows from its facts",
    an_item_that_is_named_twice_in_one_event: "ends an item twice",
    a_cancellation_under_another_id: "follows from its facts",
    a_fee_that_counts_a_link_twice: "counts one twice",
    a_fee_at_another_rate: "were due for each of",
    a_fee_that_leaves_out_a_link: "were due for each of",
    a_fee_for_a_link_of_nobody: "were due for each of",
    a_fee_forgotten_whole: "which has not fallen due",
    a_month_closed_before_its_end_by_a_clock_that_was_ahead: "was closed before its end",
    a_lookup_dearer_in_every_place: "was in force",
    a_lookup_for_nothing: "was in force",
    a_job_at_twice_the_price: "was in force",
    a_month_that_is_left_out: "is closed after",
    an_addition_to_another_link: "has announced something else",
}
