"""What the installation uses of database, disk, connections and queues, and when each is full."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import select, text
from sqlalchemy.exc import DBAPIError

from app.bootstrap.container import Container
from app.bootstrap.observed import CONNECTIONS
from domain.log.log import Poisoned
from projections.engine.database import from_micros, to_micros
from projections.models.transactions import EVERYBODY, HOUR
from workers.routes import QUEUES

WINDOW = timedelta(days=7)  # The pace is that of the last so many days.
WINDOW_MIN = timedelta(hours=1)  # A younger log has no pace.
SOON = timedelta(days=30)  # What is full so soon is reported as a fault.
USED_MAX = 0.8  # Of the connections.
FOREVER_DAYS = 36_500
LINE_BYTES = 317  # Of a request in the log of a container, with what Docker writes around it.
LOG, MODELS, STORES = "log", "read models", "stores"

SIZES = """
    SELECT relname, pg_total_relation_size(oid) FROM pg_class
    WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
"""
DATA = "SELECT current_setting('data_directory'), host(inet_server_addr())"


@dataclass(frozen=True, slots=True)
class Use:
    """What is used of one thing, and of how much; None: there is no bound, or nobody can see it."""

    what: str
    used: int
    of: int | None
    unit: str
    full_at: datetime | None = None
    told: str = ""


class Pace(NamedTuple):
    """How fast the database grows, by the events of the last days."""

    days: float
    events_a_day: int
    bytes_a_day: int


class Capacity(NamedTuple):
    """What is used, and at which pace it grows; None: the log is younger than an hour."""

    uses: list[Use]
    pace: Pace | None

    def is_enough(self, now: datetime) -> bool:
        """Tell whether nothing is full within 30 days, and connections are left."""
        return not any(
            (each.full_at is not None and each.full_at < now + SOON)
            or (each.of and each.unit == "connections" and each.used > USED_MAX * each.of)
            for each in self.uses
        )


def capacity(container: Container, disk_bytes: int | None = None) -> Capacity:
    """Look at everything once. `disk_bytes`: what the database may take, if we cannot see that."""
    sizes = sizes_of(container)
    pace = _pace(container, sum(sizes.values()))
    uses = [
        _database(container.tree_builder.events(container.log.head()), sizes),
        _disk(container, sum(sizes.values()), pace, disk_bytes),
        *_connections(container),
        *_queues(container),
        *_lookups(container),
    ]
    return Capacity(uses, pace)


def in_mb(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def _database(events: int, sizes: Mapping[str, int]) -> Use:
    parts = ", ".join(f"{name} {in_mb(size)}" for name, size in sizes.items())
    remark = f"{parts}; {sum(sizes.values()) // events:,} bytes an event" if events else parts
    return Use("database", sum(sizes.values()), None, "bytes", told=remark)


def sizes_of(container: Container) -> dict[str, int]:
    """Return the bytes of log, read models and own stores, with their indexes."""
    if container.settings.is_on_files:
        log = container.settings.database_path
        ends = {LOG: "", MODELS: "-views", STORES: "-stores"}
        stems = {part: log.with_name(f"{log.stem}{end}{log.suffix}") for part, end in ends.items()}
        return {part: _size(path) + _size(Path(f"{path}-wal")) for part, path in stems.items()}
    sizes = dict.fromkeys((LOG, MODELS, STORES), 0)
    models = {table.name for model in container.models for table in model.tables}
    for name, size in container.views.all(text(SIZES)):
        part = MODELS if name in models else LOG if name.startswith("log_events") else STORES
        sizes[part] += size
    return sizes


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _pace(container: Container, whole: int) -> Pace | None:
    log, now = container.log, container.clock()
    try:
        first = log.stored(0, 1)
        since = max(now - WINDOW, first[0].timestamp) if first else now
        if now - since < WINDOW_MIN:
            return None
        count = container.tree_builder.events
        whole_events = count(log.head())
        events = whole_events - count(log.position_before(since))
    except Poisoned:  # `doctor` tells of it.
        return None
    days = (now - since) / timedelta(days=1)
    return Pace(round(days, 2), round(events / days), round(events / days * whole / whole_events))


def _disk(container: Container, whole: int, pace: Pace | None, disk_bytes: int | None) -> Use:
    used, of = _disk_of(container, whole) if disk_bytes is None else (whole, disk_bytes)
    if of is None:
        remark = "the disk of the database cannot be seen from here: add --disk GB"
        return Use("disk", used, of, "bytes", told=remark)
    if used >= of:
        return Use("disk", used, of, "bytes", container.clock(), "is full")
    if pace is None or not pace.bytes_a_day:
        return Use("disk", used, of, "bytes", told="nothing is known of its pace yet")
    left = timedelta(days=min((of - used) / pace.bytes_a_day, FOREVER_DAYS))
    remark = f"{in_mb(pace.bytes_a_day)} a day, by the last {pace.days:g} days"
    return Use("disk", used, of, "bytes", container.clock() + left, remark)


def _disk_of(container: Container, whole: int) -> tuple[int, int | None]:
    """Return how much of the database's disk is used, of what we may use, if both can be seen."""
    with suppress(OSError, DBAPIError):
        path, address = container.settings.database_path.absolute().parent, None
        if not container.settings.is_on_files:
            ((path, address),) = container.views.all(text(DATA))
        if address is None or ip_address(address).is_loopback:  # Then it is on this machine.
            disk = shutil.disk_usage(path)
            return disk.used, disk.used + disk.free
    return whole, None


def _connections(container: Container) -> Iterator[Use]:
    if container.settings.is_on_files:
        return
    ((used, most),) = container.views.all(text(CONNECTIONS))
    remark = "of all clients; each process takes up to 12"
    yield Use("connections", used, most, "connections", told=remark)


def _queues(container: Container) -> Iterator[Use]:
    if container.settings.has_own_broker:  # Those of another process.
        return
    broker = container.broker
    try:
        counted = [(name, broker.backlog(name)) for name in QUEUES]
    except Exception:  # noqa: BLE001  # Whatever the error, the rest is said all the same.
        yield Use("queues", 0, None, "messages", told="the broker cannot be reached")
        return
    for name, waiting in counted:
        yield Use(f"queue {name}", waiting, None, "messages")


def _lookups(container: Container) -> Iterator[Use]:
    """Tell the busiest hour of lookups, and the lines that one process logs of them."""
    since = to_micros(container.clock() - WINDOW) // HOUR
    hours = container.transactions.hours.rows.c
    mine = (hours.organization_id == EVERYBODY, hours.kind == "lookup", hours.hour >= since)
    counts = select(hours.hour, hours.count).where(*mine).order_by(hours.count.desc(), hours.hour)
    found = container.views.all(counts)
    bytes_a_day = LINE_BYTES * sum(count for _, count in found) // WINDOW.days
    remark = "a day for the lookups alone; rotate them, for the pace of the disk is without"
    yield Use("log lines", bytes_a_day, None, "bytes", told=remark)
    for hour, count in found[:1]:
        at = f"{from_micros(hour * HOUR):%Y-%m-%d %H:00} UTC"
        remark = f"from {at} on, {count / 3600:.1f} a second"
        yield Use("busiest hour", count, None, "charged lookups", told=remark)
