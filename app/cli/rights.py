"""Which right each command needs, and who runs a command: an operator, else the system's user.

As soon as there is one operator, a command with a right needs the key of an operator who has it.
"""

import os
import pwd
from collections.abc import Mapping
from types import MappingProxyType
from uuid import uuid4

import click

from app.bootstrap.container import Container
from app.security.secrets import operator_of
from domain.accounts.operators import Operator, Right
from domain.cause import Cause
from domain.errors import NotPossible

# The right that each command needs. None: the command only reads, only does what the service does
# by itself anyway, or works on a new installation.
NEEDED: Mapping[str, Right | None] = MappingProxyType(
    {
        **dict.fromkeys(("serve", "migrate", "web", "worker", "dispatcher", "projector", "clock")),
        **dict.fromkeys(("settings", "openapi", "doctor", "backup", "restore")),
        **dict.fromkeys(("finance", "providers check")),
        **dict.fromkeys(("org list", "client list", "plans list", "keys list")),
        **dict.fromkeys(("wallet show", "wallet adjustments list")),
        **dict.fromkeys(("links list", "links show", "links retry", "jobs retry")),
        **dict.fromkeys(("webhooks list", "webhooks redeliver")),
        "sandbox advance": None,  # Nothing of it is real.
        **dict.fromkeys(("projections status", "projections rebuild")),
        **dict.fromkeys(("dead-letters list", "dead-letters replay", "dead-letters purge")),
        **dict.fromkeys(("audit verify", "operator list", "operator acts")),
        **dict.fromkeys(("audit statement", "audit balance", "audit replay")),
        **dict.fromkeys(("audit margin", "audit trial-balance", "audit reconcile")),
        **dict.fromkeys(("audit export", "audit import", "audit check")),
        "audit prove": None,  # It asks for `audit` itself where it has to sign.
        "org create": "money",
        "org set": "money",
        "org suspend": "money",
        "org activate": "money",
        "org deactivate": "money",
        "wallet open": "money",
        "wallet deposit": "money",
        "wallet adjust": "money",
        "wallet refund": "money",
        "wallet adjustments approve": "approve",
        "wallet adjustments reject": "approve",
        "providers smoke": "money",  # It spends our money at the provider.
        "links import": "money",  # A fee falls due for each of them.
        "plans import": "catalogue",
        "plans price": "catalogue",
        "plans sync": "catalogue",
        "plans enable": "catalogue",
        "plans disable": "catalogue",
        "plans exclude": "catalogue",
        "plans include": "catalogue",
        "providers drain": "catalogue",
        "providers resume": "catalogue",
        "client create": "keys",
        "client revoke": "keys",
        "client rotate-secret": "keys",
        "keys rotate": "keys",
        "keys revoke": "keys",
        "installation hold": "keys",
        "installation release": "keys",
        "privacy erase": "keys",  # It deletes the keys of personal data.
        "jobs list": None,
        "jobs cancel": "money",  # It gives money back.
        **dict.fromkeys(("links suspend", "links reactivate", "links end"), "money"),
        "webhooks disable": "keys",
        "audit checkpoint": "audit",  # It signs.
        "months close": "audit",
        "operator create": "keys",
        "operator approvals": "keys",
        "operator rotate-key": "keys",  # Or it is the operator's own key.
        "operator revoke": "keys",
    }
)


def authorize(container: Container, right: Right | None = None) -> str:
    """Return who runs the present command, as its events name them.

    It needs the right in the table, or the one that is given. Raises NotPossible when there are
    operators and no key of one with this right was given.
    """
    right = right or NEEDED[_command()]
    holder = holder_of_key(container)
    if holder is None or right is None:
        return user()
    holder.require(right)
    return holder.actor


def holder_of_key(container: Container) -> Operator | None:
    """Return whose key was given; None while there are no operators and no key.

    Raises NotPossible for a missing or wrong key.
    """
    key, operators = container.settings.operator_key, container.operators
    if not key:
        if not operators.exist():
            return None
        message = "there are operators, so this needs the key of one: set OPERATOR_KEY"
        raise NotPossible(message)
    named = operator_of(key)
    holder = container.log.find(Operator, named) if named is not None else None
    hasher = container.secret_hasher
    hashes = [holder.key_hash] if holder is not None else []
    used = hasher.matches(key, hashes)
    if used is None or holder is None:
        message = "OPERATOR_KEY is the key of no operator; it may have been replaced or revoked"
        raise NotPossible(message)
    if hasher.is_outdated(used):
        container.clock_check.require()
        new, cause = hasher.hash(key), Cause(container.clock(), f"cli-{uuid4()}", holder.actor)
        container.log.update(holder, lambda newest: newest.rehash_key(used, new, cause))
    return holder


def user() -> str:
    """Return the user of the operating system, which no environment variable can change."""
    number = os.getuid()
    try:
        return f"os:{pwd.getpwuid(number).pw_name}"
    except KeyError:  # In a container the user's number may have no name.
        return f"os:{number}"


def _command() -> str:
    """Return the words of the present command without the program's."""
    context: click.Context = click.get_current_context()
    words: list[str] = []
    while context.parent is not None:
        words.insert(0, str(context.info_name))
        context = context.parent
    return " ".join(words)
