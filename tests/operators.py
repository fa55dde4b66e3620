"""Operators of an installation that a test plays with."""

from collections.abc import Sequence
from uuid import uuid4

from domain.accounts.operators import Right
from domain.cause import Cause
from tests.installation import Process

EVERYTHING: Sequence[Right] = ("money", "approve", "catalogue", "keys", "audit")


def as_operator(process: Process, name: str, may: Sequence[Right] = EVERYTHING) -> Cause:
    """Register an operator with a key of their own; return what causes their events.

    They were there before any limit: no other one has approved them.
    """
    operators, cause = process.operators, process.cause()
    facts = {"name": name, "may": may, "key_for": lambda _: "a" * 64, "permit": lambda *_, **__: []}
    made = operators.register(cause, **facts)
    theirs = Cause(cause.at, f"cli-{uuid4()}", made.actor)
    operators.rotate_key(made.id, "b" * 64, theirs, lambda *_, **__: [])
    return theirs
