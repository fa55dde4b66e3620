"""The background reading bears every network that is away, and knows the pace of each."""

from datetime import timedelta

import pytest

from domain.links.network import EsimNetwork
from tests.contracts.esim_networks import FarSide
from tests.installation import installation, migrated
from tests.workers.link_lab import Lab, lab

__all__ = ["installation", "lab", "migrated"]


def test_a_network_says_how_often_it_may_be_read_in_the_background(network: EsimNetwork) -> None:
    assert 0 < network.background_reads_per_s <= 20


@pytest.mark.any_database
def test_a_network_that_is_away_is_no_answer_and_no_end(
    lab: Lab, far_side: FarSide, network: EsimNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = lab.create()
    lab.clock.forward(hours=1)
    lab.process.projector.catch_up()
    background = lab.process.background_reading
    background.tick()
    before = lab.process.log.head()
    monkeypatch.setattr(lab.process.networks, "of", lambda _: network)
    far_side.break_down()
    assert background.read(link.id, None) is False
    assert lab.process.log.head() == before
    assert lab.process.reading_turns.due("simulated", lab.clock(), 9) == {}
    later = lab.clock() + timedelta(seconds=900)
    assert [*lab.process.reading_turns.due("simulated", later, 9)] == [link.id]
