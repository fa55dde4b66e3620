"""Makes an installation from an export: the events at their positions, then the read models.

An export is no backup: it has neither the keys of personal data nor signing keys. The checkpoints
that somebody has kept beside it come with it, so that final statements keep theirs.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

from app.bootstrap.container import Container
from app.processes.migrate import migrate
from app.security.checkpoint_keys import verify
from domain.accounts.currency import currency_of
from domain.errors import WrongCurrency
from domain.log.log import Stored
from projections.audit.auditor import check_log
from projections.audit.checkpoint import SignedCheckpoint
from projections.audit.export import NoExport, event_of, read_export
from projections.audit.report import Report
from projections.audit.tree import leaf_hash
from projections.audit.witnesses import Claim, Claims
from projections.engine.rebuild import Progress, ignore_progress, rebuild_all

REPORT_EVENTS = 1_000  # Progress is reported once for this many events.
RANGE = ".range.json"  # Suffix of the file with the tree before a part of an export.


def import_log(
    container: Container,
    path: Path,
    progress: Progress = ignore_progress,
    notes: Mapping[str, SignedCheckpoint] = MappingProxyType({}),
    keys: Sequence[bytes] = (),
) -> Report:
    """Fill an empty installation, build its read models, and check the log.

    `notes` are checkpoints by the names of their files; where `keys` are given, these must have
    signed them. One of later events is left out. Nothing is written if a line is not as it was
    exported, if lines are missing, or if a note is not of this log.
    """
    if range_of(path).exists():
        raise NoExport(f"{path}: is a part of an export, for {range_of(path)} stands beside it")
    with path.open("rb") as file:
        migrate(container)
        claims = Claims(
            Claim(name, each.checkpoint, each.fault(keys, verify) if keys else None)
            for name, each in notes.items()
        )
        container.persistence.fill_log(_checked(container, file, progress, claims))
    head = container.log.head()
    its = [each for each in notes.values() if each.checkpoint.position <= head]
    container.checkpoint_store.fill(its, container.clock())
    rebuild_all(container.source, container.models, progress)
    return check_log(container.log, progress)


def range_of(path: Path) -> Path:
    """Return the file with the tree over the events before a part of an export."""
    return path.parent / f"{path.name}{RANGE}"


def _checked(
    container: Container, file: BinaryIO, progress: Progress, claims: Claims
) -> Iterator[Stored]:
    size, code = os.fstat(file.fileno()).st_size, container.currency.code
    for number, row in enumerate(read_export(file)):
        if (found := currency_of(event_of(row))) not in {None, code}:
            raise WrongCurrency(str(found))
        if number % REPORT_EVENTS == 0:
            progress(file.tell(), size)
        claims.see(row, leaf_hash(*row))
        yield row
    report = Report()
    claims.leave_out_later()
    claims.testify(report)
    for failure in report.failures:
        raise NoExport(failure.reason)
