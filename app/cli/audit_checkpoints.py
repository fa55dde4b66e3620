"""`audit checkpoint`: what the log was up to a position, signed, for others to keep."""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import click

from app.bootstrap.container import Container
from app.cli.installation import installation, note_act
from app.cli.output import as_json_option, show, watched, written
from app.cli.rights import authorize
from app.security.checkpoint_keys import verify
from domain.errors import NotPossible
from projections.audit.auditor import LogCheck
from projections.audit.checkpoint import SignedCheckpoint, read_verifier_key
from projections.audit.report import Failure, Report
from projections.audit.tree import CompactRange
from projections.audit.witnesses import Claim, Claims, KeptLeaves, Witness
from projections.engine.rebuild import Progress
from workers.checkpoints import KeptCheckpoint, NotAccepted

NOTE = click.Path(path_type=Path, dir_okay=False, exists=True)
NOTES = click.Path(path_type=Path, exists=True)
OUT = click.Path(path_type=Path, dir_okay=False)


@click.command(name="checkpoint")
@click.option("--out", type=OUT, help="Write the note to this file.")
@as_json_option
def make_checkpoint(*, out: Path | None, as_json: bool) -> None:
    """Sign what the log is now, and print the note; it goes to CHECKPOINT_SINK, too.

    Events that a failover could still lose (CHECKPOINT_LAG_S) are left for the next one. Whoever
    keeps the note can convict anybody who changes the log before its position. A held copy brings
    it nowhere.
    """
    with installation() as container, watched("Hashing") as progress:
        actor = authorize(container)
        container.tree_keeper.catch_up(progress=progress)
        signed = sign(container, actor).signed
        try:
            if not container.rest.is_on:
                container.checkpoints.deliver()
        except NotAccepted as error:
            click.echo(f"Warning: {error}; the clock tries again", err=True)
    if out is not None:
        with written(out) as file:
            file.write(signed.note.encode())
    if out is not None or as_json:
        show(facts_of(signed), as_json=as_json)
    else:
        click.echo(signed.note, nl=False)


def sign(container: Container, actor: str) -> KeptCheckpoint:
    """Sign a checkpoint for an operator, whom an event names before anything is signed."""

    def note() -> None:
        note_act(container, "checkpoint.signed", f"position {container.log.head()}", actor)

    return container.checkpoints.make(note)


def facts_of(signed: SignedCheckpoint) -> dict[str, Any]:
    """Return a checkpoint as commands print it."""
    checkpoint = signed.checkpoint
    return {
        "position": checkpoint.position,
        "size": checkpoint.size,
        "root": checkpoint.root.hex(),
        "at": checkpoint.at,
        "key_id": signed.key_id,
        "signature": b64encode(signed.signatures[0].signature).decode(),
        "note": signed.note,
    }


@dataclass(frozen=True)
class Notes:
    """Checkpoints that somebody has kept, by the names of their files."""

    notes: Mapping[str, SignedCheckpoint]
    keys: Sequence[bytes]

    @classmethod
    def read(cls, paths: Iterable[Path], keys: Iterable[str]) -> Self:
        """Read files, and all files of directories; a wrong one ends the command."""
        files = [file for path in paths for file in _files(path)]
        return cls({str(file): read_note(file) for file in files}, [*map(public_key_of, keys)])

    def claims(self, container: Container, before: CompactRange | None = None) -> Claims:
        """Return what they claim, verified by the keys that were given and our own."""
        return Claims(
            [
                Claim(name, signed.checkpoint, fault_of(container, signed, self.keys, name))
                for name, signed in self.notes.items()
            ],
            before,
        )


def fault_of(
    container: Container, signed: SignedCheckpoint, given: Sequence[bytes], name: str
) -> str | None:
    """Say why no key of ours, nor one that was given, vouches for a checkpoint; None if one does.

    A revoked key vouches only where its verifier key was given, and that is said: whoever has
    stolen it can sign anything with any date.
    """
    ring = container.checkpoint_keys
    ended_at = ring.ended_at(signed.is_by)
    fault = signed.fault([*given, *(key.public_key for key in ring.live())], verify)
    if ended_at is None:
        return fault
    when = f"key {signed.key_id}, which signed it, was revoked on {ended_at:%Y-%m-%d}"
    if fault is None:
        click.echo(f"Warning: {name}: {when}: it proves only what was kept before", err=True)
        return None
    return f"{when}; if it was kept before, give that key with --key"


def check_behind(container: Container, note: Path, notes: Notes, progress: Progress) -> Report:
    """Check what came after a checkpoint, beginning with the tree that was kept of it.

    The checkpoint itself proves that tree, so nothing before its position has to be read.
    """
    signed = read_note(note)
    checkpoint, tree = signed.checkpoint, container.kept_tree
    if (fault := fault_of(container, signed, notes.keys, str(note))) is not None:
        message = f"{note}: {fault}"
        raise NotPossible(message)
    if older := [name for name, n in notes.notes.items() if n.checkpoint.size < checkpoint.size]:
        message = f"{older[0]}: --from begins behind it, so nothing would be held against it"
        raise NotPossible(message)
    with container.views.reading() as connection:
        size, _ = tree.end(connection)
        before = tree.range_of(connection, min(size, checkpoint.size))
    if (before.size, before.root()) != (checkpoint.size, checkpoint.root):
        reason = f"{note}: the kept tree is not the one that it signed; use --against"
        return Report(failures=[Failure(checkpoint.position, reason)])
    witnesses: list[Witness] = [
        KeptLeaves(container.views, tree, checkpoint.size),
        notes.claims(container, before),
    ]
    check = LogCheck(container.log, witnesses, checkpoint.position)
    while check.step():
        progress(check.report.position, check.goal)
    return check.report


def read_note(file: Path) -> SignedCheckpoint:
    """Read a checkpoint; an error names the file."""
    try:
        return SignedCheckpoint.read(file.read_text("utf-8"))
    except ValueError as error:
        message = f"{file}: {error}"
        raise click.ClickException(message) from error


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.iterdir() if file.is_file() and file.name[0] != ".")


def public_key_of(text: str) -> bytes:
    """Read a verifier key that was given as an option."""
    try:
        return read_verifier_key(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--key'") from error
