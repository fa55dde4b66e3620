"""The metrics of `web`: its workers count in files, which the main process adds up."""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Lock, Thread
from typing import Any

from prometheus_client import Counter, Gauge, ProcessCollector, values
from prometheus_client.core import Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector
from prometheus_client.values import MultiProcessValue

from app.watch.gauges import GAUGES, PREFIX, PROVIDER_GAUGES
from app.watch.metrics import gauge

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"  # The library reads it when a worker imports it.
PULSE_S = 1.0

# The library has no types for these.
_merge: Any = MultiProcessCollector.merge
_mark_dead: Any = mark_process_dead


class WorkerFiles(Collector):
    """A new directory for the counters of the workers; workers started later inherit its path.

    Each worker has a slot. Its replacement gets the same slot, so it goes on with the same files.
    """

    def __init__(self) -> None:
        self._home = TemporaryDirectory(prefix="web-metrics-")
        self.path = Path(self._home.name)
        self._lock = Lock()
        os.putenv(VARIABLE, self._home.name)

    def describe(self) -> list[Metric]:
        """Return nothing at registration."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Add up the counters of all workers."""
        with self._lock:
            # A file that a worker is just creating is empty.
            files = [str(path) for path in self.path.glob("*.db") if path.stat().st_size]
            metrics: Iterable[Metric] = _merge(files)
            return metrics

    def end(self, slot: int) -> None:
        """Forget the gauges of a worker that has ended."""
        with self._lock:
            _mark_dead(slot, str(self.path))

    def missing(self) -> str | None:
        """Say that no worker is there; None if one is. `/readyz` asks this."""
        return None if any(self.path.glob("gauge_live*.db")) else "no worker answers yet"

    def close(self) -> None:
        """Remove the directory; workers that are still ending keep their open files."""
        os.unsetenv(VARIABLE)
        self._home.cleanup()


def count_in(slot: int) -> None:
    """Let this process count in the files of a slot. Call it before any metric is made.

    Two processes that live at the same time must not share a slot.
    """
    values.ValueClass = MultiProcessValue(lambda: slot)  # type: ignore[no-untyped-call]  # Of the library.


class WorkerGauges:
    """The gauges of a `web` worker. A scrape reads only files, so they are written each second."""

    def __init__(self, providers_up: Callable[[], Mapping[str, Mapping[str, float]]]) -> None:
        self._providers_up = providers_up
        self._process = ProcessCollector(registry=None)
        self._cpu_s = 0.0
        gauge("Workers.")(f"{PREFIX}web_workers").set(1)
        self._up = {
            name: Gauge(
                PREFIX + name,
                GAUGES[name][0],
                ["provider"],
                registry=None,
                multiprocess_mode="livemin",
            )
            for name in PROVIDER_GAUGES
        }
        memory = gauge("Memory of all workers.")
        self._memory = memory(f"{PREFIX}web_workers_resident_memory_bytes")
        cpu = f"{PREFIX}web_workers_cpu_seconds"
        self._cpu = Counter(cpu, "CPU time of all workers.", registry=None)

    def start(self) -> None:
        """Set the gauges every second as long as the process lives."""
        Thread(target=self._run, name="gauges", daemon=True).start()

    def set(self) -> None:
        for name, up in self._providers_up().items():
            for provider, is_up in up.items():
                self._up[name].labels(provider).set(is_up)
        now_s = time.process_time()
        self._cpu.inc(now_s - self._cpu_s)
        self._cpu_s = now_s
        for family in self._process.collect():
            if family.name == "process_resident_memory_bytes":
                self._memory.set(family.samples[0].value)

    def _run(self) -> None:
        never = Event()
        while True:
            self.set()
            never.wait(PULSE_S)
