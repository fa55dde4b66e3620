"""`months close`: an operator says that the clock is right, and a month is over for ever."""

from datetime import timedelta

from domain.cause import Cause, utc_now
from domain.finance.month import Month
from domain.months import first_instant, month_of
from tests.app.cli.shell import Shell
from tests.installation import SetClock, this_month


def test_months_are_closed_on_purpose_in_their_order_and_by_name(shell: Shell) -> None:
    newest = first_instant(this_month()) - timedelta(days=1)
    older = newest - timedelta(days=31)
    past = shell.container(SetClock(older))
    past.accounts.register_organization(
        Cause(older, "past"),
        name="Acme",
        price_micros=None,
        monthly_link_fee_micros=0,
        with_wallet=True,
    )
    past.close()
    assert "has not ended" in shell.refusal("months", "close", month_of(utc_now()))
    assert f"{month_of(older)} comes first" in shell.refusal("months", "close", month_of(newest))
    for each in (older, newest):
        assert shell.json("months", "close", month_of(each))["month"] == month_of(each)
    assert "is closed" in shell.refusal("months", "close", month_of(older))
    container = shell.container()
    closes = [each.event for each in container.log.read(0, 50)]
    container.close()
    told = [(each.month, str(each.actor)[:3]) for each in closes if isinstance(each, Month.Closed)]
    assert told == [(month_of(older), "os:"), (month_of(newest), "os:")]
    assert shell.json("audit", "verify")["ok"]
