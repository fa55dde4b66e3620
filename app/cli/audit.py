"""The commands of `audit` that check the log: audits, checkpoints, proofs, and imports."""

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Self
from uuid import UUID

import click
import msgspec

from app.bootstrap.container import Container
from app.cli.arguments import id_argument, out_option
from app.cli.books import audit, books
from app.cli.operation import misuse
from app.cli.output import Said, in_json, warn, written
from app.cli.root import one_line
from app.cli.session import Session
from app.processes.importing import import_log
from app.security.checkpoint_keys import verify as verify_signature
from domain.errors import refuse
from domain.log.log import Poisoned, Stored, decoded
from projections.audit.auditor import check_log
from projections.audit.auditor import verify as audit_log
from projections.audit.checkpoint import NotACheckpoint, SignedCheckpoint, read_verifier_key
from projections.audit.report import Failure, Report
from projections.audit.tree import CompactRange, leaf_hash, root_from_path
from projections.audit.witnesses import Claim, Claims, StoredLeaves, Witness
from projections.engine.rebuild import Progress
from projections.engine.shape import pick
from projections.models.transactions import replayed
from projections.stores.checkpoints import StoredCheckpoint
from workers.checkpoints import NotAccepted

NOTE = click.Path(path_type=Path, dir_okay=False, exists=True)
NOTES = click.Path(path_type=Path, exists=True)
DENIED = "the log is not what its newest checkpoint says; see: python -m app audit verify"

subject = books

key_option = click.option(
    "--key", multiple=True, help="A verifier key, as `keys list` has once printed it."
)


@audit.command("verify", right=None, on="any log")
@click.option(
    "--against",
    multiple=True,
    type=NOTES,
    help="A checkpoint that somebody has kept, or a directory of them; more may follow.",
)
@click.option(
    "--from", "trusted", type=NOTE, help="Begin behind a checkpoint; what is before is trusted."
)
@key_option
@click.argument("more", nargs=-1, type=NOTES, metavar="[CHECKPOINT]...")
def verify(
    session: Session,
    *,
    against: tuple[Path, ...],
    trusted: Path | None,
    key: tuple[str, ...],
    more: tuple[Path, ...],
) -> Said:
    """Check the whole log, every invariant, and that every read model equals its rebuild.

    Also that each event is what it was when it was first seen, and each checkpoint that was signed
    here. --against recomputes the tree from the first event and holds it against checkpoints
    that others have kept: it names the first that fails, and the range back to the last that
    holds, and the newest events that none of them covers. --from begins behind one, and then checks
    order, kept events and later checkpoints only.

    Exits with 1 when something is wrong, and names the first positions that fail.
    """
    if more and not against:
        misuse("checkpoints are given after --against")
    if key and not (against or trusted):
        misuse("--key is given with --against or --from")
    notes = Notes.read([*against, *more], key)
    # The audit itself reports a log that was cut short, so `any log` is audited.
    container, progress = session.container, session.watch("Checking")
    if trusted is not None:
        report = check_behind(container, trusted, notes, progress)
    else:
        container.projector.catch_up()
        witnesses = [*container.witnesses(), notes.claims(container)]
        report = audit_log(container.source, container.models, progress, witnesses)
    session.ok = report.ok
    names, behind = "ok events position leaves trusted explained", report.trusted or None
    facts = pick(names, report, trusted=behind)
    lists = pick("losses failures checkpoints uncovered", report)
    return Said({**facts, **lists}, [facts, *_in_words(report)])


def _in_words(report: Report) -> Iterator[str]:
    """Say what the figures do not."""
    if report.trusted:
        yield f"Nothing up to position {report.trusted} was looked at: the checkpoint is trusted."
    for verdict in report.checkpoints:
        yield one_line(f"{verdict.name}: {'holds' if verdict.holds else verdict.reason}")
    if report.uncovered is not None and report.uncovered.events:
        behind, (events, first, last) = "no given checkpoint covers", astuple(report.uncovered)
        yield f"{behind} the newest {events} events, positions {first} to {last}"
    for loss in report.losses:
        yield one_line(f"known loss, position {loss.position}: {loss.reason}")
    if report.explained:
        count = report.explained
        rest = "1 checkpoint rests" if count == 1 else f"{count} checkpoints rest"
        yield (
            f"{rest} on the word of the log alone, which says that events were lost: "
            "ask operations about each loss."
        )
    for failure in report.failures:
        yield one_line(f"position {failure.position}: {failure.reason}")


@audit.command("checkpoint", right="audit")  # It signs.
@out_option("Write the note to this file.")
def make_checkpoint(session: Session, out: Path | None) -> Said | Mapping[str, Any]:
    """Sign what the log is now, and print the note; it goes to CHECKPOINT_SINK, too.

    Events that a failover could still lose (CHECKPOINT_LAG_S) are left for the next one. Whoever
    keeps the note can convict anybody who changes the log before its position. A held copy brings
    it nowhere.
    """
    container = session.container
    container.tree_builder.catch_up(progress=session.watch("Hashing"))
    signed = _sign(session).signed
    try:
        if not container.gate.is_shut():
            container.checkpoints.deliver()
    except NotAccepted as error:
        warn(f"{error}; the clock tries again")
    if out is None:
        return Said(facts_of(signed), [signed.note.removesuffix("\n")])
    with written(out) as file:
        file.write(signed.note.encode())
    return facts_of(signed)


def _sign(session: Session) -> StoredCheckpoint:
    """Sign a checkpoint for an operator, whom an event names before anything is signed."""
    log = session.container.log
    return session.container.checkpoints.make(
        lambda: session.record_act("checkpoint.signed", f"position {log.head()}")
    )


def facts_of(signed: SignedCheckpoint) -> dict[str, Any]:
    """Return a checkpoint as commands print it."""
    checkpoint, names = signed.checkpoint, "position size root at key_id signature note"
    signature = b64encode(signed.signatures[0].signature).decode()
    return pick(names, checkpoint, signed, root=checkpoint.root.hex(), signature=signature)


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
        claims = [
            Claim(name, signed.checkpoint, fault_of(container, signed, self.keys, name))
            for name, signed in self.notes.items()
        ]
        return Claims(claims, before)


def fault_of(
    container: Container, signed: SignedCheckpoint, given: Sequence[bytes], name: str
) -> str | None:
    """Say why no key of ours, nor one that was given, vouches for a checkpoint; None if one does.

    A revoked key vouches only where its verifier key was given, and that is said: whoever has
    stolen it can sign anything with any date.
    """
    keys = container.checkpoint_keys
    ended_at = keys.ended_at(signed.is_by)
    fault = signed.fault([*given, *(key.public_key for key in keys.live())], verify_signature)
    if ended_at is None:
        return fault
    when = f"key {signed.key_id}, which signed it, was revoked on {ended_at:%Y-%m-%d}"
    if fault is None:
        warn(f"{name}: {when}: it proves only what was kept before")
        return None
    return f"{when}; if it was kept before, give that key with --key"


def check_behind(container: Container, note: Path, notes: Notes, progress: Progress) -> Report:
    """Check what came after a checkpoint, beginning with the tree that was kept of it.

    The checkpoint itself proves that tree, so nothing before its position has to be read.
    """
    signed = read_note(note)
    checkpoint, tree = signed.checkpoint, container.stored_tree
    if (fault := fault_of(container, signed, notes.keys, str(note))) is not None:
        refuse(f"{note}: {fault}")
    if older := [name for name, n in notes.notes.items() if n.checkpoint.size < checkpoint.size]:
        refuse(f"{older[0]}: --from begins behind it, so nothing would be held against it")
    with container.views.reading() as connection:
        size, _ = tree.end(connection)
        before = tree.range_of(connection, min(size, checkpoint.size))
    if (before.size, before.root()) != (checkpoint.size, checkpoint.root):
        reason = f"{note}: the kept tree is not the one that it signed; use --against"
        return Report(failures=[Failure(checkpoint.position, reason)])
    witnesses: list[Witness] = [
        StoredLeaves(container.views, tree, checkpoint.size),
        notes.claims(container, before),
    ]
    return check_log(container.log, progress, witnesses, checkpoint.position)


def read_note(file: Path) -> SignedCheckpoint:
    """Read a checkpoint; an error names the file."""
    try:
        return SignedCheckpoint.read(file.read_text("utf-8"))
    except ValueError as error:
        raise click.ClickException(f"{file}: {error}") from error


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(file for file in path.iterdir() if file.is_file() and file.name[0] != ".")
    if not found:  # As where a mount is missing.
        raise click.ClickException(f"{path}: holds no checkpoint")
    return found


def public_key_of(text: str) -> bytes:
    """Read a verifier key that was given as an option."""
    try:
        return read_verifier_key(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--key'") from error


class _Event(msgspec.Struct, forbid_unknown_fields=True):
    position: int
    stream: UUID
    version: int
    topic: str
    state: str

    def row(self) -> Stored:
        return Stored(self.position, self.stream, self.version, self.topic, self.state.encode())


class _Proof(msgspec.Struct, forbid_unknown_fields=True):
    """What `audit prove` prints."""

    transaction: dict[str, Any]
    event: _Event
    index: int
    path: list[str]
    checkpoint: dict[str, Any]


class NoProof(Exception):
    """Raised with the reason for which a proof proves nothing."""


@audit.command("prove", right=None)  # It asks for `audit` itself where it has to sign.
@id_argument("transaction_id", "TRANSACTION")
def prove(session: Session, transaction_id: UUID) -> Said:
    """Print, as JSON, what proves to anybody that a transaction is in the log as it is.

    It holds the transaction, the event that it comes from, and the path of that event to the root
    of the newest checkpoint. If that does not vouch for it one is made, which needs the right
    `audit` where there are operators.
    """
    container = session.container
    progress = session.watch("Hashing")
    container.projector.catch_up()
    container.tree_builder.catch_up(progress=progress)
    with container.views.reading() as connection:
        entry = container.transactions.get(connection, transaction_id)
        if entry is None:
            refuse(f"there is no transaction {transaction_id}")
        index = container.stored_tree.index_of(connection, entry.position)
    row = container.log.stored(entry.position - 1, 1)[0]
    stored = _vouching(session, entry.position)
    checkpoint = stored.signed.checkpoint
    if index is None:
        refuse(DENIED)
    path = container.views.read(container.stored_tree.path, index, checkpoint.size)
    if root_from_path(leaf_hash(*row), index, checkpoint.size, path) != checkpoint.root:
        refuse(DENIED)
    proof = {
        "transaction": msgspec.to_builtins(entry),
        "event": msgspec.to_builtins(_Event(*row[:4], row.state.decode())),
        "index": index,
        "path": [node.hex() for node in path],
        "checkpoint": facts_of(stored.signed),
    }
    return Said(proof, [in_json(proof)])


def _vouching(session: Session, position: int) -> StoredCheckpoint:
    """Return the newest checkpoint if it covers a position; else sign one, which needs a right."""
    container = session.container
    stored = container.checkpoint_store.newest()
    if (
        stored is None
        or stored.signed.checkpoint.position < position
        or container.checkpoint_keys.ended_at(stored.signed.is_by) is not None
    ):
        session.require("audit")
        stored = _sign(session)
    if stored.signed.checkpoint.position < position:
        refuse("the transaction is too new to be signed (CHECKPOINT_LAG_S); try again")
    return stored


@audit.command("check", right=None, on="anything")
@click.argument("proof", metavar="PROOF", type=NOTE)
@key_option
def check(session: Session, proof: Path, key: tuple[str, ...]) -> Mapping[str, Any]:
    """Check a file that `audit prove` has printed; no database is needed.

    The transaction is derived from the event and compared, the event is followed to the root, and
    the root to the signature. Without --key it is one of our own keys that must have signed.
    """
    given = [public_key_of(each) for each in key]
    container = session.container
    keys = given or [each.public_key for each in container.checkpoint_keys.live()]
    try:
        reason = _checked(proof, keys)
    except NoProof as error:
        reason, session.ok = str(error), False
    return {"ok": session.ok, "reason": reason}


def _checked(file: Path, keys: Sequence[bytes]) -> str:
    content = file.read_bytes()
    try:
        proof = msgspec.json.decode(content, type=_Proof)
        signed = SignedCheckpoint.read(str(proof.checkpoint.get("note")))
        given = json.loads(content)
        path = [bytes.fromhex(node) for node in proof.path]
    except (msgspec.MsgspecError, NotACheckpoint, ValueError) as error:
        raise NoProof(f"{file}: is no proof: {error}") from error
    checkpoint, row = signed.checkpoint, proof.event.row()
    if (fault := signed.fault(keys, verify_signature)) is not None:
        raise NoProof(fault)
    root = root_from_path(leaf_hash(*row), proof.index, checkpoint.size, path)
    if root != checkpoint.root or row.position > checkpoint.position:
        raise NoProof("the event does not lead to the root that was signed")
    *_, time = checkpoint.text().split()
    if json.loads(json.dumps({**facts_of(signed), "at": time})) != given["checkpoint"]:
        raise NoProof("what is said of the checkpoint is not what its note says")
    _compare(row, given["transaction"])
    at = f"{checkpoint.at:%Y-%m-%d %H:%M:%S} UTC"
    return f"position {row.position} of {checkpoint.origin}, signed {at} by key {signed.key_id}"


def _compare(row: Stored, stated: Mapping[str, Any]) -> None:
    """Derive the transaction from its event; raises NoProof if the file says otherwise.

    The reason of an older refund stands in another event, so it is not proved, nor compared.
    """
    try:
        entries = [each.entry for each in replayed([decoded(row)])]
    except Poisoned as error:
        raise NoProof(str(error)) from error
    if len(entries) != 1:
        raise NoProof(f"a {row.topic} is no transaction")
    derived = json.loads(msgspec.json.encode(entries[0]))
    unproved = {"reason"} if derived.get("refund_of") and "reason" not in derived else set()
    for name in sorted(derived.keys() | stated.keys()):
        values = [json.dumps(each.get(name), sort_keys=True) for each in (derived, stated)]
        if name not in unproved and values[0] != values[1]:  # As text, because 1 == 1.0 == True.
            raise NoProof(f"{name} of the transaction is not what its event says")


@audit.command("import", right=None, on="anything")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--checkpoints", type=NOTES, help="A checkpoint that was kept, or a directory of them."
)
@key_option
def import_file(
    session: Session, file: Path, *, checkpoints: Path | None, key: tuple[str, ...]
) -> Said:
    """Make an installation of an export, in the empty place that the settings name, and check it.

    All of the log or nothing: a part, or a line that is not as it was exported, is refused. Exits
    with 1 when the log breaks an invariant, as `audit verify` does.

    With --checkpoints final statements keep their checkpoint. One that is not of this log is
    refused, and with --key one that no given key has signed.
    """
    if key and not checkpoints:
        misuse("--key is given with --checkpoints")
    container, saved = session.container, Notes.read([checkpoints] if checkpoints else [], key)
    report = import_log(container, file, session.watch("Importing"), saved.notes, saved.keys)
    for name, each in saved.notes.items():
        if each.checkpoint.position > report.position:
            warn(f"{name}: signs events behind the end of the export, and was left out")
    session.ok = report.ok
    facts = pick("ok events position", report)
    return Said({**facts, "failures": report.failures}, [facts])
