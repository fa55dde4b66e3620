"""Workers of `web` count in files of their own; the main process adds them up."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from app.watch.web_workers import WorkerFiles

# A worker: it counts, then says so and waits to be ended.
WORKER = """
import sys
from prometheus_client import Counter, Gauge, Histogram
from app.watch.web_workers import count_in
count_in(int(sys.argv[1]))
Counter("worked", "W.", ["a"], registry=None).labels("x").inc(2)
Histogram("took", "T.", registry=None).observe(0.3)
Gauge("alive", "A.", registry=None, multiprocess_mode="livesum").set(1)
print("ready", flush=True)
sys.stdin.read()
"""
ROOT = Path(__file__).parents[3]


@pytest.fixture
def files() -> Iterator[WorkerFiles]:
    made = WorkerFiles()
    yield made
    made.close()


class Worker:
    def __init__(self, slot: int = 0) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(slot)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            text=True,
        )
        assert self.process.stdout.readline() == "ready\n"

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


def shown(files: WorkerFiles) -> dict[str, float]:
    registry = CollectorRegistry()
    registry.register(files)
    lines = generate_latest(registry).decode().splitlines()
    values = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in values}


def test_what_workers_count_is_added_up(files: WorkerFiles) -> None:
    workers = [Worker(0), Worker(1)]
    try:
        assert shown(files)['worked_total{a="x"}'] == 4
        assert shown(files)["took_count"] == 2
        assert shown(files)["alive"] == 2
        assert files.missing() is None
    finally:
        for worker in workers:
            worker.kill()


def test_what_ended_workers_have_counted_stays_in_the_files_of_a_slot(files: WorkerFiles) -> None:
    for count in (1, 2):
        Worker().kill()
        files.end(0)
        now = shown(files)
        assert now['worked_total{a="x"}'] == 2 * count
        assert now['took_bucket{le="0.5"}'] == count
        assert now['took_bucket{le="0.25"}'] == 0
        assert "alive" not in now
        assert len(list(files.path.iterdir())) == 2
    assert files.missing() is not None


def test_a_file_that_a_worker_is_just_making_is_left_out(files: WorkerFiles) -> None:
    worker = Worker()
    try:
        (files.path / "counter_1.db").touch()
        assert shown(files)["alive"] == 1
    finally:
        worker.kill()


def test_the_directory_goes_with_the_main_process(files: WorkerFiles) -> None:
    assert files.path.is_dir()
    files.close()
    assert not files.path.exists()
