"""The log: loading, appending once, and reading up to what cannot be read."""

from typing import Any
from uuid import uuid4

import pytest
from eventsourcing.persistence import IntegrityError, OperationalError, StoredEvent

from domain.accounts.organization import Organization
from domain.accounts.wallet import Wallet
from domain.errors import Conflict, NotFound, ServiceUnavailable
from domain.log.discontinuity import Discontinuity
from domain.log.log import CONTESTED, RACES_MAX, Log, Poisoned
from domain.lookups.single import NumberLookup
from tests.domain.build import cause, lookup
from tests.domain.writers import Writer, everything
from tests.story import state_of

BROKEN = [
    pytest.param("wallet.charged", b'{"cut', id="broken JSON"),
    pytest.param("no.such.topic", b"{}", id="unknown topic"),
    pytest.param("wallet", b"{}", id="a topic of no event"),
]


def register(name: str = "Ærø Telecom") -> Organization:
    return Organization.register(uuid4(), cause(), name=name)


def test_a_stream_is_read_in_parts_and_one_of_another_kind_no_further(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stranger may name any stream, and a wallet has millions of events."""
    monkeypatch.setattr("domain.log.log.PART_EVENTS", 3)
    organization = register()
    for price_micros in range(6):
        organization.change_price(price_micros, cause())
    log.append(organization)
    read, asked = log.recorder.select_events, list[int]()

    def counted(*which: Any, **named: Any) -> Any:
        found = read(*which, **named)
        asked.append(len(found))
        return found

    monkeypatch.setattr(log.recorder, "select_events", counted)
    assert state_of(log.get(Organization, organization.id)) == state_of(organization)
    assert len(log.history(organization.id)) == organization.version == 7
    assert asked == [3, 3, 1] * 2
    asked.clear()
    assert log.find(NumberLookup, organization.id) is None
    assert asked == [3]
    assert log.find(Wallet, organization.id) is None


def test_an_older_copy_is_brought_up_to_date_by_what_it_lacks(log: Log) -> None:
    organization = register()
    log.append(organization)
    old = log.get(Organization, organization.id)
    organization.change_price(7_000, cause(1))
    log.append(organization)
    assert log.find(Organization, organization.id, after=old) is old
    assert state_of(old) == state_of(organization)


def test_several_aggregates_are_appended_together_or_not_at_all(log: Log) -> None:
    taken = register()
    log.append(taken)
    newcomer, twin = register(), Organization.register(taken.id, cause(1), name="a twin")
    with pytest.raises(Conflict):
        log.append(newcomer, twin)
    assert log.find(Organization, newcomer.id) is None
    assert log.append(register(), register()) == log.head() == 3


def test_the_loser_of_a_race_gets_a_conflict_that_names_its_stream(log: Log) -> None:
    log.append(organization := register())
    first, second = (log.get(Organization, organization.id) for _ in range(2))
    first.change_price(1, cause(1))
    second.change_price(2, cause(2))
    log.append(first)
    with pytest.raises(Conflict) as caught:
        log.append(second)
    assert caught.value.stream_id == organization.id
    assert log.get(Organization, organization.id).price_micros == 1


def losses(log: Log) -> list[Discontinuity.Noticed]:
    return [
        each.event for each in log.read(0, 100) if isinstance(each.event, Discontinuity.Noticed)
    ]


def test_a_loss_is_recorded_once_by_whoever_has_seen_more(log: Log) -> None:
    log.append(register())
    log.recorder.last_position_up_to = lambda _: 1  # type: ignore[attr-defined]  # As on PostgreSQL.
    for seen in (3, 1, 3):
        log.record_loss(seen)
    assert [(each.last_position, each.seen_position) for each in losses(log)] == [(1, 3)]


def test_an_event_whose_predecessor_is_gone_ends_the_use_of_the_log(log: Log) -> None:
    organization = register()
    organization.change_price(5_000, cause(1))
    organization.collect_events()  # They are in no log.
    organization.change_price(6_000, cause(2))
    with pytest.raises(ServiceUnavailable):
        log.append(organization)
    assert (log.is_over, log.head()) == (True, 0)


def test_appending_nothing_changes_nothing(log: Log) -> None:
    assert log.append() == 0
    assert log.head() == 0


def test_a_change_that_loses_a_race_is_decided_anew_on_what_the_log_has(log: Log) -> None:
    organization = register()
    log.append(organization)
    seen = list[int | None]()

    def decide(newest: Organization) -> Organization:
        if not seen:
            rival = log.get(Organization, organization.id)
            rival.change_price(5_000, cause(1))
            log.append(rival)
        seen.append(newest.price_micros)
        newest.switch_lookup(cause(2), enabled=False)
        return newest

    changed = log.change(organization, decide)
    assert seen == [None, 5_000]
    assert (changed.price_micros, changed.lookup_enabled) == (5_000, False)
    assert state_of(log.get(Organization, organization.id)) == state_of(changed)


def test_a_change_of_nothing_is_not_appended(log: Log) -> None:
    organization = register()
    log.append(organization)
    head, calls = log.head(), log.appended.count
    assert log.change(organization, lambda newest: newest.status) == "active"
    assert (log.head(), log.appended.count) == (head, calls)


@pytest.mark.parametrize("otherwise", [None, NotFound("Mine.")])
def test_a_change_that_always_loses_gives_up(log: Log, otherwise: NotFound | None) -> None:
    organization, tries = register(), list[None]()
    log.append(organization)

    def lose(newest: Organization) -> None:
        tries.append(None)
        raise Conflict(newest.id)

    error, message = (NotFound, "Mine.") if otherwise else (ServiceUnavailable, CONTESTED)
    with pytest.raises(error, match=message):
        log.change(organization, lose, otherwise)
    assert len(tries) == RACES_MAX


def test_an_echo_of_the_own_append_is_no_conflict(writer: Writer) -> None:
    writer.recorder.fail("after insert", IntegrityError)
    organization = register()
    assert writer.log.append(organization) == 1
    assert len(everything(writer.log)) == 1


def test_the_same_bytes_of_another_event_are_no_echo(log: Log) -> None:
    log.append(organization := register())
    first, second = (log.get(Organization, organization.id) for _ in range(2))
    first.change_status("suspended", cause(1))
    second.change_status("inactive", cause(1))
    log.append(first)
    with pytest.raises(Conflict):
        log.append(second)


def test_a_claim_that_comes_back_as_an_echo_is_not_won(writer: Writer) -> None:
    """It may be the claim of another one who has the same bytes."""
    writer.recorder.fail("after insert", IntegrityError)
    with pytest.raises(Conflict):
        writer.log.claim(register())


def test_an_append_that_the_database_refuses_is_unavailable(writer: Writer) -> None:
    writer.recorder.fail("before insert", OperationalError)
    with pytest.raises(ServiceUnavailable):
        writer.log.append(register())


def test_a_conflict_that_cannot_be_looked_into_is_unavailable(writer: Writer) -> None:
    writer.log.append(taken := register())
    twin = Organization.register(taken.id, cause(1), name="a twin")
    writer.recorder.fail("on select", OperationalError)
    with pytest.raises(ServiceUnavailable):
        writer.log.append(twin)


def test_reading_from_a_database_that_is_gone_is_unavailable(writer: Writer) -> None:
    writer.recorder.fail("on select", OperationalError)
    with pytest.raises(ServiceUnavailable):
        writer.log.find(Organization, uuid4())
    writer.recorder.fail("on head", OperationalError)
    with pytest.raises(ServiceUnavailable):
        writer.log.head()


def test_events_are_read_in_order_after_a_position(log: Log) -> None:
    for _ in range(5):
        log.append(register(), lookup())
    assert [each.position for each in log.read(0, 100)] == list(range(1, 11))
    assert [each.position for each in log.read(3, 4)] == [4, 5, 6, 7]
    assert log.read(10, 4) == []
    assert log.head() == 10


@pytest.mark.parametrize(("topic", "state"), BROKEN)
def test_events_before_a_poisoned_one_are_read_and_none_after_it(
    log: Log, topic: str, state: bytes
) -> None:
    log.append(register(), register())
    log.recorder.insert_events([StoredEvent(uuid4(), 1, topic, state)])
    log.append(register())
    assert [each.position for each in log.read(0, 100)] == [1, 2]
    with pytest.raises(Poisoned, match="position 3") as caught:
        log.read(2, 100)
    assert caught.value.position == 3
    assert [each.position for each in log.read(3, 100)] == [4]
