"""`audit prove` and `audit check`: one transaction, and its way to the root of a checkpoint."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import click
import msgspec

from app.bootstrap.container import Container
from app.cli.audit_checkpoints import NOTE, facts_of, public_key_of, sign
from app.cli.installation import installation
from app.cli.output import as_json_option, show, watched
from app.cli.rights import authorize
from app.http.accounts.replies import show_transaction
from app.security.checkpoint_keys import verify
from domain.errors import NotFound, NotPossible
from domain.log.log import Poisoned, Stored, decoded
from projections.audit.checkpoint import NotACheckpoint, SignedCheckpoint
from projections.audit.tree import leaf_hash, root_from_path
from projections.models.transactions import replayed
from workers.checkpoints import KeptCheckpoint

DENIED = "the log is not what its newest checkpoint says; see: python -m app audit verify"


class _Event(msgspec.Struct, forbid_unknown_fields=True):
    position: int
    stream: UUID
    version: int
    topic: str
    state: str

    def row(self) -> Stored:
        return Stored(self.position, self.stream, self.version, self.topic, self.state.encode())


class _Note(msgspec.Struct):
    note: str


class _Proof(msgspec.Struct, forbid_unknown_fields=True):
    """What `audit prove` prints."""

    transaction: dict[str, Any]
    event: _Event
    index: int
    path: list[str]
    checkpoint: _Note


class NoProof(Exception):
    """Raised with the reason for which a proof proves nothing."""


@click.command()
@click.argument("transaction_id", metavar="TRANSACTION", type=click.UUID)
@as_json_option
def prove(*, transaction_id: UUID, as_json: bool) -> None:  # noqa: ARG001  # A proof is JSON anyway.
    """Print, as JSON, what proves to anybody that a transaction is in the log as it is.

    It holds the transaction, the event that it comes from, and the path of that event to the root
    of the newest checkpoint. If that does not vouch for it one is made, which needs the right
    `audit` where there are operators.
    """
    with installation() as container, watched("Hashing") as progress:
        container.projector.catch_up()
        container.tree_keeper.catch_up(progress=progress)
        proof = _prove(container, transaction_id)
    show(proof, as_json=True)


def _prove(container: Container, transaction_id: UUID) -> Mapping[str, Any]:
    with container.views.reading() as connection:
        entry = container.transactions.of_any(connection, transaction_id)
        if entry is None:
            message = f"there is no transaction {transaction_id}"
            raise NotFound(message)
        index = container.kept_tree.index_of(connection, entry.position)
    row = container.log.stored(entry.position - 1, 1)[0]
    kept = _vouching(container, entry.position)
    checkpoint = kept.signed.checkpoint
    if index is None:
        raise NotPossible(DENIED)
    with container.views.reading() as connection:
        path = container.kept_tree.path(connection, index, checkpoint.size)
    if root_from_path(leaf_hash(*row), index, checkpoint.size, path) != checkpoint.root:
        raise NotPossible(DENIED)
    return {
        "transaction": msgspec.to_builtins(show_transaction(entry)),
        "event": {
            "position": row.position,
            "stream": str(row.stream_id),
            "version": row.version,
            "topic": row.topic,
            "state": row.state.decode(),
        },
        "index": index,
        "path": [node.hex() for node in path],
        "checkpoint": facts_of(kept.signed),
    }


def _vouching(container: Container, position: int) -> KeptCheckpoint:
    """Return the newest checkpoint if it covers a position; else sign one, which needs a right."""
    kept = container.checkpoint_store.newest()
    if (
        kept is None
        or kept.signed.checkpoint.position < position
        or container.checkpoint_keys.ended_at(kept.signed.is_by) is not None
    ):
        kept = sign(container, authorize(container, "audit"))
    if kept.signed.checkpoint.position < position:
        message = "the transaction is too new to be signed (CHECKPOINT_LAG_S); try again"
        raise NotPossible(message)
    return kept


@click.command()
@click.argument("proof", metavar="PROOF", type=NOTE)
@click.option("--key", multiple=True, help="A verifier key, as `keys list` has once printed it.")
@as_json_option
@click.pass_context
def check(context: click.Context, *, proof: Path, key: tuple[str, ...], as_json: bool) -> None:
    """Check a file that `audit prove` has printed; no database is needed.

    The transaction is derived from the event and compared, the event is followed to the root, and
    the root to the signature. Without --key it is one of our own keys that must have signed.
    """
    given = [public_key_of(each) for each in key]
    with installation(migrated=False) as container:
        keys = given or [each.public_key for each in container.checkpoint_keys.live()]
    try:
        reason = _checked(proof.read_bytes(), keys)
        ok = True
    except NoProof as error:
        reason, ok = str(error), False
    show({"ok": ok, "reason": reason}, as_json=as_json)
    if not ok:
        context.exit(1)


def _checked(content: bytes, keys: Sequence[bytes]) -> str:
    try:
        proof = msgspec.json.decode(content, type=_Proof)
        signed = SignedCheckpoint.read(proof.checkpoint.note)
        told = json.loads(content)
        path = [bytes.fromhex(node) for node in proof.path]
    except (msgspec.MsgspecError, NotACheckpoint, ValueError) as error:
        message = f"the file is no proof: {error}"
        raise NoProof(message) from error
    checkpoint, row = signed.checkpoint, proof.event.row()
    if (fault := signed.fault(keys, verify)) is not None:
        raise NoProof(fault)
    root = root_from_path(leaf_hash(*row), proof.index, checkpoint.size, path)
    if root != checkpoint.root or row.position > checkpoint.position:
        message = "the event does not lead to the root that was signed"
        raise NoProof(message)
    if json.loads(json.dumps(_plain(signed))) != told["checkpoint"]:
        message = "what is said of the checkpoint is not what its note says"
        raise NoProof(message)
    _compare(row, told["transaction"])
    at = f"{checkpoint.at:%Y-%m-%d %H:%M:%S} UTC"
    return f"position {row.position} of {checkpoint.origin}, signed {at} by key {signed.key_id}"


def _plain(signed: SignedCheckpoint) -> Mapping[str, Any]:
    facts = facts_of(signed)
    *_, time = signed.checkpoint.text().split()
    return {**facts, "at": time}


def _compare(row: Stored, told: Mapping[str, Any]) -> None:
    """Derive the transaction from its event; raises NoProof if the file says otherwise.

    The reason of an older refund stands in another event, so it is not proved, nor compared.
    """
    try:
        entries = [entry for entry, _ in replayed([decoded(row)])]
    except Poisoned as error:
        raise NoProof(str(error)) from error
    if len(entries) != 1:
        message = f"a {row.topic} is no transaction"
        raise NoProof(message)
    derived = json.loads(msgspec.json.encode(show_transaction(entries[0])))
    unproved = {"reason"} if derived.get("refund_of") and "reason" not in derived else set()
    for name in sorted(derived.keys() | told.keys()):
        values = [json.dumps(each.get(name), sort_keys=True) for each in (derived, told)]
        if name not in unproved and values[0] != values[1]:  # As text, because 1 == 1.0 == True.
            message = f"{name} of the transaction is not what its event says"
            raise NoProof(message)
