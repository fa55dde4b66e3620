"""Backs up an installation into a directory, and restores it from there.

A backup holds the log with the keys of personal data, the own stores, and the directory
SIGNING_KEYS with the pepper. It holds no read models, because they are built from the log. On
PostgreSQL the server's own program copies the database; the backup then holds the keys, and the
position that the dump must contain.
"""

import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Literal

import msgspec
from eventsourcing.utils import TopicError

from app.bootstrap.container import Container
from app.bootstrap.gate import HELD
from app.bootstrap.shared_settings import COPIED
from app.processes.migrate import migrate, newer_tables, table_versions
from app.security.key_file import locked, sync, write_file
from app.security.keys import PEPPER, WEBHOOK_KEY, fingerprint
from domain.errors import ForOperator
from domain.log.aggregate import Event, class_of
from domain.log.log import Log
from projections.audit.auditor import verify as audit
from projections.audit.report import Report
from projections.engine.rebuild import Progress, ignore_progress

MANIFEST = "manifest.json"  # Written last: a directory without it is no backup.
KEYS = "keys"
DATABASE, SIGNING = "DATABASE_URL", "SIGNING_KEYS"
Subject = Literal["pepper", "signing_keys", "webhook_key"]
OTHER_PEPPER = "SECRET_PEPPER is not that of the backup: until it is, client secrets are refused"
FORMAT = 1  # Raise it when older releases must not read new backups.


class NoBackup(ForOperator):
    """Raised with one line that says where something cannot be written or restored, and why."""

    def __init__(self, where: object, why: str) -> None:
        super().__init__(f"{where}: {why}")


class File(msgspec.Struct, frozen=True):
    """A file of a backup: its size in bytes and its SHA-256."""

    size: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup holds. A restore compares the event at `position` with the restored log.

    `secret_pepper` is the fingerprint of SECRET_PEPPER; None if the pepper is a file of the keys.
    """

    format: int = FORMAT
    made_at: datetime
    engine: Literal["sqlite", "postgresql"]
    position: int
    stream_id: str
    stream_version: int
    state_sha256: str
    tables: dict[str, int]
    secret_pepper: str | None
    files: dict[str, File]


@contextmanager
def _readable_errors(container: Container) -> Iterator[None]:
    persistence = container.persistence
    try:
        yield
    except persistence.error as error:
        reason = str(error).partition("\n")[0]
        raise NoBackup(DATABASE, f"cannot use {persistence.location}: {reason}") from error


def back_up(container: Container, directory: Path) -> Manifest:
    """Make a backup, complete or not at all; the service may run meanwhile."""
    directory = directory.absolute()
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise NoBackup(directory, "is not empty; name a directory that does not exist yet")
    if not container.persistence.exists():
        raise NoBackup(DATABASE, f"there is no {container.persistence.location}")
    directory.parent.mkdir(parents=True, exist_ok=True)
    name = f"{directory.name}.unfinished-"
    draft = Path(tempfile.mkdtemp(prefix=name, dir=directory.parent))  # Only for us: mode 0700.
    try:
        with _readable_errors(container):
            manifest = _fill(container, draft)
        draft.rename(directory)
        sync(directory.parent)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return manifest


def _fill(container: Container, draft: Path) -> Manifest:
    end = container.persistence.copy_to(draft)
    _copy_keys(container, draft / KEYS)
    files = [file for file in sorted(draft.rglob("*")) if file.is_file()]
    manifest = Manifest(
        made_at=container.clock(),
        engine=_engine(container),
        **end._asdict(),
        tables=table_versions(container),
        secret_pepper=_fingerprint(container),
        files={str(file.relative_to(draft)): _seal(file) for file in files},
    )
    write_file(draft / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")
    sync(draft / KEYS)
    sync(draft)
    return manifest


def _copy_keys(container: Container, target: Path) -> None:
    """Copy the keys; refuse a directory that lacks keys which this installation has used."""
    settings = container.settings
    target.mkdir(mode=0o700)
    if settings.signing_keys.is_dir():
        with locked(settings.signing_keys):
            # Not what is below it, which may be backups.
            for file in settings.signing_keys.glob("[!.]*"):
                if file.is_file():
                    write_file(target / file.name, file.read_bytes())
    has_pepper = bool(settings.secret_pepper) or any(target.glob(f"{PEPPER}*"))
    copies: list[tuple[str, Subject, bool]] = [
        ("signing key", "signing_keys", any(target.glob("*.pem"))),
        (PEPPER, "pepper", has_pepper),
        (WEBHOOK_KEY, "webhook_key", any(target.glob(f"{WEBHOOK_KEY}*"))),
    ]
    for missing, subject, is_there in copies:
        if not is_there and container.notes.newest(subject) is not None:
            why = f"{settings.signing_keys}: holds no {missing}, which is in use"
            raise NoBackup(SIGNING, why)


def restore(
    container: Container, directory: Path, progress: Progress = ignore_progress
) -> tuple[Report | None, list[str]]:
    """Restore a backup into an empty place and check it; raises NoBackup before writing.

    Returns the report and warnings; without a report an operator must still restore the database.
    """
    manifest = read_backup(directory)
    persistence, settings = container.persistence, container.settings
    _require_fit(container, directory, manifest)
    targets = {SIGNING: settings.signing_keys}
    targets |= {DATABASE: settings.database_path} if settings.is_on_files else {}
    for setting, target in targets.items():
        if target.resolve().is_relative_to(directory.resolve()):
            raise NoBackup(setting, f"{target} is in the backup; restore into another place")
    if (name := persistence.occupied()) is not None:
        raise NoBackup(DATABASE, f"{name} is there already; restore into an empty place")
    _put_keys_back(manifest, directory, container.settings.signing_keys)
    warnings = [] if manifest.secret_pepper == _fingerprint(container) else [OTHER_PEPPER]
    with _readable_errors(container):
        if not persistence.put_back(directory):
            return None, warnings
        container.notes.replace("hold", HELD, container.clock())  # Or who is killed leaves it free.
    if not _has_last_event(container.log, manifest):
        why = f"the log is not that of the backup, or ends before position {manifest.position}"
        raise NoBackup(persistence.location, why)
    migrate(container, progress)
    container.notes.replace("backup", str(manifest.position), manifest.made_at)
    shared = container.shared_settings.recorded()
    copied = {name: value for name, value in shared.items() if name in COPIED}
    container.shared_settings.record(copied, container.clock())
    witnesses = container.witnesses()  # The backup has our checkpoints.
    return audit(container.source, container.models, progress, witnesses), warnings


def read_backup(directory: Path) -> Manifest:
    """Return what a backup holds, if every file is there as it was written."""
    try:
        text = (directory / MANIFEST).read_bytes()
        known = msgspec.json.decode(text).get("format")
        if isinstance(known, int) and known > FORMAT:
            raise _newer(directory, f"the format {known}")
        manifest = msgspec.json.decode(text, type=Manifest)
    except FileNotFoundError:
        why = f"is no backup, or an unfinished one: it has no {MANIFEST}"
        raise NoBackup(directory, why) from None
    except (msgspec.MsgspecError, AttributeError):
        raise NoBackup(directory, f"its {MANIFEST} cannot be read") from None
    for name, file in manifest.files.items():
        path = directory / name
        if not path.is_file() or _seal(path) != file:
            raise NoBackup(path, "is missing or not as it was written; use another backup")
    return manifest


def _require_fit(container: Container, directory: Path, manifest: Manifest) -> None:
    """Refuse a backup of the other database system or of a newer release."""
    if manifest.engine != _engine(container):
        raise NoBackup(DATABASE, f"{directory} is a backup of {manifest.engine}")
    for name in newer_tables(container, manifest.tables):
        raise _newer(directory, f"its tables of {name}")
    with _readable_errors(container):
        topics = container.persistence.topics(directory)
    for topic in topics:
        try:
            class_of(topic, Event)
        except TopicError:
            raise _newer(directory, f"the event {topic}") from None


def _newer(directory: Path, what: str) -> NoBackup:
    return NoBackup(directory, f"a newer release has made it: this one does not know {what}")


def _put_keys_back(manifest: Manifest, directory: Path, target: Path) -> None:
    """Write the keys; keys that exist already must be the same."""
    names = [Path(name).name for name in manifest.files if Path(name).parent == Path(KEYS)]
    for path in sorted(target.glob("[!.]*")):
        copy = directory / KEYS / path.name
        if path.name not in names or copy.read_bytes() != path.read_bytes():
            why = f"{path} is there already; restore into an empty place"
            raise NoBackup(SIGNING, why)
    with locked(target):
        for name in names:
            write_file(target / name, (directory / KEYS / name).read_bytes())


def _fingerprint(container: Container) -> str | None:
    pepper = container.settings.secret_pepper
    return fingerprint(pepper.encode()) if pepper else None


def _has_last_event(log: Log, manifest: Manifest) -> bool:
    if manifest.position == 0:
        return True
    at = manifest.position
    found = log.recorder.select_notifications(at, 1, stop=at)
    if not found:
        return False
    event, expected = found[0], (manifest.stream_id, manifest.stream_version, manifest.state_sha256)
    digest = hashlib.sha256(event.state).hexdigest()
    return (str(event.originator_id), event.originator_version, digest) == expected


def _engine(container: Container) -> Literal["sqlite", "postgresql"]:
    return "sqlite" if container.settings.is_on_files else "postgresql"


def _seal(path: Path) -> File:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
    return File(path.stat().st_size, digest.hexdigest())
