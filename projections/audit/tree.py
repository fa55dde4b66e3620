"""The Merkle tree of RFC 6962 over the events of the log: leaves, roots, and proofs of inclusion.

A leaf hashes where an event stands and its stored bytes, so that a change of any of them shows.
Everything here is pure; `stored_tree` stores the tree of the auditor.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from hashlib import sha256
from uuid import UUID

EMPTY_ROOT = sha256().digest()  # RFC 6962 §2.1: the root of a tree without leaves.


def leaf_hash(
    position: int, stream_id: UUID | str, version: int, topic: str, state: bytes
) -> bytes:
    """Return the leaf of one event; `state` is its stored bytes, exactly as the log has them."""
    head = f"\0{position}\n{_text_of(stream_id)}\n{version}\n{topic}\n"
    return sha256(head.encode() + state).digest()


@lru_cache(maxsize=1_024)  # Most events are of a few wallets.
def _text_of(stream_id: UUID | str) -> str:
    return str(stream_id if isinstance(stream_id, UUID) else UUID(stream_id))


def node_hash(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x01" + left + right).digest()


class CompactRange:
    """The hashes of the largest full subtrees, left to right: all that a growing tree must know.

    `hashes` has one for each 1 in the binary form of `size`, so 10⁹ leaves need at most thirty.
    """

    def __init__(self) -> None:
        self.size = 0
        self.hashes: list[bytes] = []

    def append(self, subtree: bytes, leaves: int = 1) -> None:
        """Add a leaf, or a full subtree of `leaves` leaves; their number must divide the size."""
        before, self.size = self.size, self.size + leaves
        while before & leaves:
            subtree = node_hash(self.hashes.pop(), subtree)
            leaves <<= 1
        self.hashes.append(subtree)

    def root(self) -> bytes:
        """Return the root of the tree (RFC 6962 §2.1)."""
        if not self.hashes:
            return EMPTY_ROOT
        root = self.hashes[-1]
        for left in reversed(self.hashes[:-1]):
            root = node_hash(left, root)
        return root


def root_of(leaves: Iterable[bytes]) -> bytes:
    """Return the root over leaves, level by level, which is quicker than adding each leaf."""
    nodes = [*leaves]
    while len(nodes) > 1:
        odd = nodes[-1:] if len(nodes) % 2 else []
        pairs = zip(nodes[::2], nodes[1::2], strict=False)
        nodes = [sha256(b"\x01" + left + right).digest() for left, right in pairs] + odd
    return nodes[0] if nodes else EMPTY_ROOT


def inclusion_path(
    index: int, size: int, root_between: Callable[[int, int], bytes]
) -> Sequence[bytes]:
    """Return the audit path of a leaf (RFC 6962 §2.1.1), the lowest node first.

    `root_between` gives the root over the leaves from one index to another, which is excluded.
    """
    begin, end, path = 0, size, list[bytes]()
    while end - begin > 1:
        middle = begin + (1 << (end - begin - 1).bit_length() - 1)
        if index < middle:
            path.append(root_between(middle, end))
            end = middle
        else:
            path.append(root_between(begin, middle))
            begin = middle
    return path[::-1]


def root_from_path(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """Return the root to which a leaf and its path lead (RFC 9162 §2.1.3.2); None for no proof."""
    if not 0 <= index < size:
        return None
    root, last = leaf, size - 1
    for node in path:
        if last == 0:
            return None
        if index & 1 or index == last:
            root = node_hash(node, root)
            while not index & 1 and index:
                index, last = index >> 1, last >> 1
        else:
            root = node_hash(root, node)
        index, last = index >> 1, last >> 1
    return root if last == 0 else None
