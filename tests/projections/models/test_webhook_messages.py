"""Messages are the same wherever a batch ends, whoever writes it, and whatever comes to nothing."""

import json
from collections.abc import Iterator
from datetime import date
from uuid import UUID
from zlib import crc32

import pytest
from sqlalchemy.exc import IntegrityError

from domain.accounts.organization import Organization
from domain.accounts.wallet import Wallet
from domain.money import format_amount, parse_amount
from domain.webhooks.messages import OF_ENTRIES, TYPES, types_of
from projections.engine.read_model import Batch
from projections.engine.verify import differences
from projections.models.webhook_messages import STORED, MessageRow, WebhookMessages
from tests.installation import Installation, Process, numbers


def set_threshold(process: Process, owner: UUID, amount: str | None) -> None:
    micros = None if amount is None else parse_amount(amount)
    process.change(owner, lambda it, cause: it.set_low_balance_threshold(micros, cause))


def live(process: Process, owner: UUID) -> None:
    """Let balances fall below thresholds that come, move and go, and jobs end in each way."""
    for amount in ("99.998", None, "99.962", "99.95"):
        set_threshold(process, owner, amount)
        for _ in range(3):
            process.look_up(owner)
    process.accounts.move("deposit", owner, parse_amount("1.00"), "more", process.cause())
    process.finish_job(process.create_job(owner, numbers(3)))
    process.cancel_job(process.create_job(owner, numbers(3)))


def low_balances(process: Process) -> Iterator[tuple[int, str]]:
    """Yield where a balance fell below the threshold of that moment, read event by event."""
    thresholds = dict[UUID, int | None]()
    for position, event in process.log.read(0, 10_000):
        if isinstance(event, Organization.LowBalanceThresholdSet):
            thresholds[event.originator_id] = event.threshold_micros
        elif isinstance(event, Wallet.Charged):
            limit = thresholds.get(event.organization_id)
            before = event.balance_micros + event.amount_micros
            if limit is not None and event.balance_micros < limit <= before:
                yield position, format_amount(event.balance_micros)


def rows(process: Process) -> list[MessageRow]:
    model = process.webhook_messages
    with process.views.reading() as connection:
        found = connection.execute(model.rows.select().order_by(model.rows.c.position)).all()
    return [*map(STORED.read, found)]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
def test_a_batch_may_end_anywhere(
    process: Process, organization_id: UUID, installation: Installation, size: int
) -> None:
    live(process, organization_id)
    other = installation.process()
    assert other.models
    model, events = other.webhook_messages, other.log.read(0, 10_000)
    for start in range(0, len(events), size):
        part = events[start : start + size]
        with other.views.writing() as connection:
            model.follow(connection, Batch(part, part[0].position - 1, part[-1].position))
    low = [(it.position, it.body) for it in rows(other) if it.type == "wallet.low_balance"]
    told = [(position, json.loads(body)["data"]["balance"]) for position, body in low]
    assert told == [*low_balances(process)]
    assert len(told) == 3
    kinds = TYPES.keys() - OF_ENTRIES.keys() - {"wallet.low_balance"}
    expected = [e.position for e in events for name in types_of(e.event) if name in kinds]
    assert [it.position for it in rows(other) if it.type in kinds] == expected
    process.projector.catch_up()
    assert rows(process) == rows(other)


@pytest.mark.parametrize(("threshold", "told"), [("50.00", ["20.00"]), ("15.00", ["0.00"])])
def test_a_claim_lifts_no_balance_that_then_falls_again(
    process: Process, organization_id: UUID, threshold: str, told: list[str]
) -> None:
    facts = {"reason": "a charge-back", "value_date": date(2026, 2, 27), "deposit": "bank-1"}
    set_threshold(process, organization_id, threshold)
    process.adjust(organization_id, -parse_amount("80.00"))
    process.accounts.move("reversal", organization_id, None, "back-1", process.cause(), **facts)
    process.projector.catch_up()
    low = [json.loads(it.body)["data"] for it in rows(process) if it.type == "wallet.low_balance"]
    assert [each["balance"] for each in low] == told


def test_what_another_process_writes_meanwhile_counts(
    process: Process, organization_id: UUID, installation: Installation
) -> None:
    other = installation.process()
    process.projector.catch_up()
    set_threshold(process, organization_id, "99.999")
    other.projector.catch_up()
    process.look_up(organization_id)
    process.projector.catch_up()
    set_threshold(process, organization_id, None)
    process.projector.catch_up()
    process.accounts.move("deposit", organization_id, parse_amount("1.00"), "more", process.cause())
    other.projector.catch_up()
    set_threshold(process, organization_id, "100.994")
    process.projector.catch_up()
    process.look_up(organization_id)
    process.look_up(organization_id)
    other.projector.catch_up()
    low = [it.position for it in rows(process) if it.type == "wallet.low_balance"]
    assert low == [position for position, _ in low_balances(process)]
    assert len(low) == 2


@pytest.mark.parametrize("times", [1, 2], ids=["rolled back", "refused"])
def test_what_comes_to_nothing_does_not_count(
    process: Process, organization_id: UUID, times: int
) -> None:
    model = process.webhook_messages
    process.projector.catch_up()
    place = process.positions.all(process.views)[model.name].position
    process.look_up(organization_id)
    set_threshold(process, organization_id, "99.999")
    process.accounts.move("deposit", organization_id, parse_amount("1.00"), "more", process.cause())
    *events, last = process.log.read(place, 10)

    def write() -> None:
        with process.views.writing() as connection:
            model.follow(connection, Batch([*events, *[last] * times], place, last.position))
            raise RuntimeError

    with pytest.raises((RuntimeError, IntegrityError)):
        write()
    process.projector.catch_up()
    assert [it.type for it in rows(process)] == ["wallet.deposited"] * 2
    assert differences(process.source, model) == []


def test_what_is_told_changes_with_the_version() -> None:
    """Else the rows of before would lack what a rebuild makes: raise it, and write both anew."""
    told = sorted(f"{name} {kind.TOPIC}" for name, (kinds, _) in TYPES.items() for kind in kinds)
    assert (WebhookMessages.version, crc32(" ".join(told).encode())) == (4, 0xB370254B), told
