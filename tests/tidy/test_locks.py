"""The locks pin and hash every package, name no place to fetch from, and follow the .in files."""

import re
from itertools import combinations

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.tidy.source import ROOT

PINNED = re.compile(r"(?P<name>[a-z0-9-]+)==(?P<version>\S+)(?: --hash=sha256:[0-9a-f]{64})+")
LOCKS = tuple(sorted(each.name for each in ROOT.glob("requirements*.lock")))


def statements(name: str) -> list[str]:
    """Read a requirements file without comments, its continued lines joined."""
    text = re.sub(r"\\\n\s*", "", (ROOT / name).read_text("utf-8"))
    lines = (re.sub(r"(^|\s+)#.*", "", line).strip() for line in text.splitlines())
    return [line for line in lines if line]


def pins(name: str) -> dict[str, str]:
    found = [PINNED.fullmatch(statement) for statement in statements(name)]
    return {match["name"]: match["version"] for match in found if match}


@pytest.mark.parametrize("lock", LOCKS)
def test_every_statement_of_a_lock_is_a_version_with_hashes_from_anywhere(lock: str) -> None:
    assert statements(lock)
    assert [line for line in statements(lock) if not PINNED.fullmatch(line)] == []
    text = (ROOT / lock).read_text("utf-8")
    assert re.findall(r"\w+://|--(?:extra-)?index-url|--find-links|--trusted-host", text) == []


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_answers_each_requirement_it_was_made_from(lock: str) -> None:
    wanted = [line for line in statements(lock.replace(".lock", ".in")) if line[0] != "-"]
    locked = pins(lock)
    for requirement in map(Requirement, wanted):
        name = canonicalize_name(requirement.name)
        assert requirement.specifier.contains(locked.get(name, "0")), requirement


@pytest.mark.parametrize(("one", "other"), [*combinations(LOCKS, 2)])
def test_locks_agree_where_they_overlap(one: str, other: str) -> None:
    first, second = pins(one), pins(other)
    shared = first.keys() & second.keys()
    assert {name: second[name] for name in shared} == {name: first[name] for name in shared}
