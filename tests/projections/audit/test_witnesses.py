"""What was seen earlier convicts a log that was changed since, by position, and no honest one."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from domain.log.discontinuity import Discontinuity
from domain.log.log import Stored
from projections.audit.auditor import LogCheck, check_log
from projections.audit.checkpoint import Checkpoint
from projections.audit.report import Failure, Report
from projections.audit.stored_tree import TILE
from projections.audit.tree import CompactRange, leaf_hash
from projections.audit.witnesses import Claim, Claims, StoredLeaves
from tests.installation import Process, SetClock, sqlite_only
from tests.projections.forgery import Forger, InDatabase, forged
from tests.projections.looking import register

ORIGIN = "api.example"
AT = SetClock()()
OTHER_ID = (
    "CASE substr(originator_id, 1, 1) WHEN 'a' THEN 'b' ELSE 'a' END || substr(originator_id, 2)"
)

pytestmark = sqlite_only("rows are changed behind the service's back, in one way")


@pytest.fixture
def lived(process: Process) -> Process:
    """A log over two tiles, all of it kept."""
    register(process, TILE + 20)
    process.tree_builder.catch_up()
    return process


def change(process: Process, *statements: str) -> None:
    with process.databases.keys.writing() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


def kept(process: Process) -> StoredLeaves:
    return StoredLeaves(process.views, process.stored_tree)


def audit(process: Process, *claims: Claim) -> Report:
    check = LogCheck(process.log, [kept(process), Claims(claims)])
    while check.step():
        pass
    return check.report


def claim_of(process: Process, size: int, name: str = "kept.txt") -> Claim:
    """What an outsider kept when the log had so many events."""
    rows = process.log.stored(0, size)
    tree = CompactRange()
    for row in rows:
        tree.append(leaf_hash(*row))
    return Claim(name, Checkpoint(ORIGIN, size, tree.root(), rows[-1].position, AT))


def swapped(first: int, second: int) -> list[str]:
    table = "stored_events"
    return [
        f"UPDATE {table} SET rowid = -1 WHERE rowid = {first}",  # noqa: S608  # Numbers of ours.
        f"UPDATE {table} SET rowid = {first} WHERE rowid = {second}",  # noqa: S608  # As above.
        f"UPDATE {table} SET rowid = {second} WHERE rowid = -1",  # noqa: S608  # As above.
    ]


CHANGES: dict[str, tuple[list[str], list[Failure]]] = {
    "a changed event": (
        ["UPDATE stored_events SET state = replace(state, 'request', 'requent') WHERE rowid = 9"],
        [Failure(9, "the event is not what it was when it was first seen")],
    ),
    "a removed event": (
        ["DELETE FROM stored_events WHERE rowid = 270"],
        [Failure(270, "the event that was first seen here is gone")],
    ),
    "the end cut off": (
        ["DELETE FROM stored_events WHERE rowid > 274"],
        [Failure(at, "the event that was first seen here is gone") for at in (275, 276)],
    ),
    "two that changed places": (
        swapped(5, 270),
        [Failure(at, "the event is not what it was when it was first seen") for at in (5, 270)],
    ),
    "one put in where one was taken out": (
        [f"UPDATE stored_events SET originator_id = {OTHER_ID} WHERE rowid = 1"],  # noqa: S608  # Text of ours.
        [Failure(1, "the event is not what it was when it was first seen")],
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_the_kept_leaves_name_what_was_changed_and_where(lived: Process, what: str) -> None:
    statements, found = CHANGES[what]
    witness = Claims([claim_of(lived, 200), claim_of(lived, TILE + 20, "later.txt")])
    change(lived, *statements)
    report = check_log(lived.log, witnesses=[kept(lived), witness])
    assert [each for each in report.failures if "kept" not in each.reason][: len(found)] == found
    assert [each.holds for each in report.checkpoints].count(False) == (
        0 if not found else 2 if found[0].position <= 200 else 1
    )


def test_an_event_that_was_put_in_is_named(lived: Process) -> None:
    change(lived, "DELETE FROM stored_events WHERE rowid = 40")
    lived.tree_builder.restart()
    change(
        lived,
        f"INSERT INTO stored_events SELECT 40, {OTHER_ID}, 1, topic, state "  # noqa: S608  # Text of ours.
        "FROM stored_events WHERE rowid = 41",
    )
    reason = "the event was put in: others had been seen behind it before"
    assert audit(lived).failures == [Failure(40, reason)]


def test_a_tree_that_was_changed_is_found(lived: Process) -> None:
    with lived.views.writing() as connection:
        zeros = bytes(32)
        connection.exec_driver_sql("UPDATE audit_tiles SET root = ? WHERE number = 0", (zeros,))
    assert audit(lived).failures == [
        Failure(1, "the kept root of tile 0 is not that of its leaves")
    ]


def test_the_first_checkpoint_that_fails_names_the_range(lived: Process) -> None:
    claims = [claim_of(lived, size, f"{size}.txt") for size in (270, 100, 200, 250)]
    change(lived, "DELETE FROM stored_events WHERE rowid = 120")
    lived.tree_builder.restart()
    report = audit(lived, *claims)
    reason = "what it signed after position 100 and up to 200 is not what the log holds"
    assert report.failures == [Failure(101, f"200.txt: {reason}")]
    told = [(each.name, each.holds) for each in report.checkpoints]
    assert told == [(f"{size}.txt", size == 100) for size in (100, 200, 250, 270)]


def test_one_that_nobody_known_has_signed_is_named_and_proves_nothing(lived: Process) -> None:
    true = claim_of(lived, 100)
    report = audit(lived, Claim("forged.txt", true.checkpoint, "its signature is wrong"))
    assert report.failures == [Failure(100, "forged.txt: its signature is wrong")]


@pytest.mark.parametrize(
    ("later", "is_explained"),
    [(timedelta(0), True), (timedelta(days=1, seconds=1), False), (timedelta(days=-400), False)],
)
def test_a_loss_explains_what_was_signed_before_it_and_only_then(
    process: Process, later: timedelta, *, is_explained: bool
) -> None:
    register(process, 30)
    before, after = claim_of(process, 20, "20.txt"), claim_of(process, 30, "30.txt")
    change(process, "DELETE FROM stored_events WHERE rowid > 25")
    cause = process.cause()
    lost = Discontinuity.notice("server-2", 25, 30, type(cause)(AT + later, "failover"))
    process.log.append(lost)
    register(process, 10)
    report = audit(process, before, after, claim_of(process, 34, "34.txt"))
    assert (report.ok, report.explained) == (is_explained, int(is_explained))
    assert [each.holds for each in report.checkpoints] == [True, False, True]
    assert any("30.txt" in each.reason for each in report.losses) is is_explained


def test_a_loss_excuses_nothing_before_it(process: Process) -> None:
    register(process, 30)
    claim = claim_of(process, 20)
    change(process, "DELETE FROM stored_events WHERE rowid = 5")
    lost = Discontinuity.notice("server-2", 25, 30, type(process.cause())(AT, "failover"))
    process.log.append(lost)
    assert not audit(process, claim).checkpoints[0].holds
    assert not audit(process, claim).ok


def test_a_loss_excuses_nothing_that_is_still_there(process: Process) -> None:
    register(process, 30)
    claim = claim_of(process, 30)
    change(
        process,
        "UPDATE stored_events SET state = replace(state, 'quest', 'quent') WHERE rowid = 28",
    )
    lost = Discontinuity.notice("server-2", 25, 30, type(process.cause())(AT, "failover"))
    process.log.append(lost)
    assert "is not what the log holds" in audit(process, claim).checkpoints[0].reason
    change(process, "DELETE FROM stored_events WHERE rowid BETWEEN 26 AND 30")
    assert "explained" in audit(process, claim).checkpoints[0].reason


def behind(process: Process, size: int, *claims: Claim) -> Report:
    with process.views.reading() as connection:
        before = process.stored_tree.range_of(connection, size)
        position = process.stored_tree.position_of(connection, size - 1)
    leaves = StoredLeaves(process.views, process.stored_tree, size)
    check = LogCheck(process.log, [leaves, Claims(claims, before)], position)
    while check.step():
        pass
    return check.report


BEHIND: dict[str, tuple[Callable[[Stored], str], bool]] = {
    "before": (lambda row: f"DELETE FROM stored_events WHERE rowid = {row.position - 5}", True),  # noqa: S608  # A number of ours.
    "after": (lambda row: f"DELETE FROM stored_events WHERE rowid = {row.position + 5}", False),  # noqa: S608  # As above.
}


@pytest.mark.parametrize("where", BEHIND)
def test_an_audit_may_begin_behind_what_is_trusted(lived: Process, where: str) -> None:
    claims = [claim_of(lived, 260), claim_of(lived, 270)]
    statement, is_trusted = BEHIND[where]
    change(lived, statement(lived.log.stored(259, 1)[0]))
    report = behind(lived, 260, *claims)
    assert report.ok is is_trusted
    assert [each.holds for each in report.checkpoints] == [True, is_trusted]
    assert (report.trusted, report.leaves) == (260, 16 if is_trusted else 15)


def test_behind_what_is_trusted_a_wallet_must_still_add_up(process: Process) -> None:
    forger = Forger(InDatabase(process))
    for wrong in (0, 1):
        lookup = forger.lookup()
        charge = forger.charge_for(lookup)
        forger.write(lookup, forged(charge, balance_micros=charge.balance_micros + wrong))
        if not wrong:
            process.tree_builder.catch_up()
    assert [each.reason for each in behind(process, 5).failures] == [
        "its balance is not 0.980001 but 0.98"
    ]
