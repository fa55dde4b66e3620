"""`operator`: people with keys of their own, and what each may do."""

from os import urandom
from typing import Any
from uuid import UUID

import click

from app.books.reader import read_events
from app.bootstrap.container import Container
from app.bootstrap.known_keys import note_pepper
from app.cli.arguments import AT_LEAST_ZERO, OrWord, Words
from app.cli.installation import catch_up, cause_of, installation, take_turn
from app.cli.output import as_json_option, named, show, show_list, watched
from app.cli.rights import holder_of_key, user
from app.security.secrets import new_operator_key
from domain.accounts.approvals import Proposal
from domain.accounts.operator_acts import OperatorAct
from domain.accounts.operators import MANAGES, RIGHTS, Operator, Right
from domain.errors import NotPossible
from domain.money import format_amount

SHOWN_ONCE = (
    "The key is not kept and cannot be shown again. You have seen it, so its holder should now run "
    "`operator rotate-key` with it."
)


class Rights(click.ParamType[list[Right], str]):
    """Rights, separated by commas."""

    name = "right,…"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[Right]:
        named = {each.strip() for each in value.split(",")}
        if not named <= set(RIGHTS):
            self.fail(f"{value!r} is not a list of: {', '.join(RIGHTS)}", param, ctx)
        return [right for right in RIGHTS if right in named]


id_argument = click.argument("operator_id", metavar="ID", type=click.UUID)


@click.group(name="operator")
def command() -> None:
    """Operators: people with keys of their own, and what each may do.

    As soon as there is one, commands that move money or change prices, keys or the catalogue need
    the key of an operator who may do that, in OPERATOR_KEY or the file that OPERATOR_KEY_FILE
    names. Events keep who it was.
    """


@command.command()
@click.argument("name", metavar="NAME", type=Words())
@click.option("--may", required=True, type=Rights(), help=f"Of: {', '.join(RIGHTS)}.")
@as_json_option
def create(*, name: str, may: list[Right], as_json: bool) -> None:
    """Create an operator; the key is printed only this once.

    NAME is that of an account. It is kept for ever, so it should not be a person's.
    """
    with installation() as container:
        take_turn(container)
        note_pepper(container)
        given: list[str] = []

        def key_for(operator_id: UUID) -> str:
            given[:] = [new_operator_key(operator_id, urandom)]
            return container.secret_hasher.hash(given[0])

        cause = cause_of(container, _who_begins(container))
        made = container.operators.register(cause, name=name, may=may, key_for=key_for)
    _show_key(made, given[0], as_json=as_json)


@command.command(name="list")
@as_json_option
def list_all(*, as_json: bool) -> None:
    """List all operators, oldest first, with who made each one's present key."""
    with installation() as container:
        names = container.operators.names()
        known = [_facts(each) for each in container.operators.all()]
        rows = [named(each, "key_made_by", names, as_json=as_json) for each in known]
    show_list(rows, as_json=as_json)


@command.command()
@id_argument
@click.option("--locked-out", is_flag=True, help="Without a key, when all are lost.")
@as_json_option
def rotate_key(*, operator_id: UUID, locked_out: bool, as_json: bool) -> None:
    """Give an operator a new key; the one before it is refused at once.

    Operators may replace their own key, others need the right `keys`. When every key is lost,
    --locked-out replaces that of an operator who has this right. The log keeps which user of the
    operating system did so, and `doctor` tells of it until the holder has replaced the key.
    """
    key = new_operator_key(operator_id, urandom)
    with installation() as container:
        take_turn(container)
        note_pepper(container)
        actor = _who_rotates(container, operator_id, locked_out=locked_out)
        cause, key_hash = cause_of(container, actor), container.secret_hasher.hash(key)
        changed = container.operators.rotate_key(operator_id, key_hash, cause)
    _show_key(changed, key, as_json=as_json)


@command.command()
@id_argument
@as_json_option
def revoke(*, operator_id: UUID, as_json: bool) -> None:
    """Refuse an operator for ever; the last one who can create others stays."""
    with installation() as container:
        revoked = container.operators.revoke(operator_id, cause_of(container))
    show(_facts(revoked), as_json=as_json)


@command.command()
@as_json_option
def acts(*, as_json: bool) -> None:
    """List what operators did that changed no aggregate, oldest first: to keys, tree and copies.

    Everything else that an operator did stands in the events of what was changed.
    """
    with installation() as container, watched("Reading") as progress:
        names = {each.actor: each.name for each in container.operators.all()}
        rows = [
            {
                "at": event.timestamp,
                "who": names.get(str(event.actor), event.actor),
                "act": event.act,
                "subject": event.subject,
                "position": position,
                "actor": event.actor,
            }
            for position, event in read_events(container.log, (OperatorAct.Done,), progress)
            if isinstance(event, OperatorAct.Done)
        ]
    show_list(rows, as_json=as_json)


@command.command()
@click.argument(
    "above", metavar="[AMOUNT|none]", type=OrWord(AT_LEAST_ZERO, "none"), required=False
)
@as_json_option
def approvals(*, above: int | str | None, as_json: bool) -> None:
    """Set above what AMOUNT a second operator has to approve what moves money by command.

    It holds for adjustments, deposits and refunds by hand. The first limit and a lower one hold at
    once. A higher one, or `none`, which ends it, waits for another operator: see `wallet
    adjustments`. Without AMOUNT the present limit is shown.
    """
    with installation() as container:
        limit, proposal = container.accounts.approvals, None
        if above is not None:
            cause, waiting = cause_of(container), _limits_waiting(container)
            above_micros = above if isinstance(above, int) else None
            proposal = limit.set_limit(above_micros, cause, waiting)
        now = limit.above_micros()
    facts = {
        "approvals_above": None if now is None else format_amount(now),
        "proposal": None if proposal is None else proposal.id,
        "state": "set" if proposal is None else proposal.state,
    }
    show(facts, as_json=as_json)


def _limits_waiting(container: Container) -> list[Proposal]:
    catch_up(container)
    with container.views.reading() as connection:
        waiting = [*map(container.accounts.waiting, container.proposals.all(connection))]
    return [e for e in waiting if isinstance(e, Proposal) and e.made.kind == "limit"]


def _who_begins(container: Container) -> str | None:
    """Return the system's user while there is no operator whose key would be needed; else None."""
    alone = not container.settings.operator_key and not container.operators.managed()
    return user() if alone else None


def _who_rotates(container: Container, operator_id: UUID, *, locked_out: bool) -> str | None:
    """Return the actor if it replaces its own key or is locked out; None: the usual rule holds."""
    changed = container.operators.get(operator_id)
    if locked_out:
        if not changed.manages:
            message = f"--locked-out is for operators with the right {MANAGES}"
            raise NotPossible(message)
        return user()
    holder = holder_of_key(container)
    return holder.actor if holder is not None and holder.id == operator_id else None


def _show_key(operator: Operator, key: str, *, as_json: bool) -> None:
    show(
        {"id": operator.id, "name": operator.name, "may": operator.may, "key": key}, as_json=as_json
    )
    if not as_json and not operator.has_own_key:
        click.echo(SHOWN_ONCE)


def _facts(operator: Operator) -> dict[str, Any]:
    return {
        "id": operator.id,
        "name": operator.name,
        "may": operator.may,
        "revoked": operator.revoked,
        "key_made_at": operator.key.timestamp,
        "locked_out_at": operator.locked_out_at,
        "key_made_by": "self" if operator.has_own_key else operator.key.actor,
    }
