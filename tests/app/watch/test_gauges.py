"""A question that hangs delays nobody beyond its time-out and is not asked twice at once."""

from collections.abc import Iterator
from threading import Event

import pytest

from app.watch import gauges
from app.watch.gauges import ScrapedGauges, SharedQuery, Values

SCRAPE_S_MAX = 2.0
HERE: Values = {"audit_failures": 1.0}


@pytest.fixture
def gate() -> Iterator[Event]:
    opened = Event()
    yield opened
    opened.set()


def values(collector: ScrapedGauges) -> dict[str, float]:
    return {
        str(each.labels.get("part", each.name.removeprefix(gauges.PREFIX))): each.value
        for family in collector.collect()
        for each in family.samples
    }


def test_what_hangs_is_left_out_in_time_and_the_rest_is_there(gate: Event) -> None:
    def hang() -> Values:
        gate.wait()
        return {"months_overdue": 1.0}

    collector = ScrapedGauges([SharedQuery("slow", hang), SharedQuery("quick", lambda: HERE)])
    assert values(collector) == {
        "audit_failures": 1,
        "slow": 0,
        "quick": 1,
    }  # It ends, other than `hang`.
    assert gauges.ANSWER_S < SCRAPE_S_MAX


def test_while_a_question_hangs_it_is_not_asked_again(gate: Event) -> None:
    asked: list[int] = []

    def hang() -> int:
        asked.append(1)
        gate.wait()
        return len(asked)

    asker = SharedQuery("slow", hang)
    begun = [asker.query() for _ in range(5)]
    gate.set()
    assert [future.result(10) for future in begun] == [1] * 5
    assert asker.query().result(10) == 2


def test_an_error_is_an_answer_and_the_next_question_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gauges, "ANSWER_S", 10.0)
    down = [True]

    def ask() -> Values:
        if down[0]:
            message = "away"
            raise ConnectionError(message)
        return HERE

    collector = ScrapedGauges([SharedQuery("part", ask)])
    assert values(collector) == {"part": 0}
    down[0] = False
    assert values(collector) == {"part": 1, "audit_failures": 1}
