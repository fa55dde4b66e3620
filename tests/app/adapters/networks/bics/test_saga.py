"""Links on BICS from the request to the end, whatever happens to a request on the wire."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

import pytest

import workers.links
import workers.plan_changes
from app.adapters.networks.bics import network as bics_network
from app.settings import WrongSetting
from domain.errors import LinkInUse, ProvisioningError
from domain.links import ending
from domain.links.link import Link, Stage
from domain.money import parse_amount
from projections.audit.auditor import check_log
from tests.app.adapters.networks.bics.bics_lab import SIMS, BicsLab, environment_of
from tests.installation import Installation, sqlite_only
from tests.support.providers import bics
from tests.support.providers.bics import BicsServer
from tests.support.providers.server import FaultKind
from tests.workers.link_lab import DEPOSIT
from tests.workers.places import Happening, Places, When, die
from workers.links import PAGES_MAX

pytestmark = [
    pytest.mark.any_database,
    sqlite_only("it is about what happens on the wire"),
]

PLACES_MAX = 40  # Far more than there are.
CALL = timedelta(seconds=1)  # Real time: less than a fault lasts, and enough to be sent.
SECRETS = (bics.PASSWORD, "eyJ.token", "LPA:1$")

# How a creation ends that meets a fault at its request. A request that was cut before it had an
# effect looks like one whose reply was lost, and is not repeated: its money goes back.
CREATED = {
    FaultKind.DELAY: True,
    FaultKind.LATE_REPLY: True,
    FaultKind.DRIBBLE: True,
    FaultKind.RESET_BEFORE: False,
    FaultKind.RESET_AFTER: True,
    FaultKind.HALF_BODY: True,
    FaultKind.HTML: True,
    FaultKind.WRONG_TYPES: True,
    FaultKind.HUGE: True,
    FaultKind.HUGE_GZIP: True,
    FaultKind.UNAUTHORIZED: True,
    FaultKind.RATE_LIMITED: False,
    FaultKind.SERVER_ERROR: False,
    FaultKind.SERVER_ERROR_AFTER: True,
    FaultKind.UNAVAILABLE: False,
    FaultKind.DUPLICATE: True,
    FaultKind.EFFECT_TWICE: True,
}
ROUTES_OF_A_CREATION = ("sims", "create", "activate", "profile", "log in")


def kinds(*quick: FaultKind) -> list[Any]:
    """Return all kinds of faults; those that are not named take their turn in the long run only."""
    return [
        pytest.param(kind, marks=[] if kind in quick else [pytest.mark.soak], id=kind.name)
        for kind in FaultKind
    ]


@pytest.fixture
def server() -> Iterator[BicsServer]:
    with BicsServer(SIMS) as server:
        yield server


@pytest.fixture
def lab(
    installation: Installation, server: BicsServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[BicsLab]:
    monkeypatch.setattr(workers.links, "CALL", CALL)
    monkeypatch.setattr(workers.plan_changes, "CALL", CALL)
    lab = BicsLab(installation, server)
    yield lab
    for each in lab.process.log.read(0, 10_000):
        stored = lab.process.log.mapper.to_stored_event(each.event).state
        assert not [secret for secret in SECRETS if secret.encode() in stored]


def settle(lab: BicsLab) -> None:
    """Let the late effects of faults come, then all that is left to do."""
    lab.server.heal()
    lab.settle()


@pytest.mark.parametrize("kind", kinds(*FaultKind))
def test_a_creation_is_delivered_or_paid_back_whatever_happens_to_its_request(
    lab: BicsLab, kind: FaultKind
) -> None:
    lab.server.fault(kind, on="create", headers={"Retry-After": "0"}, seconds=3)

    link = lab.create()
    settle(lab)

    assert (lab.link(link.id).stage is Stage.ACTIVE) == CREATED[kind]
    lab.check()


@pytest.mark.soak
@pytest.mark.parametrize("kind", kinds())
@pytest.mark.parametrize("route", ROUTES_OF_A_CREATION)
def test_a_creation_is_delivered_or_paid_back_whatever_happens_around_it(
    lab: BicsLab, route: str, kind: FaultKind
) -> None:
    lab.server.fault(kind, on=route, times=2, headers={"Retry-After": "0"}, seconds=3)

    lab.create()
    settle(lab)

    lab.check()


QUICK = (FaultKind.DELAY, FaultKind.RESET_AFTER, FaultKind.HTML, FaultKind.EFFECT_TWICE)


@pytest.mark.parametrize("kind", kinds(*QUICK))
@pytest.mark.parametrize("adding", [True, False])
def test_a_change_of_plans_is_done_or_paid_back_whatever_happens_to_its_request(
    lab: BicsLab, kind: FaultKind, *, adding: bool
) -> None:
    link = lab.create()
    (first,) = link.current_activations
    lab.server.fault(kind, on="plans", headers={"Retry-After": "0"}, seconds=3)

    lab.change(link.id, *([], ["eu-2"]) if adding else ([first.id], []))
    settle(lab)

    lab.check()


@pytest.mark.parametrize("kind", kinds(FaultKind.RESET_AFTER, FaultKind.WRONG_TYPES))
@pytest.mark.parametrize("target", ["suspended", "active"])
def test_a_status_is_in_the_end_that_of_the_network(
    lab: BicsLab, kind: FaultKind, target: str
) -> None:
    link = lab.create()
    if target == "active":
        lab.switch(link.id, "suspended")
    lab.server.fault(kind, on="life cycle", headers={"Retry-After": "0"}, seconds=3)

    lab.switch(link.id, target)
    lab.clock.forward(seconds=15)
    settle(lab)

    (endpoint,) = lab.server.endpoints.values()
    assert lab.link(link.id).status == bics.STATUSES[endpoint.life_cycle]
    lab.check()


@pytest.mark.parametrize(
    "kind", kinds(FaultKind.RESET_BEFORE, FaultKind.RESET_AFTER, FaultKind.SERVER_ERROR)
)
@pytest.mark.parametrize("route", ["delink", "delete"])
def test_a_link_is_cancelled_or_kept_whatever_happens_to_its_removal(
    lab: BicsLab, monkeypatch: pytest.MonkeyPatch, route: str, kind: FaultKind
) -> None:
    monkeypatch.setattr(ending, "CALL_S", CALL.total_seconds())
    link = lab.create()
    lab.change(link.id, [], ["eu-2"])
    lab.server.fault(kind, on=route, headers={"Retry-After": "0"}, seconds=3)

    with suppress(ProvisioningError):
        lab.finish(link.id, "cancel")
    settle(lab)

    lab.check()
    assert lab.finish(link.id, "cancel").state == "ended"
    lab.check()
    assert lab.wallet.balance_micros == parse_amount(DEPOSIT)
    assert not lab.server.endpoints


@pytest.mark.parametrize("route", ["delink", "delete", "sims", "profile"])
@pytest.mark.parametrize("kind", kinds(FaultKind.RESET_AFTER))
def test_an_endpoint_that_came_too_late_is_removed_whatever_happens(
    lab: BicsLab, kind: FaultKind, route: str
) -> None:
    link = late_link(lab)
    lab.server.fault(kind, on=route, headers={"Retry-After": "0"}, seconds=3)
    lab.clock.forward(seconds=170)
    lab.sweep()  # Meets the fault.
    settle(lab)

    assert lab.server.asked(route)
    assert lab.link(link.id).stage is Stage.ENDED
    assert lab.server.bought
    lab.check()


def late_link(lab: BicsLab) -> Link:
    """Return a link that has failed, whose endpoint comes minutes later."""
    link = lab.create(bics.SLOW_PLAN)
    lab.clock.forward(seconds=15)
    lab.expire(link.id)
    lab.server.heal()
    assert lab.link(link.id).stage is Stage.FAILED
    assert not lab.server.bought
    return link


def test_an_esim_is_quarantined_until_a_lost_creation_can_no_longer_come(lab: BicsLab) -> None:
    link = late_link(lab)
    others = [lab.create() for _ in range(SIMS)]

    iccids = {lab.link(other.id).iccid for other in others} - {None}
    assert lab.link(link.id).iccid not in iccids
    assert 1 < len(iccids) < SIMS // 2  # Of one sponsor; the last ones found no eSIM.
    settle(lab)
    lab.check()


@pytest.mark.parametrize("happening", ["it dies", "another works too", "nobody waits any more"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("kind", ["commits", pytest.param("reads", marks=pytest.mark.soak)])
@pytest.mark.parametrize("what", ["a link", "a plan"])
def test_a_worker_may_be_stopped_anywhere(
    lab: BicsLab, what: str, kind: str, when: When, happening: str
) -> None:
    places: Places = getattr(lab, kind)
    for number in range(1, PLACES_MAX):
        work, otherwise = begun(lab, what)
        places.at(number, when, die if happening == "it dies" else otherwise[happening])
        lab.live(work)
        was_reached = not places.is_waiting
        places.forget()
        lab.settle()
        lab.check()
        if not was_reached:
            return
        lab.restart()
    pytest.fail("the work has no end")


def begun(lab: BicsLab, what: str) -> tuple[Happening, dict[str, Happening]]:
    """Ask for a link or a plan; return the work for it, and what may come between."""
    rival = lab.other_process()

    def too_late(expire: Callable[[UUID], object], wanted: UUID) -> None:
        lab.clock.forward(seconds=15)
        expire(wanted)

    if what == "a link":
        link_id = lab.request()
        return partial(lab.process.provisioning.work, link_id), {
            "another works too": partial(rival.provisioning.work, link_id),
            "nobody waits any more": partial(too_late, lab.expire, link_id),
        }
    change_id = lab.request_change(lab.create().id, (), [lab.plan("eu-2", "1.00")])
    return partial(lab.process.plan_changes.work, change_id), {
        "another works too": partial(rival.plan_changes.work, change_id),
        "nobody waits any more": partial(too_late, lab.expire_change, change_id),
    }


def test_an_endpoint_that_is_not_ours_is_neither_adopted_nor_removed(lab: BicsLab) -> None:
    """Somebody else takes the eSIM, by the portal of BICS, when our creation is lost."""
    lab.server.fault(FaultKind.RESET_BEFORE, on="create")
    link = lab.create()
    assert link.stage is Stage.ENDPOINT_REQUESTED
    lab.server.take_by_hand(link.iccid or "", "by hand")
    lab.clock.forward(seconds=1)
    lab.work(link.id)
    for _ in range(12):
        lab.clock.forward(seconds=20)
        lab.sweep()

    assert lab.link(link.id).stage is Stage.FAILED
    assert lab.wallet.balance_micros == parse_amount(DEPOSIT)
    assert [each.name for each in lab.server.endpoints.values()] == ["by hand"]
    assert check_log(lab.process.log).failures == []


def test_an_addition_that_comes_too_late_is_taken_off(lab: BicsLab) -> None:
    link = lab.create()
    change = lab.change(link.id, add=[bics.SLOW_PLAN])
    lab.clock.forward(seconds=1)
    lab.work_change(change.id)  # Its call is over and shows nothing; it is not repeated.
    lab.clock.forward(seconds=15)
    lab.expire_change(change.id)
    settle(lab)

    assert len(lab.server.bought) == 2
    assert len(lab.server.unpaid()) == 1
    lab.check()


@pytest.mark.parametrize(
    "name", ["BICS_USERNAME", "BICS_PASSWORD", "BICS_ROAMING_PROFILE", "BICS_APN_GROUP"]
)
def test_a_setting_that_is_missing_is_named(
    installation: Installation, server: BicsServer, name: str
) -> None:
    installation.environment |= environment_of(server) | {name: ""}

    with pytest.raises(WrongSetting, match=f"{name} must be set"):
        _ = installation.process().networks


@pytest.mark.parametrize("days", [0, 30])
def test_a_link_whose_used_plan_was_taken_off_is_not_cancelled(lab: BicsLab, days: int) -> None:
    """The traffic went with the plan, and nobody has read the link while it was there."""
    cancels = replace(lab.process.link_ending, cancel_within=timedelta(days=60))
    link = lab.create()
    (first,) = link.current_activations
    lab.server.forward(timedelta(hours=2))
    lab.change(link.id, remove=[first.id])
    lab.clock.forward(seconds=timedelta(days=days).total_seconds())
    with pytest.raises(LinkInUse):
        cancels.cancel(lab.link(link.id), lab.process.cause())
    lab.check()


def test_a_link_whose_unused_plan_was_taken_off_is_cancelled(lab: BicsLab) -> None:
    cancels = replace(lab.process.link_ending, cancel_within=timedelta(days=60))
    link = lab.create()
    (first,) = link.current_activations
    lab.change(link.id, remove=[first.id])
    assert cancels.cancel(lab.link(link.id), lab.process.cause()).state == "ended"
    assert lab.wallet.balance_micros == parse_amount(DEPOSIT)


def test_esims_of_ended_links_do_not_hide_the_rest_of_the_stock(
    lab: BicsLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BICS shows them as free, and there may be far more of them than are looked through."""
    monkeypatch.setattr(bics_network, "PAGE_SIMS", 2)
    for _ in range(2 * PAGES_MAX + 1):
        assert lab.finish(lab.create().id, "end").state == "ended"
    lab.restart()
    assert lab.create().state == "active"
    asked = len(lab.server.asked("sims"))
    assert lab.create().state == "active"
    assert len(lab.server.asked("sims")) - asked <= 4  # They are passed over once.
