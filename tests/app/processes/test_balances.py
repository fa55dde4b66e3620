"""What we have left at a provider is shown, and no alert fires on what cannot be asked."""

from math import isnan

import pytest

from app.processes.balances import note_balances
from domain.cause import utc_now
from tests.app.watch.test_metrics import scrape
from tests.installation import Installation, sqlite_only
from tests.support.providers.esimgo import KEY, EsimGoServer
from tests.support.providers.server import FaultKind

SHOWN = 'provider_balance{provider="esimgo"}'


@sqlite_only("no storage is involved")
def test_a_balance_is_shown_while_it_can_be_asked(installation: Installation) -> None:
    with EsimGoServer(utc_now) as server:
        installation.environment |= {
            "NETWORK_PROVIDER": "simulated,esimgo",
            "ESIMGO_URL": server.url,
            "ESIMGO_API_KEY": KEY,
        }
        process = installation.process()
        note_balances(process)
        assert scrape(process)[SHOWN] == pytest.approx(float(server.balance))
        server.fault(FaultKind.SERVER_ERROR, times=9)
        note_balances(process)
        assert isnan(scrape(process)[SHOWN])
