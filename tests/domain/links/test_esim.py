"""An eSIM: held by one link at a time, and kept back while the network could surprise us."""

from collections.abc import Callable
from functools import partial
from uuid import uuid4

import pytest

from domain.links.esim import Esim, esim_id
from tests.domain.build import cause
from tests.domain.build_links import ICCID, LINK, SETTLED_AT
from tests.story import Story, fact

Step = Callable[[Esim], object]
OTHER = uuid4()


def registered(*steps: Step) -> Story[Esim]:
    return Story(Esim.register("simulated", ICCID, cause())).given(*steps)


def reserved(esim: Esim) -> None:
    esim.reserve(LINK, cause(1))


def quarantined(esim: Esim) -> None:
    esim.quarantine(LINK, SETTLED_AT, cause(2))


def released(esim: Esim) -> None:
    esim.release(LINK, cause(3))


def test_the_same_iccid_of_two_networks_is_two_esims() -> None:
    assert esim_id("simulated", ICCID) != esim_id("bics", ICCID)


def test_a_reserved_esim_belongs_to_one_link() -> None:
    story = registered().when(reserved).then(fact(Esim.Reserved, link_id=LINK), link_id=LINK)
    for taker in (OTHER, LINK):
        story.when(partial(Esim.reserve, link_id=taker, cause=cause(4)))
        story.refused(AssertionError, link_id=LINK)


def test_a_quarantined_esim_is_still_held() -> None:
    story = registered(reserved).when(quarantined)
    story.then(
        fact(Esim.Quarantined, link_id=LINK, until=SETTLED_AT),
        link_id=LINK,
        quarantined_until=SETTLED_AT,
    )
    story.when(lambda esim: esim.reserve(OTHER, cause(4))).refused(AssertionError, link_id=LINK)


@pytest.mark.parametrize("history", [(reserved,), (reserved, quarantined)])
def test_a_released_esim_is_free_for_another_link(history: tuple[Step, ...]) -> None:
    story = registered(*history).when(released)
    story.then(fact(Esim.Released, link_id=LINK), link_id=None, quarantined_until=None)
    story.when(lambda esim: esim.reserve(OTHER, cause(4)))
    story.then(fact(Esim.Reserved, link_id=OTHER), link_id=OTHER)


@pytest.mark.parametrize("history", [(), (reserved,), (reserved, released)])
@pytest.mark.parametrize(
    "step",
    [
        pytest.param(lambda esim: esim.release(OTHER, cause(5)), id="release"),
        pytest.param(lambda esim: esim.quarantine(OTHER, SETTLED_AT, cause(5)), id="quarantine"),
    ],
)
def test_only_the_link_that_holds_it_decides_over_it(history: tuple[Step, ...], step: Step) -> None:
    registered(*history).when(step).refused(AssertionError)
