"""Complete rewrites: a whole log in which one thing is wrong, with leaves and notes made anew.

`REWRITES` are found without anything that was kept outside. `UNSEEN` are not: such a log is what
another honest history would be, so only a kept checkpoint convicts it (docs/finance.md).
"""

from collections.abc import Callable
from inspect import isfunction
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


# Deposits and adjustments.


def a_deposit_doubled_under_another_id(log: Rewriting) -> None:
    made = log.all("deposit.made")[-1]
    _copied(log, made, log.entry(made.state["transaction_id"]))


def a_deposit_made_again_in_its_own_stream(log: Rewriting) -> None:
    made = log.all("deposit.made")[-1]
    booked = log.entry(made.state["transaction_id"])
    log.insert(booked, log.again(made), log.again(booked))


def a_deposit_raised_in_its_entry(log: Rewriting) -> None:
    log.first("wallet.deposited").state["amount_micros"] += 1


def a_deposit_raised_in_its_reason(log: Rewriting) -> None:
    log.first("deposit.made").state["amount_micros"] += 1


def a_deposit_under_another_reference(log: Rewriting) -> None:
    made = log.all("deposit.made")[-1]
    made.state["reference"] = "bank-9"
    log.entry(made.state["transaction_id"]).state["reference"]["id"] = "bank-9"


def a_deposit_that_nobody_paid(log: Rewriting) -> None:
    log.drop(log.all("deposit.made")[-1])


def a_deposit_that_is_not_booked(log: Rewriting) -> None:
    log.drop(log.all("wallet.deposited")[-1])


def a_deposit_of_a_negative_amount(log: Rewriting) -> None:
    made = log.all("deposit.made")[-1]
    made.state["amount_micros"] = -1
    log.entry(made.state["transaction_id"]).state["amount_micros"] = -1


def a_deposit_in_another_wallet(log: Rewriting) -> None:
    made = log.all("deposit.made")[-1]
    made.state["organization_id"] = str(uuid4())
    made.stream = _id("deposit", made.state["organization_id"], made.state["reference"])


def an_adjustment_with_the_other_sign(log: Rewriting) -> None:
    log.first("wallet.adjusted").state["amount_micros"] *= -1


def an_adjustment_for_another_cause(log: Rewriting) -> None:
    log.first("wallet.adjusted").state["description"] = "a present"


def an_adjustment_of_the_first_releases(log: Rewriting) -> None:
    last = log.all("wallet.adjusted")[-1]
    new = str(uuid4())
    alone = {"type": "adjustment", "id": new}
    log.insert(last, log.again(last, transaction_id=new, reference=alone, amount_micros=900))


def an_adjustment_under_another_id(log: Rewriting) -> None:
    _replace(log, log.first("adjustment.made").stream, str(uuid4()))


def an_approval_by_who_proposed(log: Rewriting) -> None:
    log.first("adjustment.approved").state["actor"] = log.first("adjustment.proposed").state[
        "actor"
    ]


def an_approval_of_another_sum(log: Rewriting) -> None:
    approved = log.first("adjustment.approved")
    approved.state["amount_micros"] += 100
    log.entry(approved.state["transaction_id"]).state["amount_micros"] += 100


def a_proposal_that_moves_money_at_once(log: Rewriting) -> None:
    log.drop(log.first("adjustment.approved"))


def an_approval_that_is_booked_twice(log: Rewriting) -> None:
    approved = log.first("adjustment.approved")
    booked = log.entry(approved.state["transaction_id"])
    log.insert(booked, log.again(approved), log.again(booked))


# Lookups.


def a_lookup_charged_at_another_price(log: Rewriting) -> None:
    _paid(log, "number_lookup.answered")[1].state["amount_micros"] += 5_000


def a_lookup_charged_twice(log: Rewriting) -> None:
    charged = _paid(log, "number_lookup.answered")[1]
    log.insert(charged, log.again(charged))


def a_lookup_given_for_nothing(log: Rewriting) -> None:
    log.drop(_paid(log, "number_lookup.answered")[1])


def a_charge_without_its_lookup(log: Rewriting) -> None:
    log.drop(_paid(log, "number_lookup.answered")[0])


def a_charge_for_another_lookup(log: Rewriting) -> None:
    _paid(log, "number_lookup.answered")[1].state["reference"]["id"] = str(uuid4())


def a_charge_of_another_kind(log: Rewriting) -> None:
    _paid(log, "number_lookup.answered")[1].state["kind"] = "bulk_lookup"


def a_charge_under_another_id(log: Rewriting) -> None:
    answered, _ = _paid(log, "number_lookup.answered")
    _replace(log, answered.state["price"]["transaction_id"], str(uuid4()))


def a_charge_before_its_lookup(log: Rewriting) -> None:
    answered, charged = _paid(log, "number_lookup.answered", 1)
    first, second = (next(n for n, e in enumerate(log.rows) if e is r) for r in (answered, charged))
    log.rows[first], log.rows[second] = charged, answered


def a_charge_in_another_currency(log: Rewriting) -> None:
    answered, charged = _paid(log, "number_lookup.answered")
    answered.state["price"]["currency"] = charged.state["currency"] = "EUR"


def the_same_lookup_twice(log: Rewriting) -> None:
    answered, charged = _paid(log, "number_lookup.answered")
    copied = Row(answered.stream, 1, answered.topic, answered.state)
    at = log.rows.index(charged) + 1
    log.rows.insert(at, copied)
    log.insert(copied, log.again(charged))


# Jobs.


def a_job_of_another_sum(log: Rewriting) -> None:
    created, charged = _paid(log, "bulk_job.created")
    created.state["price"]["amount_micros"] += 1_000
    charged.state["amount_micros"] += 1_000


def failed_items_that_are_kept(log: Rewriting) -> None:
    failed, refunded = _refunded(log, "bulk_job.items_failed")
    failed.state["refund"] = None
    log.drop(refunded)


def a_refund_that_is_not_given(log: Rewriting) -> None:
    log.drop(_refunded(log, "bulk_job.items_failed")[1])


def a_refund_of_more_than_failed(log: Rewriting) -> None:
    failed, refunded = _refunded(log, "bulk_job.items_failed")
    failed.state["refund"]["amount_micros"] += 1
    refunded.state["amount_micros"] += 1


def a_refund_over_its_charge(log: Rewriting) -> None:
    failed, refunded = _refunded(log, "bulk_job.items_failed")
    failed.state["refund"]["amount_micros"] = refunded.state["amount_micros"] = 90_000


def a_refund_given_twice(log: Rewriting) -> None:
    refunded = _refunded(log, "bulk_job.items_failed")[1]
    log.insert(refunded, log.again(refunded))


def a_refund_under_another_id(log: Rewriting) -> None:
    failed, _ = _refunded(log, "bulk_job.items_failed")
    _replace(log, failed.state["refund"]["transaction_id"], str(uuid4()))


def a_refund_of_another_job(log: Rewriting) -> None:
    charges = {row.state["price"]["transaction_id"] for row in log.all("bulk_job.created")}
    refunded = _refunded(log, "bulk_job.items_failed")[1]
    refunded.state["charge_id"] = (charges - {refunded.state["charge_id"]}).pop()


def a_refund_for_another_reason(log: Rewriting) -> None:
    _refunded(log, "bulk_job.items_failed")[1].state["reason"] = "by_hand"


def an_item_that_ends_twice(log: Rewriting) -> None:
    first, second = log.all("bulk_job.items_completed")[:2]
    second.state["indexes"] = first.state["indexes"]


def a_job_that_finishes_with_an_open_item(log: Rewriting) -> None:
    log.drop(log.first("bulk_job.items_completed"))


def a_cancelled_job_that_keeps_an_item(log: Rewriting) -> None:
    cancelled, refunded = _refunded(log, "bulk_job.cancelled")
    cancelled.state["count"] -= 1
    cancelled.state["refund"]["amount_micros"] -= 10_000
    refunded.state["amount_micros"] -= 10_000


# Links and changes of their plans.


def a_link_dearer_than_its_plan(log: Rewriting) -> None:
    requested, charged = _paid(log, "link.requested")
    requested.state["price"]["amount_micros"] += 1_000
    charged.state["amount_micros"] += 1_000


def a_link_that_nobody_has_paid_for(log: Rewriting) -> None:
    log.drop(_paid(log, "link.requested")[1])


def a_link_with_another_plan(log: Rewriting) -> None:
    log.first("link.activated").state["plan"]["data_mb"] += 1


def a_failed_link_that_keeps_the_money(log: Rewriting) -> None:
    failed, refunded = _refunded(log, "link.provisioning_failed")
    failed.state["refund"] = None
    log.drop(refunded)


def a_failed_link_that_gives_back_less(log: Rewriting) -> None:
    failed, refunded = _refunded(log, "link.provisioning_failed")
    failed.state["refund"]["amount_micros"] -= 1
    refunded.state["amount_micros"] -= 1


def _end(log: Rewriting) -> tuple[Row, Row]:
    ended = log.first("link.ended", reason="cancelled")
    return ended, log.entry(ended.state["refunds"][0]["transaction_id"])


def a_cancelled_link_that_gives_back_less(log: Rewriting) -> None:
    ended, refunded = _end(log)
    ended.state["refunds"][0]["amount_micros"] -= 1
    refunded.state["amount_micros"] -= 1


def a_cancelled_link_that_forgets_a_top_up(log: Rewriting) -> None:
    ended, _ = _end(log)
    forgotten = ended.state["refunds"].pop()
    log.drop(log.entry(forgotten["transaction_id"]), log.first("plan_change.returned"))


def a_cancellation_under_another_id(log: Rewriting) -> None:
    _replace(log, _end(log)[0].state["refunds"][0]["transaction_id"], str(uuid4()))


def an_end_made_a_cancellation(log: Rewriting) -> None:
    ended = log.all("link.ended", reason="ended")[-1]
    requested = log.first("link.requested")
    requested = next(r for r in log.all("link.requested") if r.stream == ended.stream)
    price = requested.state["price"]
    charged = log.entry(price["transaction_id"])
    new = _id("cancellation", price["transaction_id"])
    back = {"amount_micros": price["amount_micros"], "transaction_id": new}
    ended.state |= {
        "reason": "cancelled",
        "refunds": [back | {"charge_id": price["transaction_id"]}],
    }
    entry = log.all("wallet.refunded", reason="cancelled")[0].state
    before = [row for row in log.rows[: log.rows.index(ended)] if row.stream == charged.stream][-1]
    facts = entry | back | {"charge_id": price["transaction_id"]}
    facts["reference"] = charged.state["reference"]
    log.insert(ended, Row(charged.stream, before.version + 1, "wallet.refunded", facts))


def a_top_up_dearer_than_its_plan(log: Rewriting) -> None:
    requested = log.first("plan_change.requested")
    price = requested.state["additions"][0]["price"]
    price["amount_micros"] += 500
    log.entry(price["transaction_id"]).state["amount_micros"] += 500


def a_failed_top_up_that_keeps_the_money(log: Rewriting) -> None:
    failed = log.first("plan_change.failed")
    kept = failed.state["refunds"].pop()
    log.drop(log.entry(kept["transaction_id"]))


def a_top_up_that_is_not_on_its_link(log: Rewriting) -> None:
    log.drop(log.first("link.plan_added"))


def a_top_up_under_another_id(log: Rewriting) -> None:
    first = log.first("plan_change.requested").state["additions"][0]
    _replace(log, first["price"]["transaction_id"], str(uuid4()))


# Fees and refunds by hand.


def a_fee_doubled(log: Rewriting) -> None:
    stream, due = str(uuid4()), log.first("monthly_fee.due")
    charged = log.first("monthly_fee.charged")
    entry = log.entry(due.state["price"]["transaction_id"])
    price = due.state["price"] | {"transaction_id": _id("transaction", stream)}
    reference = {"type": "monthly_fee", "id": stream}
    booked = log.again(entry, transaction_id=price["transaction_id"], reference=reference)
    log.insert(
        entry,
        Row(stream, 1, due.topic, due.state | {"price": price}),
        Row(stream, 2, charged.topic, charged.state | {"price": price}),
        booked,
    )


def _fee(log: Rewriting) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    due, charged = log.first("monthly_fee.due").state, log.first("monthly_fee.charged").state
    return due, charged, log.entry(due["price"]["transaction_id"]).state


def a_fee_raised(log: Rewriting) -> None:
    due, charged, entry = _fee(log)
    for each in (due["price"], charged["price"], entry):
        each["amount_micros"] += 1


def a_fee_that_counts_a_link_twice(log: Rewriting) -> None:
    due, charged, entry = _fee(log)
    due["link_ids"].append(due["link_ids"][0])
    for each in (due["price"], charged["price"], entry):
        each["amount_micros"] += due["fee_micros"]


def a_fee_charged_otherwise_than_due(log: Rewriting) -> None:
    _, charged, entry = _fee(log)
    for each in (charged["price"], entry):
        each["amount_micros"] += 1


def a_fee_of_another_month(log: Rewriting) -> None:
    due, charged, _ = _fee(log)
    due["month"] = charged["month"] = "2025-12"


def a_refund_by_hand_of_more_than_is_left(log: Rewriting) -> None:
    refunded = log.first("number_lookup.refunded_by_hand")
    refunded.state["refund"]["amount_micros"] += 1
    log.entry(refunded.state["refund"]["transaction_id"]).state["amount_micros"] += 1


def a_refund_by_hand_under_another_reference(log: Rewriting) -> None:
    log.first("number_lookup.refunded_by_hand").state["reference"] = "t-9"


def a_refund_by_hand_given_again_under_one_reference(log: Rewriting) -> None:
    refunded = log.first("number_lookup.refunded_by_hand")
    booked = log.entry(refunded.state["refund"]["transaction_id"])
    refunded.state["refund"]["amount_micros"] = booked.state["amount_micros"] = 8_000
    log.insert(booked, log.again(refunded), log.again(booked))


def a_refund_by_hand_of_another_lookup(log: Rewriting) -> None:
    refunded = log.first("number_lookup.refunded_by_hand").state
    other = log.first("number_lookup.answered").state["price"]["transaction_id"]
    entry = log.entry(refunded["refund"]["transaction_id"]).state
    refunded["transaction_id"] = entry["charge_id"] = other
    new = _id("refund_by_hand", other, refunded["reference"])
    refunded["refund"]["transaction_id"] = entry["transaction_id"] = new
    refunded["refund"]["amount_micros"] = entry["amount_micros"] = 10_000


# Wallets, months, streams.


def a_limit_that_is_exceeded(log: Rewriting) -> None:
    log.first("wallet.spending_limited").state["spending"]["limit_micros"] = 1


def a_second_wallet(log: Rewriting) -> None:
    opened = log.first("wallet.opened")
    log.insert(opened, Row(str(uuid4()), 1, opened.topic, opened.state))


def a_wallet_that_begins_with_an_entry(log: Rewriting) -> None:
    made = log.all("deposit.made")[-1]
    booked = log.entry(made.state["transaction_id"])
    state = {"originator_topic": "wallet"} | booked.state
    entry = Row(str(uuid4()), 1, booked.topic, state)
    log.insert(booked, entry)
    log.drop(booked)


def a_month_that_is_left_out(log: Rewriting) -> None:
    log.drop(log.first("month.closed", month="2026-02"))


def a_month_closed_before_its_end(log: Rewriting) -> None:
    log.first("month.closed").state["timestamp"] = "2026-01-30T00:00:00.000000Z"


def a_month_closed_under_another_id(log: Rewriting) -> None:
    log.first("month.closed").stream = str(uuid4())


def a_stream_that_begins_as_another_kind(log: Rewriting) -> None:
    log.first("deposit.made").state["originator_topic"] = "wallet"


def another_currency_of_the_log(log: Rewriting) -> None:
    log.first("ledger.opened").state["currency"] = "EUR"


# What nobody can see in the log itself.


def a_lookup_dearer_in_every_place(log: Rewriting) -> None:
    answered, charged = _paid(log, "number_lookup.answered")
    answered.state["price"]["amount_micros"] += 5_000
    charged.state["amount_micros"] += 5_000


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
    a_lookup_dearer_in_every_place,
    a_lookup_that_never_was,
    a_lookup_forgotten_whole,
    a_deposit_that_never_came,
    an_adjustment_with_another_cause_in_both,
    another_who_paid_in,
    another_moment,
    another_cost_at_the_provider,
    an_end_that_is_cut_off,
)

# All others of this module, in their order.
REWRITES: tuple[Rewrite, ...] = tuple(
    each
    for name, each in [*vars().items()]
    if isfunction(each) and each.__module__ == __name__ and name[0] != "_" and each not in UNSEEN
)
