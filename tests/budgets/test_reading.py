"""What a round of background reading asks of the databases; what the network itself asks not."""

from collections import Counter
from datetime import timedelta

import pytest

from tests.budgets.tally import NETWORK, Tally, told
from tests.installation import Installation
from tests.workers.link_lab import Lab
from workers.reading import BackgroundReading

# For a tick: links that are new, ends to tell, links that are due; and what was last read of these.
TICK = 4
# For a link: its stream, its usage, its next turn. The last two are written.
LINK = 3
COMMITS = 2


@pytest.fixture
def lab(tally: Tally, installation: Installation) -> Lab:
    assert not tally.take()
    return Lab(installation)


def read_all(background: BackgroundReading) -> None:
    background.tick()
    (lane,) = background.lanes.values()
    while (taken := lane.claim()) is not None:
        lane.done(answered=background.read(taken[0], taken[1].usage))


@pytest.mark.each_database
@pytest.mark.parametrize("links", [1, 7])
def test_a_round_asks_three_times_for_each_link(tally: Tally, lab: Lab, links: int) -> None:
    for _ in range(links):
        lab.create()
    lab.process.projector.catch_up()
    background = lab.process.background_reading
    for _ in range(3):  # At first facts are recorded, and what is told of that may come late.
        lab.clock.now += timedelta(seconds=900)
        tally.take()
        read_all(background)
    ran = [each for each in tally.take() if each.role != NETWORK]
    kinds = Counter(each.kind for each in ran)
    assert (kinds["statement"], kinds["commit"]) == (TICK + LINK * links, COMMITS * links), told(
        ran
    )
