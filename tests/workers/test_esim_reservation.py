"""Links that want the same eSIMs or the same money: one gets it, the others take nothing."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from domain.errors import InsufficientBalance, ProvisioningError
from domain.links.esim import Esim
from domain.links.link import Link, Stage
from domain.links.network import NoActivationCode, ProviderPlan
from tests.domain.asking import together
from tests.installation import on_sqlite
from tests.workers.link_checks import Books
from tests.workers.link_lab import Lab
from tests.workers.network_faults import FAULTS, arm
from workers.links import PAGES_MAX


def free_iccids(lab: Lab, count: int) -> list[str]:
    """Return eSIMs that the network has and nobody holds."""
    plan = ProviderPlan("eu-1", data_mb=1_000, validity_days=7)
    found = lab.simulator.available_esims(plan, "sp", "", page=0, timeout_s=1.0)
    return [*found[-count:]]


def show(lab: Lab, stock: dict[str | None, list[Sequence[str]]]) -> None:
    """Let the network show these pages of eSIMs by sponsor profile, and nothing else."""

    def available(_plan: object, sponsor: str | None, *_: object, page: int, **__: object) -> Any:
        pages = stock.get(sponsor, [])
        return pages[page] if page < len(pages) else []

    lab.simulator.available_esims = available


def outcomes(lab: Lab, links: list[Link]) -> list[str]:
    lab.settle()
    ended = [lab.link(link.id) for link in links]
    return [each.failure.code if each.failure else each.stage.value for each in ended]


@pytest.mark.each_database
@pytest.mark.parametrize(("links", "esims"), [on_sqlite(3, 1), (4, 3)])
def test_links_that_want_them_at_the_same_moment_share_them_too(
    lab: Lab, links: int, esims: int
) -> None:
    workers = [lab.other_process() for _ in range(links)]
    lab.only(*free_iccids(lab, esims))
    asked = [lab.link(lab.request()) for _ in range(links)]
    together(*[partial(w.provisioning.work, x.id) for w, x in zip(workers, asked, strict=True)])
    assert outcomes(lab, asked).count(Stage.ACTIVE) == esims


def test_who_loses_the_race_for_an_esim_takes_the_next_one(lab: Lab) -> None:
    first, second = free_iccids(lab, 2)
    loser, winner = lab.request(), lab.request()
    show(lab, {"sp": [[first], [second]]})
    lab.commits.at(1, "before", lambda: lab.other_process().provisioning.work(winner))
    assert lab.work(loser).iccid == second
    assert lab.link(winner).iccid == first
    lab.settle()


def test_an_esim_that_is_held_back_for_a_failed_link_is_nobodys(lab: Lab) -> None:
    iccid = free_iccids(lab, 1)[0]
    lab.only(iccid)
    arm(lab.network, "create_endpoint", FAULTS["killed before"])
    failed = lab.create()
    lab.clock.forward(seconds=15)
    lab.expire(failed.id)
    refused = lab.create()
    assert refused.failure is not None
    assert refused.failure.code == ProvisioningError.code
    lab.settle()
    assert lab.create().iccid == iccid


@pytest.mark.each_database
def test_the_last_money_at_the_same_moment_pays_for_one_link(lab: Lab) -> None:
    workers = [lab.other_process() for _ in range(3)]
    asked = [lab.link(lab.request(lab.plan("eu-1", "300.00"))) for _ in workers]
    together(*[partial(w.provisioning.work, x.id) for w, x in zip(workers, asked, strict=True)])
    assert sorted(outcomes(lab, asked)) == [InsufficientBalance.code] * 2 + ["active"]


def test_money_that_goes_while_an_esim_is_looked_for_is_not_taken_twice(lab: Lab) -> None:
    rich, poor = (lab.request(lab.plan("eu-1", "300.00")) for _ in range(2))
    lab.network.after("available_esims", lambda: lab.other_process().provisioning.work(rich))
    link = lab.work(poor)
    assert link.failure is not None
    assert (link.failure.code, link.stage) == (InsufficientBalance.code, Stage.ENDED)


@pytest.mark.parametrize("empty", [1, 2])
def test_the_first_sponsor_profile_that_has_an_esim_is_used(lab: Lab, empty: int) -> None:
    without_code, iccid = free_iccids(lab, 2)
    names = ("a", "b", "c")
    show(lab, {names[empty]: [[without_code], [iccid]]})
    lab.network.before("lpa", NoActivationCode("no code"))
    link = lab.work(lab.request(lab.plan(sponsors=names)))
    assert link.sponsor_profile is not None
    assert (link.iccid, link.sponsor_profile.id) == (iccid, names[empty])
    assert lab.network.count("available_esims") == empty + 2
    assert (link.sponsor_profile.name, link.sponsor_profile.color) == (names[empty].upper(), "#fff")


def test_a_sponsor_profile_whose_esims_are_all_held_is_as_good_as_empty(lab: Lab) -> None:
    one, two = free_iccids(lab, 2)
    show(lab, {"a": [[one]], "b": [[two]]})
    plan_id = lab.plan(sponsors=("a", "b"))
    profiles = [lab.work(lab.request(plan_id)).sponsor_profile for _ in range(2)]
    assert [each.id for each in profiles if each is not None] == ["a", "b"]


def test_a_stock_without_end_of_which_all_is_held_is_given_up(lab: Lab) -> None:
    iccid = free_iccids(lab, 1)[0]
    lab.only(iccid)
    lab.create()
    show(lab, {"sp": [[iccid]] * 100})
    lab.network.calls.clear()
    link = lab.create()
    assert link.failure is not None
    assert lab.network.count("available_esims") == PAGES_MAX


def test_a_deadline_that_passes_while_an_esim_is_looked_for_takes_nothing(lab: Lab) -> None:
    link_id = lab.request()

    def wait_no_longer() -> None:
        lab.clock.forward(seconds=15)
        lab.expire(link_id)

    lab.network.after("available_esims", wait_no_longer)
    link = lab.work(link_id)
    assert (link.stage, link.iccid) == (Stage.ENDED, None)
    assert Books(lab.process.log).every(Esim) == []


def test_the_time_of_each_look_is_what_is_left_of_the_deadline(lab: Lab) -> None:
    iccid = free_iccids(lab, 1)[0]
    lab.only(iccid)
    lab.create()
    show(lab, {})
    times: list[float] = []
    shown = lab.simulator.available_esims

    def slow(*args: Any, timeout_s: float, **more: Any) -> Any:
        times.append(timeout_s)
        lab.clock.forward(seconds=4)
        return shown(*args, **more) or [iccid]

    lab.simulator.available_esims = slow  # type: ignore[method-assign]  # A network of this test.
    link = lab.work(lab.request())
    assert times == [5.0, 5.0, 5.0, 3.0]  # Of 15 s; no fifth page when they are over.
    assert link.failure is not None
    assert link.stage is Stage.ENDED
