"""What the profiler's stacks are counted as."""

from tests.bench.profile import HERE, places, render

BENCH = 'process 9:"python -m tests.bench hot_wallet"'
WORKER = f'{BENCH};process 7:"python -m app worker"'
WEB = f'{BENCH};process 8:"python -m app web"'
BARE = f'{BENCH};process 5:"python -m tests.bench.peers.plain_charges"'
STACKS = [
    f"{WORKER};run ({HERE}workers/lookups.py:3);look_up ({HERE}app/providers/a.py:9) 60",
    f"{WORKER};run ({HERE}workers/lookups.py:3);dumps (json/__init__.py:9) 30",
    f"{BENCH};ask ({HERE}tests/bench/crowd.py:1);get ({HERE}app/container/b.py:1) 9",
    f"{BENCH};serve ({HERE}tests/bench/peers/bare.py:1);get ({HERE}app/c.py:1) 500",
    f"{BARE};run (threading.py:1);call ({HERE}app/http/edge/request_threads.py:1) 500",
    f"{WEB};idle (threading.py:1) 500",
    f"{WEB};view ({HERE}app/http/d.py:1) 1",
    f"{WEB};run ({HERE}app/e.py:1);_find_and_load (<frozen>:1);_ ({HERE}app/f.py:1) 500",
]


def test_a_sample_counts_for_the_innermost_of_our_files() -> None:
    assert places(STACKS) == {
        ("worker", "app/providers/a.py"): 60,
        ("worker", "workers/lookups.py"): 30,
        ("bench", "app/container/b.py"): 9,
        ("web", "app/http/d.py"): 1,
    }


def test_the_largest_share_comes_first_and_small_ones_are_one_line() -> None:
    lines = render(places(STACKS)).splitlines()[2:]
    assert lines == [
        "| worker | `app/providers/a.py` | 60% |",
        "| worker | `workers/lookups.py` | 30% |",
        "| bench | `app/container/b.py` | 9% |",
        "| web | `app/http/d.py` | 1% |",
        "| | others | 0% |",
    ]


def test_nothing_that_was_seen_is_a_table_of_nothing() -> None:
    assert render(places([])).splitlines()[2:] == ["| | others | 0% |"]
