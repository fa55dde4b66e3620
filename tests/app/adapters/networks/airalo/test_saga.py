"""Links on Airalo: what comes of a lost reply, by our log and by the provider's books."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

import workers.links
import workers.lost_orders
import workers.plan_changes
from domain.errors import LinkEnded, NotSupportedByNetwork
from domain.links.link import Stage
from tests.app.adapters.networks.airalo.airalo_books import check_sales, environment_of
from tests.app.adapters.networks.esimgo.esimgo_lab import EsimGoLab
from tests.installation import Installation, SetClock, installation, migrated, sqlite_only
from tests.support.providers.airalo import AiraloServer
from tests.support.providers.server import FaultKind
from tests.workers.link_checks import Books

__all__ = ["installation", "migrated"]

pytestmark = [
    pytest.mark.any_database,
    sqlite_only("it is about what happens on the wire"),
]

CALL = timedelta(seconds=1)  # Real time: less than a fault lasts, and enough to be sent.
NOT_SOLD = {FaultKind.RESET_BEFORE, FaultKind.UNAUTHORIZED, FaultKind.SERVER_ERROR}
QUICK = {FaultKind.RESET_AFTER, FaultKind.DELAY, FaultKind.HTML, FaultKind.RESET_BEFORE}
KINDS = [
    pytest.param(kind, marks=[] if kind in QUICK else [pytest.mark.soak], id=kind.name)
    for kind in sorted(QUICK | NOT_SOLD | {FaultKind.WRONG_TYPES, FaultKind.HALF_BODY})
]


class AiraloLab(EsimGoLab):
    """The same lab over Airalo, which takes nothing back."""

    name = "airalo"

    def settings(self) -> dict[str, str]:
        return {**environment_of(self.server)}

    def check_sales(self, books: Books, strays: int) -> None:
        check_sales(self.server, books, strays)


@pytest.fixture
def server() -> Iterator[AiraloServer]:
    with AiraloServer(SetClock()) as server:
        yield server


@pytest.fixture
def lab(
    installation: Installation, server: AiraloServer, monkeypatch: pytest.MonkeyPatch
) -> AiraloLab:
    for module in (workers.links, workers.plan_changes, workers.lost_orders):
        monkeypatch.setattr(module, "CALL", CALL)
    return AiraloLab(installation, server)


@pytest.mark.parametrize("kind", KINDS)
def test_a_creation_is_delivered_or_paid_back(lab: AiraloLab, kind: FaultKind) -> None:
    lab.server.fault(kind, on="order", times=1 + (kind is FaultKind.UNAUTHORIZED), seconds=3)

    link = lab.create()
    lab.settle()

    assert (lab.link(link.id).stage is Stage.ACTIVE) == (kind not in NOT_SOLD)
    lab.check()


def test_a_lost_order_is_found_by_its_reference_among_others(
    lab: AiraloLab, server: AiraloServer
) -> None:
    other = lab.create()
    lab.server.fault(FaultKind.RESET_AFTER, on="order", times=2)
    first, second = lab.create(), lab.create()

    lab.work(second.id)
    lab.work(first.id)
    lab.settle()

    bought = {sale.description: sale.iccid for sale in server.sales}
    links = [lab.link(each.id) for each in (other, first, second)]
    assert {str(link.id): link.iccid for link in links} == bought
    lab.check()


@pytest.mark.parametrize("kind", KINDS)
def test_a_topup_is_done_or_paid_back(lab: AiraloLab, kind: FaultKind) -> None:
    link = lab.create()
    lab.server.fault(kind, on="order", times=1 + (kind is FaultKind.UNAUTHORIZED), seconds=3)

    lab.change(link.id, add=["esim_3GB"])
    lab.settle()

    lab.check()


def test_a_topup_that_comes_too_late_is_paid_back_and_holds_nothing_up(
    lab: AiraloLab, server: AiraloServer
) -> None:
    """Airalo removes nothing, so the link keeps the package."""
    link = lab.create()
    paid = lab.wallet.balance_micros
    server.fault(FaultKind.RESET_AFTER, on="order")
    server.fault(FaultKind.SERVER_ERROR, on="packages", times=99)
    change = lab.change(link.id, add=["esim_3GB"])
    lab.clock.forward(seconds=20)
    lab.work_change(change.id)
    assert lab.wallet.balance_micros == paid

    lab.settle()

    assert len(lab.link(link.id).current_activations) == 1
    lab.check(strays=1)
    lab.change(link.id, add=["esim_2GB"])
    assert len(lab.link(link.id).current_activations) == 2


def test_whoever_reads_an_esim_too_often_keeps_nobody_from_buying(
    lab: AiraloLab, server: AiraloServer
) -> None:
    server.fault(FaultKind.RATE_LIMITED, on="packages", seconds=60)
    lab.create()

    link = lab.create()

    assert lab.link(link.id).stage is Stage.ACTIVE
    lab.check()


def test_a_link_ends_here_though_airalo_ends_none(lab: AiraloLab) -> None:
    link = lab.create()
    asked = len(lab.server.requests)
    assert lab.finish(link.id, "end").state == "ended"
    assert len(lab.server.requests) == asked
    with pytest.raises(LinkEnded):
        lab.finish(link.id, "cancel")
    other = lab.create()
    with pytest.raises(NotSupportedByNetwork):
        lab.finish(other.id, "cancel")
