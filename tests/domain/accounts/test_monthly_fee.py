"""A monthly fee: frozen for the links of one month, charged once."""

from uuid import UUID, uuid4

import pytest

from domain.accounts.monthly_fee import MonthlyFee, monthly_fee_id
from domain.accounts.paid_price import PaidPrice
from domain.ids import derive_id
from tests.domain.build import ORGANIZATION, cause
from tests.domain.build_links import LINK
from tests.story import Story, fact

FEE = monthly_fee_id(ORGANIZATION, "2026-03")
LINKS = [LINK, uuid4(), uuid4()]
PRICE = PaidPrice(4_500_000, "EUR", derive_id("transaction", FEE))


def fee(fee_micros: int = 1_500_000, links: list[UUID] = LINKS) -> MonthlyFee:
    return MonthlyFee.fall_due(
        ORGANIZATION, "2026-03", cause(), fee_micros=fee_micros, link_ids=links, currency="EUR"
    )


def test_a_fee_is_charged_once() -> None:
    story = Story(fee()).given().when(lambda due: due.note_charged(cause(1)))
    story.then(
        fact(MonthlyFee.Charged, organization_id=ORGANIZATION, month="2026-03", price=PRICE),
        is_charged=True,
    )
    story.when(lambda due: due.note_charged(cause(2))).refused(AssertionError, is_charged=True)


@pytest.mark.parametrize(("fee_micros", "links"), [(0, LINKS), (-1, LINKS), (1, [])])
def test_nothing_owed_is_no_fee(fee_micros: int, links: list[UUID]) -> None:
    with pytest.raises(AssertionError):
        fee(fee_micros, links)
