"""Endpoints are made, changed, ended and asked for something, once for each key."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest

from domain.errors import (
    IdempotencyKeyReused,
    NotFound,
    RateLimited,
    WebhookDisabled,
    WebhookLimit,
)
from domain.webhooks.commands import Changes, Draft
from domain.webhooks.endpoint import CHANGES_MAX, LASTING, Address, WebhookEndpoint, WebhookList
from tests.installation import Installation, Process, SetClock
from tests.support.erasing import erase_months

URL = "https://partner.example/hooks?token=s3cret"


def draft(
    owner: UUID, key: str | None = None, url: str = URL, events: Sequence[str] | None = None
) -> Draft:
    return Draft(owner, url, "Ærø's hook", events, key)


def numbers(endpoint: WebhookEndpoint, at: datetime) -> list[int]:
    return [each.number for each in endpoint.generations(at)]


def made(process: Process, owner: UUID) -> WebhookEndpoint:
    return process.webhooks.register(draft(owner), process.cause())[0]


def test_an_endpoint_reads_back_as_it_was_registered(process: Process) -> None:
    owner = process.organization()
    endpoint = made(process, owner)
    read = process.webhooks.get(owner, endpoint.id)
    assert process.webhooks.address(read) == Address(URL, "Ærø's hook")
    assert (read.events, read.disabled, numbers(read, process.clock())) == (None, None, [1])
    assert [each.id for each in process.webhooks.all(owner)] == [endpoint.id]


@pytest.mark.any_database
def test_no_event_holds_an_address_in_clear(process: Process) -> None:
    owner = process.organization()
    endpoint = made(process, owner)
    process.webhooks.change(owner, endpoint.id, Changes(url=URL + "&more"), process.cause())
    stored = b"".join(row.state for row in process.log.stored(0, 100))
    assert b"partner.example" not in stored
    assert b"s3cret" not in stored


def test_the_erasure_of_months_leaves_an_address_and_its_key_ends_it(process: Process) -> None:
    owner = process.organization()
    endpoint = made(process, owner)
    erase_months(process.vault, "9999-12", owner)
    assert process.webhooks.address(endpoint) is not None
    erase_months(process.vault, f"{LASTING}~", owner)
    assert process.webhooks.address(endpoint) is None
    with pytest.raises(NotFound):
        process.webhooks.change(
            owner, endpoint.id, Changes(url="https://b.example"), process.cause()
        )


@pytest.mark.any_database
def test_an_endpoint_changes_only_so_often_a_day_so_that_its_stream_stays_short(
    process: Process,
) -> None:
    owner, cause = process.organization(), process.cause()
    endpoint, newer = made(process, owner), replace(cause, at=cause.at + timedelta(days=1))
    for _ in range(CHANGES_MAX):
        endpoint.change(endpoint.personal, None, cause)
    endpoint.disable("asked", cause)
    for ask in (
        lambda: endpoint.change(endpoint.personal, None, cause),
        lambda: endpoint.rotate_secret(None, cause),
        lambda: endpoint.enable(cause),
    ):
        with pytest.raises(RateLimited):
            ask()
    endpoint.enable(newer)
    assert (endpoint.disabled, endpoint.changes.times) == (None, 1)


@pytest.mark.any_database
def test_an_organization_registers_only_so_many_a_day(process: Process) -> None:
    owner, cause = process.organization(), process.cause()
    listed, ids = WebhookList.open(owner, cause), [uuid4() for _ in range(CHANGES_MAX)]
    for each in ids:
        listed.add(each, cause)
        listed.remove(each, cause)
    with pytest.raises(RateLimited):
        listed.add(ids[0], cause)
    listed.add(ids[0], replace(cause, at=cause.at + timedelta(days=1)))
    assert listed.endpoint_ids == ids[:1]


@pytest.mark.any_database
def test_another_organization_sees_none_of_it(process: Process) -> None:
    owner, other = process.organization(), process.organization(name="Other")
    endpoint, cause = made(process, owner), process.cause()
    webhooks = process.webhooks
    for ask in (
        lambda: webhooks.get(other, endpoint.id),
        lambda: webhooks.change(other, endpoint.id, Changes(enabled=False), cause),
        lambda: webhooks.delete(other, endpoint.id, cause),
        lambda: webhooks.rotate_secret(other, endpoint.id, None, cause),
        lambda: webhooks.test(other, endpoint.id, cause),
        lambda: webhooks.redeliver(other, endpoint.id, uuid4(), None, cause),
        lambda: webhooks.get(other, uuid4()),
    ):
        with pytest.raises(NotFound):
            ask()
    assert webhooks.all(other) == []


@pytest.mark.any_database
def test_a_key_makes_one_endpoint_and_stands_for_one_request(process: Process) -> None:
    owner, other = process.organization(), process.organization(name="Other")
    first, was_made = process.webhooks.register(draft(owner, "k"), process.cause())
    again, is_replay = process.webhooks.register(draft(owner, "k"), process.cause("request-2"))
    assert (first.id, was_made, is_replay) == (again.id, False, True)
    assert process.webhooks.register(draft(other, "k"), process.cause())[0].id != first.id
    for unlike in (draft(owner, "k", URL + "2"), draft(owner, "k", events=["job.finished"])):
        with pytest.raises(IdempotencyKeyReused):
            process.webhooks.register(unlike, process.cause())
    process.webhooks.change(owner, first.id, Changes(url="https://b.example"), process.cause())
    assert process.webhooks.register(draft(owner, "k"), process.cause())[1]


def test_twelve_at_once_make_ten_and_twelve_with_one_key_make_one(
    installation: Installation,
) -> None:
    processes = [installation.process() for _ in range(4)]
    crowded, keyed = (processes[0].organization(name=name) for name in ("a", "b"))

    def one(index: int) -> object:
        process = processes[index % 4]
        try:
            return process.webhooks.register(draft(crowded), process.cause(f"r-{index}"))[0].id
        except WebhookLimit:
            return None

    def same(index: int) -> object:
        process = processes[index % 4]
        return process.webhooks.register(draft(keyed, "k"), process.cause(f"r-{index}"))[0].id

    with ThreadPoolExecutor(12) as pool:
        outcomes = [*pool.map(one, range(12))]
        assert len(set(pool.map(same, range(12)))) == 1
    assert outcomes.count(None) == 2
    ids = {each.id for each in processes[0].webhooks.all(crowded)}
    assert ids == {*outcomes} - {None}
    process = processes[0]
    process.webhooks.delete(crowded, ids.pop(), process.cause())
    assert process.webhooks.register(draft(crowded), process.cause())


@pytest.mark.any_database
def test_a_change_keeps_what_it_does_not_name_and_leaves_no_event_for_nothing(
    process: Process,
) -> None:
    owner = process.organization()
    endpoint = made(process, owner)

    def change(changes: Changes) -> WebhookEndpoint:
        return process.webhooks.change(owner, endpoint.id, changes, process.cause())

    changed = change(Changes(events=["job.finished"], description=None))
    assert process.webhooks.address(changed) == Address(URL, None)
    assert changed.events == ["job.finished"]
    assert change(Changes(url=URL, events=["job.finished"], enabled=True)).version == 2
    assert change(Changes(events=None)).events is None
    disabled = change(Changes(enabled=False)).disabled
    assert disabled is not None
    assert disabled.reason == "asked"
    assert change(Changes(enabled=False)).version == 4
    assert change(Changes(enabled=True)).disabled is None


@pytest.mark.any_database
def test_a_deleted_endpoint_is_gone_and_deleting_it_again_changes_nothing(
    process: Process,
) -> None:
    owner = process.organization()
    endpoint = made(process, owner)
    first = process.webhooks.delete(owner, endpoint.id, process.cause())
    assert process.webhooks.delete(owner, endpoint.id, process.cause()).version == first.version
    assert process.webhooks.all(owner) == []
    with pytest.raises(NotFound):
        process.webhooks.get(owner, endpoint.id)
    with pytest.raises(NotFound):
        process.webhooks.change(owner, endpoint.id, Changes(enabled=True), process.cause())


@pytest.mark.any_database
def test_two_secrets_sign_for_a_day_after_a_rotation(installation: Installation) -> None:
    clock = SetClock()
    process = installation.process(clock)
    owner = process.organization()
    endpoint = made(process, owner)
    rotated, generation, _ = process.webhooks.rotate_secret(
        owner, endpoint.id, None, process.cause()
    )
    assert (generation.number, numbers(rotated, clock())) == (2, [2, 1])
    assert numbers(rotated, clock() + timedelta(hours=24)) == [2]
    rotated, generation, _ = process.webhooks.rotate_secret(
        owner, endpoint.id, None, process.cause()
    )
    assert numbers(rotated, clock()) == [3, 2]


def test_a_key_rotates_once_and_for_one_endpoint(process: Process) -> None:
    owner = process.organization()
    endpoint, other = made(process, owner), made(process, owner)
    key_id = process.webhook_key.newest().id
    for is_replay in (False, True):
        _, *rest = process.webhooks.rotate_secret(owner, endpoint.id, "k", process.cause())
        assert rest == [(2, key_id), is_replay]
    process.webhook_key.rotate()
    process.webhooks.rotate_secret(owner, endpoint.id, None, process.cause())
    _, *rest = process.webhooks.rotate_secret(owner, endpoint.id, "k", process.cause())
    assert rest == [(2, key_id), True]
    with pytest.raises(IdempotencyKeyReused):
        process.webhooks.rotate_secret(owner, other.id, "k", process.cause())


@pytest.mark.any_database
def test_a_key_asks_for_one_delivery_again_and_a_disabled_endpoint_is_asked_for_nothing(
    process: Process,
) -> None:
    owner, delivery = process.organization(), uuid4()
    endpoint, cause, webhooks = made(process, owner), process.cause(), process.webhooks
    assert not webhooks.redeliver(owner, endpoint.id, delivery, "k", cause)
    assert webhooks.redeliver(owner, endpoint.id, delivery, "k", cause)
    with pytest.raises(IdempotencyKeyReused):
        webhooks.redeliver(owner, endpoint.id, uuid4(), "k", cause)
    assert webhooks.test(owner, endpoint.id, cause) != webhooks.test(owner, endpoint.id, cause)
    webhooks.change(owner, endpoint.id, Changes(enabled=False), cause)
    assert webhooks.redeliver(owner, endpoint.id, delivery, "k", cause)
    with pytest.raises(WebhookDisabled):
        webhooks.redeliver(owner, endpoint.id, delivery, None, cause)
    with pytest.raises(WebhookDisabled):
        webhooks.test(owner, endpoint.id, cause)
