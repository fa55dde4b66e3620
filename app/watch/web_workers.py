"""The metrics of `web`, whose workers count in files that its main process adds up."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Lock, Thread
from typing import Any

from prometheus_client import Counter, Gauge, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from domain.lookups.ports import NumberLookup

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"  # The library reads it when a worker imports it.
ENDED = 0  # Stands where file names have a process id: what workers that have ended had counted.
PULSE_S = 1.0

# The library has no types for these.
_Files: Any = MmapedDict
_Together: Any = MultiProcessCollector


class WorkerFiles(Collector):
    """A directory of its own, in which workers that are started from now on count.

    Files of workers that have ended are added up into one per kind, so they never grow in number;
    their gauges are forgotten.
    """

    def __init__(self) -> None:
        self._home = TemporaryDirectory(prefix="web-metrics-")
        self.path = Path(self._home.name)
        self._lock = Lock()
        os.putenv(VARIABLE, self._home.name)

    def describe(self) -> list[Metric]:
        """Say nothing at registration."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Add up what all workers have counted."""
        with self._lock:
            self._fold()
            yield from _Together.merge([str(path) for path in self._files()])

    def missing(self) -> str | None:
        """Say that no worker is there, as a need of readiness."""
        alive = any(_lives(pid) for pid in map(_pid_of, self.path.glob("*.db")) if pid != ENDED)
        return None if alive else "no worker answers yet"

    def close(self) -> None:
        """Remove the directory; workers that still end keep what they have open."""
        os.unsetenv(VARIABLE)
        self._home.cleanup()

    def _files(self) -> list[Path]:
        """Return all files but those that a worker is just making: these are empty at first."""
        return [path for path in self.path.glob("*.db") if path.stat().st_size]

    def _fold(self) -> None:
        files = [path for path in self._files() if not _lives(_pid_of(path))]
        for kind in ("counter", "histogram"):
            ended = [path for path in files if path.name.startswith(f"{kind}_")]
            if ended:
                self._add_up(self.path / f"{kind}_{ENDED}.db", ended)
        for path in files:
            path.unlink()

    def _add_up(self, total: Path, ended: list[Path]) -> None:
        sums: dict[str, float] = {}
        for path in [total, *ended] if total.exists() else ended:
            for key, value, *_ in _Files.read_all_values_from_file(str(path)):
                sums[key] = sums.get(key, 0.0) + value
        fresh = total.with_suffix(".new")
        written = _Files(str(fresh))
        for key, value in sums.items():
            written.write_value(key, value, 0.0)
        written.close()
        fresh.replace(total)


class WorkerGauges:
    """What a worker of `web` shows of itself: gauges in files have to be set again and again."""

    def __init__(self, provider: NumberLookup) -> None:
        self._provider = provider
        self._process = ProcessCollector(registry=None)
        self._cpu_s = 0.0
        alive = Gauge("web_workers", "Workers.", registry=None, multiprocess_mode="livesum")
        alive.set(1)
        self._up = Gauge(
            "lookup_provider_up",
            "0 while the circuit is open.",
            registry=None,
            multiprocess_mode="livemin",
        )
        self._memory = Gauge(
            "web_workers_resident_memory_bytes",
            "Memory of all workers.",
            registry=None,
            multiprocess_mode="livesum",
        )
        self._cpu = Counter("web_workers_cpu_seconds", "CPU time of all workers.", registry=None)

    def start(self) -> None:
        """Set them every second, as long as the process lives."""
        Thread(target=self._run, name="gauges", daemon=True).start()

    def set(self) -> None:
        """Set them once."""
        self._up.set(self._provider.is_up())
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


def _pid_of(path: Path) -> int:
    return int(path.stem.rpartition("_")[2])


def _lives(pid: int) -> bool:
    if pid == ENDED:
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
