"""Endpoints are made, changed, ended and asked for something, once for each key."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from domain.errors import NotFound, RateLimited, WebhookLimit
from domain.webhooks.commands import Changes, Draft
from domain.webhooks.endpoint import (
    CHANGES_MAX,
    ENDPOINTS_MAX,
    LASTING,
    WebhookEndpoint,
    WebhookList,
)
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


def test_no_event_holds_an_address_in_clear(process: Process) -> None:
    owner = process.organization()
    endpoint = made(process, owner)
    process.webhooks.change(endpoint, Changes(url=URL + "&more"), process.cause())
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
        process.webhooks.change(endpoint, Changes(url="https://b.example"), process.cause())


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


def test_an_organization_registers_only_so_many_a_day(process: Process) -> None:
    owner, cause = process.organization(), process.cause()
    listed = WebhookList.begin(WebhookList.Opened, cause, uuid4(), organization_id=owner)
    ids = [uuid4() for _ in range(CHANGES_MAX)]
    for each in ids:
        listed.add(each, cause)
        listed.record(WebhookList.Removed, cause, endpoint_id=each)
    with pytest.raises(RateLimited):
        listed.add(ids[0], cause)
    listed.add(ids[0], replace(cause, at=cause.at + timedelta(days=1)))
    assert listed.endpoint_ids == ids[:1]


@pytest.mark.each_database
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
    process.webhooks.delete(process.webhooks.get(crowded, ids.pop()), process.cause())
    assert process.webhooks.register(draft(crowded), process.cause())


@pytest.mark.parametrize("ends", [False, True])
def test_a_twin_that_is_first_after_our_look_makes_or_ends_the_same_endpoint(
    process: Process, monkeypatch: pytest.MonkeyPatch, *, ends: bool
) -> None:
    """Though it is the last one that its organization may have, and is listed no more."""
    owner, webhooks, cause = process.organization(), process.webhooks, process.cause()
    endpoints, find = [made(process, owner) for _ in range(ENDPOINTS_MAX - 1)], process.log.find

    def command() -> WebhookEndpoint:
        if ends:
            return webhooks.delete(endpoints[0], cause)
        return webhooks.register(draft(owner, "k"), cause)[0]

    def overtaken(*looked_for: Any) -> Any:
        found = find(*looked_for)
        while twins:
            twins.pop()()
        return found

    twins = [command]
    monkeypatch.setattr(process.log, "find", overtaken)
    assert command().is_deleted is ends


def test_two_secrets_sign_for_a_day_after_a_rotation(installation: Installation) -> None:
    clock = SetClock()
    process = installation.process(clock)
    owner = process.organization()
    endpoint = made(process, owner)
    rotated, generation, _ = process.webhooks.rotate_secret(endpoint, None, process.cause())
    assert (generation.number, numbers(rotated, clock())) == (2, [2, 1])
    assert numbers(rotated, clock() + timedelta(hours=24)) == [2]
    rotated, generation, _ = process.webhooks.rotate_secret(endpoint, None, process.cause())
    assert numbers(rotated, clock()) == [3, 2]
