"""The tree is that of RFC 6962, and a path proves its leaf and no other."""

from hashlib import sha256
from uuid import UUID

import pytest

from projections.audit.tree import (
    EMPTY_ROOT,
    CompactRange,
    inclusion_path,
    leaf_hash,
    root_from_path,
    root_of,
)
from tests.installation import Process

# The published test vectors of Certificate Transparency: leaf data, and the root of each size.
DATA = ("", "00", "10", "2021", "3031", "40414243", "5051525354555657", bytes(range(96, 112)).hex())
ROOTS = (
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
)
STREAM = UUID("0b8b4cf4-2d6c-4a5e-9f4f-3f3a4b1f6a77")


def leaves(count: int) -> list[bytes]:
    return [leaf_hash(index + 1, STREAM, index + 1, "a.happened", b"{}") for index in range(count)]


def test_the_roots_are_those_of_the_published_vectors() -> None:
    hashed = [sha256(b"\x00" + bytes.fromhex(each)).digest() for each in DATA]
    assert root_of([]) == EMPTY_ROOT
    assert tuple(root_of(hashed[: size + 1]).hex() for size in range(len(DATA))) == ROOTS


def test_a_leaf_hashes_all_that_a_row_of_the_log_holds() -> None:
    first = leaf_hash(7, STREAM, 3, "wallet.charged", b'{"amount":1}')
    data = f'7\n{STREAM}\n3\nwallet.charged\n{{"amount":1}}'.encode()
    assert first == sha256(b"\x00" + data).digest()
    assert first == leaf_hash(7, STREAM.hex, 3, "wallet.charged", b'{"amount":1}')
    others = {
        leaf_hash(8, STREAM, 3, "wallet.charged", b'{"amount":1}'),
        leaf_hash(7, UUID(int=1), 3, "wallet.charged", b'{"amount":1}'),
        leaf_hash(7, STREAM, 4, "wallet.charged", b'{"amount":1}'),
        leaf_hash(7, STREAM, 3, "wallet.refunded", b'{"amount":1}'),
        leaf_hash(7, STREAM, 3, "wallet.charged", b'{"amount":2}'),
    }
    assert len(others | {first}) == 6


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 64, 67])
def test_each_path_leads_from_its_leaf_to_the_root_and_from_no_other(size: int) -> None:
    kept = leaves(size)
    root = root_of(kept)
    for index, leaf in enumerate(kept):
        path = inclusion_path(index, size, lambda begin, end: root_of(kept[begin:end]))
        assert root_from_path(leaf, index, size, path) == root
        assert root_from_path(leaf, (index + 1) % size, size, path) != root or size == 1
        assert root_from_path(leaf, index, size, [*path, leaf]) != root
        assert root_from_path(kept[index - 1], index, size, path) != root or size == 1
        assert root_from_path(leaf, index, size, path[:-1]) != root or size == 1


def test_full_subtrees_are_added_as_their_leaves_are() -> None:
    kept = leaves(700)
    tree, size = CompactRange(), 256
    for begin in range(0, 512, size):
        tree.append(root_of(kept[begin : begin + size]), size)
    for leaf in kept[512:]:
        tree.append(leaf)
    assert (tree.size, tree.root()) == (700, root_of(kept))


@pytest.mark.each_database
def test_rows_are_read_as_they_are_stored(process: Process) -> None:
    process.organization()
    log = process.log
    rows = log.stored(0, 100)
    assert [(row.position, row.stream_id, row.version) for row in rows] == [
        recorded.ref for recorded in log.read(0, 100)
    ]
    told = log.mapper.to_stored_event(log.read(0, 1)[0].event)
    assert (rows[0].topic, rows[0].state) == (told.topic, told.state)
    assert log.stored(rows[0].position, 1) == rows[1:2]
