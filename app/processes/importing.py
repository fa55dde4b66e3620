"""Makes an installation from an export: the events at their positions, then the read models.

An export is no backup: it has neither the keys of personal data nor signing keys.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from app.bootstrap.container import Container
from app.processes.migrate import migrate
from domain.accounts.currency import currency_of
from domain.errors import WrongCurrency
from domain.log.log import Stored
from projections.audit.auditor import check_log
from projections.audit.export import NoExport, event_of, read_export
from projections.audit.report import Report
from projections.engine.rebuild import Progress, ignore_progress, rebuild_all

TOLD_EVENTS = 1_000  # Progress is reported once for this many events.
RANGE = ".range.json"  # Suffix of the file with the tree before a part of an export.


def import_log(container: Container, path: Path, progress: Progress = ignore_progress) -> Report:
    """Fill an empty installation, build its read models, and check the log.

    Nothing is written if a line is not as it was exported, or if lines are missing.
    """
    if range_of(path).exists():
        message = f"{path}: is a part of an export, for {range_of(path)} stands beside it"
        raise NoExport(message)
    with path.open("rb") as file:
        migrate(container)
        container.persistence.fill_log(_checked(container, file, progress))
    parts = (container.log, container.views, container.positions)
    rebuild_all(*parts, container.models, progress)
    return check_log(container.log, progress)


def range_of(path: Path) -> Path:
    """Return the file with the tree over the events before a part of an export."""
    return path.with_name(path.name + RANGE)


def _checked(container: Container, file: BinaryIO, progress: Progress) -> Iterator[Stored]:
    size, code = os.fstat(file.fileno()).st_size, container.currency.code
    for number, row in enumerate(read_export(file)):
        if (found := currency_of(event_of(row))) not in {None, code}:
            raise WrongCurrency(str(found))
        if number % TOLD_EVENTS == 0:
            progress(file.tell(), size)
        yield row
