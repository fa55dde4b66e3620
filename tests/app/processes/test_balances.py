"""What we have left at a provider is shown, and no alert fires on what cannot be asked."""

from math import isnan

import pytest

from app.adapters.lookups.telnyx import TelnyxLookup
from app.processes.providers import check, update_balances
from domain.cause import utc_now
from tests.app.watch.test_metrics import scrape
from tests.installation import Installation, Process, sqlite_only
from tests.support.providers.esimgo import KEY, EsimGoServer
from tests.support.providers.server import FaultKind
from tests.support.providers.telnyx import ScriptedTelnyx

SHOWN = 'provider_balance{provider="esimgo"}'


def with_esimgo(installation: Installation, server: EsimGoServer, **more: str) -> Process:
    own = {"SANDBOX": "false", "ESIMGO_URL": server.url, "ESIMGO_API_KEY": KEY}
    installation.environment |= {**own, "NETWORK_PROVIDER": "esimgo", **more}
    return installation.process()


@sqlite_only("no storage is involved")
def test_a_balance_is_shown_while_it_can_be_asked(installation: Installation) -> None:
    with EsimGoServer(utc_now) as server:
        process = with_esimgo(installation, server)
        update_balances(process)
        assert scrape(process)[SHOWN] == pytest.approx(float(server.balance))
        server.fault(FaultKind.SERVER_ERROR, times=9)
        update_balances(process)
        assert isnan(scrape(process)[SHOWN])


@sqlite_only("no storage is involved")
def test_an_error_that_nobody_foresaw_hides_no_other_provider(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def balance(*_: object, **__: object) -> None:
        raise KeyError(SHOWN)

    monkeypatch.setattr(TelnyxLookup, "balance", balance)
    with EsimGoServer(utc_now) as server, ScriptedTelnyx() as telnyx:
        process = with_esimgo(installation, server, **telnyx.settings)
        update_balances(process)
        told = {each.provider: (each.up, each.problem) for each in check(process)}
    shown = scrape(process)
    assert isnan(shown['provider_balance{provider="telnyx"}'])
    assert shown[SHOWN] == pytest.approx(float(server.balance))
    assert told == {"telnyx": (False, "KeyError"), "esimgo": (True, None)}
