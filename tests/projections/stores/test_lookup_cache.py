"""The cache of lookups: to each organization its own, and never in the way."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from domain.lookups.ports import CachedFacts, Carrier, NumberFacts
from tests.installation import Installation, Process

pytestmark = pytest.mark.each_database

ORGANIZATION = UUID("0d9c8f3e-58f5-4f0c-9c3e-2a4b8f1d7e60")
NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
NUMBER = "+14155550100"


def answer(number: str = NUMBER, at: datetime = NOON, name: str = "Acme Mobile") -> CachedFacts:
    carrier = Carrier(name=name, type="mobile", mcc="001", mnc="01")
    facts = NumberFacts(number, valid=True, country_code="US", carrier=carrier)
    return CachedFacts(facts, "offline", at)


def test_an_answer_is_kept_whole_for_every_process(
    installation: Installation, process: Process
) -> None:
    kept = [answer(), CachedFacts(NumberFacts("+9991234567", valid=False), "offline", NOON)]
    process.lookup_cache.save(ORGANIZATION, kept)
    for each in (process, installation.process()):
        found = each.lookup_cache.load(ORGANIZATION, [NUMBER, "+9991234567", "+1"], NOON)
        assert found == {NUMBER: kept[0], "+9991234567": kept[1]}
        assert not each.lookup_cache.load(uuid4(), [NUMBER], NOON), "somebody else has asked"
        assert not each.lookup_cache.load(ORGANIZATION, [NUMBER], NOON + timedelta.resolution)


def test_a_newer_answer_replaces_the_older_one(process: Process) -> None:
    """Also the last of two that are saved at once; one that is broken is not found."""
    cache, later = process.lookup_cache, NOON + timedelta(hours=1)
    for older, newer in (
        ([answer()], [answer(at=later, name="Other Mobile")]),
        ([], [answer(), answer(name="Third Mobile")]),
    ):
        owner = uuid4()
        for each in (older, newer):
            cache.save(owner, each)
        assert cache.load(owner, [NUMBER], NOON) == {NUMBER: newer[-1]}
    with process.stores.writing() as connection:
        connection.exec_driver_sql("UPDATE lookup_cache SET answer = 'broken'")
    assert cache.load(owner, [NUMBER], NOON) == {}


def test_old_answers_are_forgotten_for_all_or_for_one_organization(process: Process) -> None:
    cache, other = process.lookup_cache, uuid4()
    later = NOON + timedelta(hours=1)
    for organization_id in (ORGANIZATION, other):
        cache.save(organization_id, [answer(), answer("+14155550101", later)])
    assert cache.forget(later, ORGANIZATION) == 1
    assert set(cache.load(ORGANIZATION, [NUMBER, "+14155550101"], NOON)) == {"+14155550101"}
    assert cache.forget(later) == 1
    assert cache.forget(later) == 0
    assert set(cache.load(other, [NUMBER, "+14155550101"], NOON)) == {"+14155550101"}
