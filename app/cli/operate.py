"""What operators do with an installation as a whole: its keys, followers and copies."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, get_args
from uuid import UUID

import click
from sqlalchemy.exc import SQLAlchemyError

from app.bootstrap.container import Container
from app.bootstrap.known_keys import active_clients, active_endpoints
from app.cli.arguments import MONTH, org_option
from app.cli.links import IDENTIFIER, load_link
from app.cli.operation import Subject, misuse
from app.cli.output import Said, warn
from app.cli.root import one_line
from app.cli.session import Session, has_log
from app.processes import erasing, redo
from app.processes.backup import back_up, restore
from app.processes.capacity import Use, capacity, in_mb
from app.processes.doctor import examine
from app.processes.erasing import Wanted, erase
from app.processes.readiness import what_is_missing
from app.processes.redo import Undone
from app.security.key_file import KINDS, Kind, SigningKeysError
from app.security.key_store import KeyStore, ListedKey
from domain.errors import NotPossible, refuse
from domain.months import first_instant, month_of, next_month
from projections.audit.checkpoint import key_id_of, verifier_key
from projections.audit.report import Report
from projections.audit.tree_builder import TreeBuilder
from projections.engine.positions import Lag, lags
from projections.engine.read_model import ReadModel
from projections.engine.rebuild import rebuild_all
from projections.engine.shape import pick

TREE = TreeBuilder.name
Row = dict[str, Any]
Choice = Literal["before", "number", "link", "lookup", "job"]

SAID: Mapping[Kind, str] = {
    "signing": "Every token that it has signed is refused: {clients} clients need new tokens.",
    "pepper": "What was not used since the last renewal ends: secrets of {clients} clients, keys "
    "of {operators} operators.",
    "webhooks": "{endpoints} endpoints are told nothing until their secrets are rotated; what they "
    "would be told waits.",
    "checkpoints": "Its notes prove nothing any more, except what others kept before it leaked.",
}
DONE_AGAIN = (
    "It acts within seconds. Webhooks go on where the copy was made; where their position was not "
    "copied, events of the last 72 hours are told again, with the same ids."
)
HELD = (
    "The copy is held: it acts on nothing. If it takes the place of the installation, run: "
    "python -m app installation hold --end"
)
REDO = "Was erased, revoked or rotated after this copy of the log was made; do it again:"
NO_LIST = (
    "Do again what was erased, revoked or rotated after this copy was made: no list of it was kept "
    "(REDO_DIR)."
)
AGAIN = "The keys are in place. Now restore the database, then run this command again:"

subject = Subject()
keys = subject.add("keys")
projections = subject.add("projections")
privacy = subject.add("privacy")
installation = subject.add(
    "installation",
    """A held copy answers reads and audits. It tells no webhook, calls no network, brings no
    checkpoint, closes no month and charges nothing. What `restore` made is held.""",
)

directory_argument = click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))


@keys.command("rotate", right="keys", on="anything")
@click.argument("kind", metavar="[KIND]", type=click.Choice(KINDS), default="signing")
def rotate(session: Session, kind: Kind) -> Row:
    """Use a new key from now on: signing, pepper, webhooks or checkpoints.

    The keys before it go on with what they were used for: an older signing key verifies until its
    last token has expired, a pepper until each secret was used once more, a key of webhooks until
    each secret was rotated, a key of checkpoints for ever. Tell those who keep checkpoints of the
    new one.
    """
    return _renew(session, kind)


@keys.command("revoke", right="keys")
@click.argument("key", metavar="KEY")
@click.option("--yes", is_flag=True, help="Do not ask again.")
def revoke(session: Session, key: str, *, yes: bool) -> Row:
    """End a key that has leaked, for all processes within seconds; KEY is its id in `keys list`.

    What ends with it is said before. If it is the newest of its kind, a new one is made first.
    """
    container = session.container
    session.catch_up()
    *_, row = _load_key(container, key)
    kind, kid = row["kind"], row["kid"]
    ends = _ends(container, kind, kid, session.actor())
    if not yes:
        said = SAID[kind].format(**{name: len(each) for name, each in ends.items()})
        click.echo(f"Key {kid} ({kind}). {said}", err=True)
        if not click.confirm("Revoke it?", err=True):
            refuse("nothing was revoked")
    session.new_cause()
    store, key_id, row = _load_key(container, key)  # Others may have written until now.
    if row["state"] in {"signing", "newest"}:
        _renew(session, kind)
    if row["state"] != "revoked":  # Else it was killed, and its file is left.
        # It authorizes again, so that their key is under the newest pepper; first, for REDO_DIR.
        session.record_act("key.revoked", f"{kind} {kid}")
    store.revoke(key_id)
    return {**row, "state": "revoked", **ends}


@keys.command("list", right=None, on="anything")
def list_keys(session: Session) -> list[Row]:
    """List the keys by kind, the revoked ones first, then the others, oldest first.

    `verifier` is what tools of signed notes take to verify a checkpoint: give it to its keepers.
    """
    container = session.container
    if not container.settings.signing_keys.is_dir():
        raise SigningKeysError(container.settings.signing_keys, "is no directory")
    return [_key(container, key) for keys in container.key_stores.values() for key in keys.list()]


def _renew(session: Session, kind: Kind) -> Row:
    """Make a new key; without a log nobody keeps who did it."""
    container = session.container
    if known := has_log(container):
        session.new_cause()  # Its lock first, as elsewhere, then that of the directory.

    def record(made: str) -> None:
        if known:
            kid = _key(container, ListedKey(kind, made, None, None, "newest"))["kid"]
            session.record_act("key.renewed", f"{kind} {kid}")

    made = (store := container.key_stores[kind]).rotate(record)
    return next(_key(container, each) for each in store.list() if each.kid == made)


def _key(container: Container, key: ListedKey) -> Row:
    row = {**asdict(key), "verifier": None}
    if key.kind == "checkpoints":  # Its id depends on the name under which it signs.
        known = has_log(container)
        origin = container.checkpoints.origin() if known else container.settings.checkpoint_origin
        public_key = bytes.fromhex(key.kid)
        row["kid"] = key_id_of(origin, public_key).hex()
        row["verifier"] = verifier_key(origin, public_key)
    return row


def _load_key(container: Container, kid: str) -> tuple[KeyStore[Any], str, Row]:
    """Return a key that is not revoked, or still has its file: its store, its id there, its row."""
    for store in container.key_stores.values():
        for each in store.list():
            row = _key(container, each)
            if row["kid"] == kid and (each.state != "revoked" or store.files_of(each.kid)):
                return store, each.kid, row
    raise NotPossible(f"there is no key {kid}, or it is revoked; see: python -m app keys list")


def _ends(container: Container, kind: Kind, kid: str, actor: str | None) -> dict[str, list[str]]:
    """Return what ends with a key; the actor's own key is kept under another pepper."""
    if kind == "signing":
        return {"clients": [each.client_id for each in active_clients(container)]}
    if kind == "pepper":
        pepper_id, operators = container.secret_hasher.pepper_id, container.operators.all()
        return {
            "clients": [
                each.client_id
                for each in active_clients(container)
                if kid in map(pepper_id, each.hashes_at(container.clock()))
            ],
            "operators": [
                each.name
                for each in operators
                if not each.revoked and each.actor != actor and pepper_id(each.key_hash) == kid
            ],
        }
    if kind == "webhooks":
        found = container.webhook_key.get
        keys = [(each, found(each.secrets[-1].key_id)) for each in active_endpoints(container)]
        return {"endpoints": [str(each.id) for each, key in keys if key and key.id == kid]}
    return {}


@projections.command("status", right=None)
def status(session: Session) -> list[Lag]:
    """Show how far each follower of the log has come, and why one has stopped."""
    return lags(session.container.source)


# The tree is evidence against a changed log.
@projections.command("rebuild", right="audit", when=lambda given: given["name"] == TREE)
@click.argument("name", required=False, metavar="[NAME]")
@click.option("--all", "everything", is_flag=True, help="Every read model; the log is read once.")
def rebuild(session: Session, name: str | None, *, everything: bool) -> list[Row]:
    """Rebuild a read model from the log, while the service runs.

    `audit_tree` forgets what the auditor has kept of each event and takes the log as it is now;
    with operators it needs the right `audit`, and `operator list --acts` tells it.
    """
    if (name is not None) == everything:
        misuse("give either the NAME of a read model or --all")
    container = session.container
    if name == TREE:
        session.record_act("tree.rebuilt", f"position {container.log.head()}")
        container.operators_lock.release()  # Others need not wait for a long log.
        reached = {TREE: container.tree_builder.restart(session.watch("Hashing"))}
    else:
        models = _models(container, name)
        what = models[0].name if len(models) == 1 else "all read models"
        progress = session.watch(f"Building {what}")
        reached = rebuild_all(container.source, models, progress)
    return [{"name": name, "position": position} for name, position in reached.items()]


def _models(container: Container, name: str | None) -> list[ReadModel]:
    models = {model.name: model for model in container.models}
    if name is None:
        return [*models.values()]
    if name not in models:
        message = f"{name!r} is none of: {', '.join([*models, TREE])}"
        raise click.BadParameter(message, param_hint="'NAME'")
    return [models[name]]


@privacy.command("erase", right="keys")  # It deletes the keys of personal data.
@click.option("--before", type=MONTH, help="All months before this one, the present one too.")
@click.option("--number", metavar="E164", help="What holds this number; needs --org.")
@click.option("--link", type=IDENTIFIER, help="Names and activation codes of this link.")
@click.option("--lookup", type=click.UUID, metavar="ID", help="This lookup.")
@click.option("--job", type=click.UUID, metavar="ID", help="All numbers and results of this job.")
@org_option("Of this organization only.")
@click.option(
    "--whole-months",
    is_flag=True,
    help="Erase all of a month of the organization where an earlier release sealed it as one.",
)
@click.option("--dry-run", is_flag=True, help="Only list what goes.")
def erase_data(
    session: Session,
    *,
    organization_id: UUID | None,
    whole_months: bool,
    dry_run: bool,
    **given: Any,
) -> list[Row] | Row:
    """Make numbers, results, activation codes and names of links unreadable for ever.

    Jobs and lookups then answer 404; money stays. This cannot be undone, except from a copy of the
    keys. Names of links that earlier releases wrote stand in the log in clear, and stay there.
    """
    chosen, before = _chosen(given, organization_id), given["before"]
    container = session.container
    session.require_organization(organization_id)
    if before is not None and not dry_run:
        session.cause  # noqa: B018  # Or what is refused would have made new keys.
    found = _read_erased(container, chosen, given[chosen], organization_id, anew=not dry_run)
    if whole_months:
        for each in found:
            each.add_whole_months()
    if dry_run:
        return [*_pieces(found)]
    _require_separable(found)
    until = None if before is None else first_instant(before)
    erased_keys, forgotten = erase(container, found, session.cause, until, organization_id)
    facts = {"organization": organization_id, "erased_keys": erased_keys}
    in_clear = {"names_in_clear": sum(each.names_in_clear for each in found)}
    said: Row = in_clear if before is None else {"before": before}
    return {**said, **facts, "forgotten_answers": forgotten}


def _chosen(given: dict[str, Any], organization_id: UUID | None) -> Choice:
    from app.http.lookups.input import is_e164  # noqa: PLC0415  # Only this loads Flask.

    chosen: list[Choice] = [name for name in get_args(Choice) if given[name] is not None]
    if len(chosen) != 1 or (chosen == ["number"] and organization_id is None):
        misuse("name one of --before, --number (with --org), --link, --lookup and --job")
    if chosen == ["number"] and not is_e164(given["number"]):
        misuse("--number is none such as +14155550100")
    return chosen[0]


def _read_erased(
    container: Container, chosen: Choice, wanted: Any, organization_id: UUID | None, *, anew: bool
) -> list[Wanted]:
    match chosen:
        case "before":
            if wanted > next_month(month_of(container.clock())):
                refuse(f"--before {wanted} is after the month that follows the present one")
            return erasing.keys_of_months(container, wanted, organization_id, begin_anew=anew)
        case "number":
            assert organization_id is not None
            return [erasing.keys_of_number(container, organization_id, wanted)]
        case "link":
            wanted = load_link(container, wanted).id
    return [erasing.keys_of_stream(container, chosen, wanted, organization_id)]


def _require_separable(found: list[Wanted]) -> None:
    """Refuse before anything is erased, if something of it goes with its whole month only."""
    months = sorted({each.key for one in found for each in one.pieces if each.is_inseparable})
    if months:
        refuse(
            f"an earlier release sealed all of a month with one key, so this goes only with all "
            f"that the organization has in {', '.join(months)}: add --whole-months for that"
        )


def _pieces(found: list[Wanted]) -> Iterator[Row]:
    for one in found:
        for each in one.pieces:
            whole_month = each.id is None or each.is_inseparable
            yield pick("organization kind id key whole_month", each, one, whole_month=whole_month)


@subject.command("doctor", right=None, on="anything")
@click.option(
    "--capacity", "wants_capacity", is_flag=True, help="What is used, and when it is full."
)
@click.option(
    "--disk",
    metavar="GB",
    type=click.FloatRange(min=0, min_open=True),
    help="With --capacity: what the database may take, where its disk cannot be seen from here.",
)
def doctor(session: Session, *, wants_capacity: bool, disk: float | None) -> Said:
    """Say in words what is not ready for production.

    Exits with 1 when there is a fault; advice may be declined. Changes nothing. With --capacity it
    says instead what database, disk, connections and queues are used, and exits with 1 if one is
    full within 30 days at the pace of the last seven.
    """
    if disk is not None and not wants_capacity:
        misuse("--disk goes with --capacity")
    if wants_capacity:
        return _capacity(session, disk)
    findings = examine(session.container)
    session.ok = all(each.severity != "fault" for each in findings)
    facts = findings or "Nothing stands in the way."
    return Said({"ok": session.ok, "data": findings}, [facts])


def _capacity(session: Session, disk_gb: float | None) -> Said:
    container = session.container
    if (missing := what_is_missing(container)) is not None:
        refuse(missing)
    found = capacity(container, None if disk_gb is None else int(disk_gb * 1e9))
    session.ok = found.is_enough(container.clock())
    pace = None if found.pace is None else found.pace._asdict()
    return Said({"ok": session.ok, "pace": pace, "data": found.uses}, [_in_words(found.uses)])


def _in_words(uses: Sequence[Use]) -> list[Row]:
    def amount(count: int | None, unit: str) -> str | None:
        if count is None:
            return None
        return in_mb(count) if unit == "bytes" else f"{count:,} {unit}"

    return [
        {
            "what": each.what,
            "used": amount(each.used, each.unit),
            "of": amount(each.of, each.unit),
            "full": each.full_at and f"{each.full_at:%Y-%m-%d}",
            "": each.told,
        }
        for each in uses
    ]


@subject.command("backup", right=None, on="anything")
@directory_argument
def backup(session: Session, directory: Path) -> Said:
    """Copy all that cannot be rebuilt, while the service runs.

    DIR is created, complete or not at all. It holds secrets, and only you can read it. On
    PostgreSQL the server's own program copies the database; this command prints what to run next.
    """
    container = session.container
    container.gate.require()
    manifest = back_up(container, directory)
    commands = container.persistence.dump_commands(directory.absolute())
    facts = {"backup": directory, "position": manifest.position, "files": len(manifest.files)}
    beside = []
    if commands:
        dump, back = commands
        beside = [
            f"\nNow copy the database itself:\n\n{dump}\n",
            f"Its way back, into an empty database, and then `restore`:\n\n{back}",
        ]
    try:
        container.notes.replace("backup", str(manifest.position), manifest.made_at)
    except SQLAlchemyError:  # There is no table for it.
        warn("`doctor` will not know of this backup: run migrate")
    return Said({**facts, "commands": commands}, [facts, *beside])


@installation.command("hold", right="keys")
@click.option("--end", is_flag=True, help="Let it act: it takes the place of the installation.")
def hold(session: Session, *, end: bool) -> Row | Said:
    """Hold this copy, which the database's own tools made, before its first process starts."""
    changed = session.container.gate.switch(session.cause, held=not end)
    facts = {"held": not end, "changed": changed}
    if not end:
        return facts
    left, redone = _undone(session)
    return Said({**facts, "redo": left}, [facts, *[DONE_AGAIN] * changed, *redone])


def _undone(session: Session) -> tuple[Sequence[Undone] | None, list[Any]]:
    """Return what this copy of the log does not know, and the same in words."""
    left = None
    try:
        left = redo.undone(session.container)
    except OSError as error:
        warn(f"REDO_DIR: {error.filename}: {error.strerror}")
    if left is None:
        return None, [NO_LIST]
    return left, [REDO, left] if left else []


@subject.command("restore", right=None, on="anything")
@directory_argument
def restore_backup(session: Session, directory: Path) -> Said:
    """Put a backup into an empty place, and check it.

    The place is where the settings say. Nothing that exists is overwritten. On PostgreSQL restore
    the dump first, with the command that `backup` has printed. The copy is held, because the living
    installation may still be there; see `installation`. Ends as `audit verify` does: with 1 if
    something is wrong.
    """
    container = session.container
    report, warnings = restore(container, directory, session.watch("Building and checking"))
    command = container.persistence.dump_commands(directory.absolute())[-1:]
    for warning in warnings:
        warn(warning)
    session.ok = report is not None and report.ok
    facts = {
        "restored": directory,
        "ok": session.ok,
        **pick("events position", report or Report()),
        "held": report is not None,
    }
    if report is None:
        shown = {**facts, "redo": None, "failures": [], "commands": command}
        return Said(shown, [f"{AGAIN}\n\n{command[0]}"])
    failed = (one_line(f"position {each.position}: {each.reason}") for each in report.failures)
    left, again = _undone(session)
    shown = {**facts, "redo": left, "failures": report.failures, "commands": []}
    return Said(shown, [facts, HELD, *again, *failed])
