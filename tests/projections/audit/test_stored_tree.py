"""The kept tree has every leaf once, whatever is lost or tried twice, and gives roots and paths."""

import pytest
from sqlalchemy import Connection

from projections.audit.stored_tree import TILE
from projections.audit.tree import leaf_hash, root_from_path, root_of
from projections.audit.tree_builder import TreeBuilder
from projections.engine.consumer import Stopped
from tests.installation import Process, sqlite_only
from tests.projections.histories import leave_out
from tests.projections.looking import register


def keeper(process: Process) -> TreeBuilder:
    return TreeBuilder(process.source, process.stored_tree)


def expected(process: Process) -> list[tuple[int, bytes]]:
    return [(row.position, leaf_hash(*row)) for row in process.log.stored(0, 100_000)]


def kept(process: Process) -> list[tuple[int, bytes]]:
    with process.views.reading() as connection:
        size, _ = process.stored_tree.end(connection)
        found = [process.stored_tree.tile(connection, n) for n in range(-(-size // TILE))]
    tiles = [tile for tile in found if tile is not None]
    assert len(tiles) == len(found)
    assert [tile.fault for tile in tiles] == [None] * len(tiles)
    return [leaf for tile in tiles for leaf in tile.leaves]


@pytest.mark.each_database
def test_it_has_the_leaf_of_every_event_however_the_batches_fall(process: Process) -> None:
    for count in (1, TILE - 2, 1, 1, 2 * TILE + 30):
        register(process, count)
        process.tree_builder.catch_up()
        assert kept(process) == expected(process)
    leaves = [leaf for _, leaf in expected(process)]
    with process.views.reading() as connection:
        tree = process.stored_tree
        for size in (0, 1, TILE - 1, TILE, TILE + 1, 3 * TILE, len(leaves)):
            assert tree.range_of(connection, size).root() == root_of(leaves[:size])
            for index in {0, size // 2, size - 1} - {-1}:
                if index < size:
                    check_path(process, connection, index, size, leaves)
        with pytest.raises(LookupError, match="fewer than"):
            tree.range_of(connection, len(leaves) + 1)


@pytest.mark.each_database
def test_the_events_up_to_a_position_are_counted_whatever_is_kept(process: Process) -> None:
    """Those that a promotion has left out are no events."""
    register(process, TILE + 20)
    leave_out(process)
    register(process, TILE)
    process.tree_builder.catch_up()
    register(process, 3)
    leave_out(process, 7)
    register(process, 2)
    at = [row.position for row in process.log.stored(0, 10_000)]
    assert at[-1] > 1_000_000_000 + len(at)
    for index in (
        0,
        1,
        TILE - 1,
        TILE,
        TILE + 19,
        TILE + 20,
        len(at) - 5,
        len(at) - 4,
        len(at) - 1,
    ):
        assert process.tree_builder.events(at[index]) == index + 1
        assert process.tree_builder.events(at[index] - 1) == index
    assert process.tree_builder.events(at[-1] + 9) == len(at)


def check_path(
    process: Process, connection: Connection, index: int, size: int, leaves: list[bytes]
) -> None:
    tree = process.stored_tree
    position = tree.position_of(connection, index)
    assert tree.index_of(connection, position) == index
    path = tree.path(connection, index, size)
    assert root_from_path(leaves[index], index, size, path) == root_of(leaves[:size])


def test_without_its_position_it_goes_on_behind_the_last_leaf(process: Process) -> None:
    register(process, 3)
    process.tree_builder.catch_up()
    with process.views.writing() as connection:
        connection.execute(process.positions.rows.delete())
    register(process, 2)
    keeper(process).catch_up()
    assert kept(process) == expected(process)


@pytest.mark.parametrize("has_position", [True, False])
@sqlite_only("PostgreSQL loses both together")
def test_it_stops_before_a_log_that_has_lost_its_last_event(
    process: Process, *, has_position: bool
) -> None:
    register(process, 3)
    process.tree_builder.catch_up()
    before, head = kept(process), process.log.head()
    with process.views.writing() as connection:
        if not has_position:
            connection.execute(process.positions.rows.delete())
    with process.databases.keys.writing() as connection:
        connection.exec_driver_sql(f"DELETE FROM stored_events WHERE rowid = {head}")  # noqa: S608  # The position is a number of ours.
    register(process, 1)
    other = keeper(process)
    for _ in range(2):
        with pytest.raises(Stopped, match=f"no longer the event at {head}"):
            other.catch_up()
    assert kept(process) == before
    assert process.positions.all(process.views)[TreeBuilder.name].failure is not None
    other.restart()
    assert kept(process) == expected(process)
    assert process.positions.all(process.views)[TreeBuilder.name].failure is None
