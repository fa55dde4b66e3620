"""Derived ids never change: a change would let everything that happens once happen twice."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.accounts.monthly_fee import MonthlyFee
from domain.accounts.organization import ApiClient
from domain.accounts.wallet import Deposit, wallet_id
from domain.ids import derive_id
from domain.links.buying import attempt_id
from domain.links.esim import Esim
from domain.links.link import Link
from domain.links.plan_change import PlanChange
from domain.lookups.bulk_job import bulk_job_id
from domain.lookups.single import number_lookup_id
from tests.domain.build import ORGANIZATION

PARTS = st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=4)


@pytest.mark.parametrize(
    ("derived", "pinned"),
    [
        (derive_id("kind"), "06842a0a-88f3-5445-9118-77ba7ebb537f"),
        (derive_id("kind", "a", 1), "66eaeb5a-db0e-5d26-8d2d-48f203f054df"),
        (derive_id("kind", "ä€😀"), "87bf8917-6ec6-569d-a2c7-9d01b98fa418"),
        (derive_id("transaction", ORGANIZATION), "6dcef6f7-f8df-5401-88a3-7f4ad8f20075"),
        (derive_id("refund", ORGANIZATION, 0), "8594c8ac-3351-5285-9da6-c98307e543be"),
        (wallet_id(ORGANIZATION), "60174df3-fdf4-577a-b245-9deaca92c403"),
        (Deposit.id_of(ORGANIZATION, "bank-1"), "de8dfe37-c123-5211-a5cb-020470b117b3"),
        (number_lookup_id(ORGANIZATION, "key-1"), "8f6ff136-8c88-558d-b5ed-20c4c76dfbc2"),
        (bulk_job_id(ORGANIZATION, "key-1"), "62cfe7bb-ac37-5c2e-b53c-328dc11289d4"),
        (attempt_id(Link, ORGANIZATION, "key-1", 2), "35b1c0e4-d6c2-55df-879b-68e07d139474"),
        (attempt_id(PlanChange, ORGANIZATION, "key-1", 2), "2adac03b-56e5-54a8-acc2-fd356eea8bb2"),
        (Esim.id_of("bics", "8988"), "ad0c7fca-ddab-58f5-b448-2f29a329c350"),
        (MonthlyFee.id_of(ORGANIZATION, "2026-03"), "95eb2917-44c4-5e8a-9e16-bf0d6c454e8d"),
        (ApiClient.id_of("partner-1"), "3a2d7eee-27ba-5ea6-8963-a2ddb6df259a"),
    ],
)
def test_a_derived_id_never_changes(derived: UUID, pinned: str) -> None:
    assert derived == UUID(pinned)


@given(PARTS, PARTS)
def test_different_parts_give_different_ids(parts: list[str], others: list[str]) -> None:
    assert (derive_id("kind", *parts) == derive_id("kind", *others)) == (parts == others)
