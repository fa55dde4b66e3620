"""Operators: people with keys of their own, and what each of them may do at the command line.

Their streams are numbered from 1. So the log alone tells who the operators are, and of two that
register at the same time only one gets the next number.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from typing import Literal, get_args
from uuid import UUID

from domain.cause import OPERATOR, Cause, is_operator
from domain.errors import NotPossible
from domain.log.aggregate import ByOperator, Created, Root, sets
from domain.log.log import Log, retried

Right = Literal["money", "approve", "catalogue", "keys", "audit"]
RIGHTS: tuple[Right, ...] = get_args(Right)
MANAGES: Right = "keys"  # The right to create and revoke operators, and to give them keys.
APPROVES: Right = "approve"
VOID = "this is void: the operator who proposed it is revoked; propose it with another reference"
NEED_TWO: frozenset[Right] = frozenset({"money", "approve", "keys"})  # Once there is a limit.

# Returns what is saved with what two have to want; raises where it has to wait (`Approvals`).
Permit = Callable[..., Sequence[Root]]

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}", re.ASCII)


class Operator(Root):
    """One person at the command line. Only a keyed hash of the key is stored.

    `name` is the name of an account. It stands unsealed in the log, because whoever audits it must
    be able to read it for ever; so it should not be the name of a person.
    """

    TOPIC = "operator"

    class Registered(Created, ByOperator):
        TOPIC = "operator.registered"
        SETS = sets("name", "may", "key_hash", keys=lambda event: (event,))

        name: str
        may: list[Right]
        key_hash: str

    class KeyRotated(Root.Event, ByOperator):
        """The key before it is refused from now on."""

        TOPIC = "operator.key_rotated"

        key_hash: str

        def apply(self, aggregate: "Operator") -> None:
            aggregate.keys = (*aggregate.keys, self)
            aggregate.key_hash = self.key_hash
            if not is_operator(self.actor):
                aggregate.locked_out_at = self.timestamp

    class KeyRehashed(Root.Event, ByOperator):
        """The key was used, and from now on its hash is kept under a newer pepper."""

        TOPIC = "operator.key_rehashed"
        SETS = sets("key_hash")

        key_hash: str

    class Revoked(Root.Event, ByOperator):
        TOPIC = "operator.revoked"
        SETS = sets(revoked=True)

    name: str
    may: list[Right]
    keys: "tuple[Operator.Registered | Operator.KeyRotated, ...]"  # The events that gave a key.
    key_hash: str  # Of the present key, under the newest pepper that it was used with.
    revoked: bool = False
    locked_out_at: datetime | None = None  # When a caller without a key last replaced this one.

    @property
    def actor(self) -> str:
        """How events name this operator as the one who caused them."""
        return f"{OPERATOR}{self.id}"

    @property
    def manages(self) -> bool:
        return MANAGES in self.may and not self.revoked

    @property
    def key(self) -> "Operator.Registered | Operator.KeyRotated":
        return self.keys[-1]

    @property
    def has_own_key(self) -> bool:
        """Tell whether the operator made the key; whoever makes a key for another sees it."""
        return self.key.actor == self.actor

    def rotate_key(self, key_hash: str, cause: Cause) -> None:
        """Replace the key; the one before it is refused at once."""
        self._refuse_revoked()
        self.record(self.KeyRotated, cause, key_hash=key_hash)

    def rehash_key(self, old_hash: str, key_hash: str, cause: Cause) -> None:
        """Keep the key under a newer pepper, unless it has been replaced meanwhile."""
        if old_hash == self.key_hash and not self.revoked:
            self.record(self.KeyRehashed, cause, key_hash=key_hash)

    def revoke(self, cause: Cause) -> None:
        if not self.revoked:
            self.record(self.Revoked, cause)

    def require(self, right: Right) -> None:
        self._refuse_revoked()
        if right not in self.may:
            raise NotPossible(f"operator {self.name} may not do this: it needs the right {right}")

    def _refuse_revoked(self) -> None:
        if self.revoked:
            raise NotPossible(f"operator {self.name} is revoked")


@dataclass(frozen=True)
class Operators:
    """All operators, read from the log itself; a read model could be out of date."""

    log: Log

    def all(self) -> Iterator[Operator]:
        """Yield all operators in the order in which they were registered."""
        for number in count(1):
            found = self.log.find(Operator, Operator.id_of(number))
            if found is None:
                return
            yield found

    def exist(self) -> bool:
        """Tell whether there was ever an operator, revoked ones included."""
        return next(self.all(), None) is not None

    def managed(self) -> bool:
        """Tell whether somebody can create others; two who revoke each other at once leave none."""
        return any(each.manages for each in self.all())

    def names(self) -> Mapping[str, str]:
        """Return the name of each operator, by how events name the operator as an actor."""
        return {each.actor: each.name for each in self.all()}

    def had_approver(self) -> bool:
        """Tell whether somebody could ever approve: with the right, and a key of their own."""
        approvers = (each for each in self.all() if APPROVES in each.may)
        return any(key.actor == each.actor for each in approvers for key in each.keys)

    def idle_since(self, actors: Collection[str | None], since: datetime) -> datetime | None:
        """Return since when nobody but these actors could approve what was asked; None: some can.

        To be sure, since the newest key of the others was made or refused.
        """
        others = [e for e in self.all() if APPROVES in e.may and e.actor not in actors]
        if any(each.has_own_key and not each.revoked for each in others):
            return None
        return max([since, *(each.modified_on for each in others)])

    def is_revoked(self, actor: str | None) -> bool:
        """Tell whether an actor is an operator who is revoked, whose open proposals are void."""
        return any(each.revoked for each in self.all() if each.actor == actor)

    def require_two(self, proposed_by: str | None, approver: str | None) -> None:
        """Raise NotPossible unless another operator approves, with a key that only he has seen."""
        found = next((each for each in self.all() if each.actor == approver), None)
        if found is None or approver == proposed_by:
            raise NotPossible("this is approved by another operator than the one who proposed it")
        if not found.has_own_key:
            raise NotPossible("somebody else has made your key: run `operator rotate-key` first")
        self.refuse_void(proposed_by)

    def refuse_void(self, proposed_by: str | None) -> None:
        if self.is_revoked(proposed_by):
            raise NotPossible(VOID)

    def get(self, operator_id: UUID) -> Operator:
        return self.log.get(Operator, operator_id, f"operator {operator_id}")

    @retried
    def register(
        self,
        cause: Cause,
        *,
        name: str,
        may: Sequence[Right],
        key_for: Callable[[UUID], str],
        permit: Permit,
    ) -> Operator:
        """Register an operator under the next number; `key_for` returns the hash of a new key.

        Raises NotPossible for a name that is taken, and if nobody could register the next one, and
        what `permit` raises.
        """
        if not _NAME.fullmatch(name):
            message = "a name is 1 to 64 lower-case letters, digits, dots, dashes and underscores"
            raise NotPossible(message)
        known = [*self.all()]
        if any(each.name == name for each in known):
            raise NotPossible(f"there is an operator {name} already")
        if MANAGES not in may and not any(each.manages for each in known):
            raise NotPossible(f"this operator needs the right {MANAGES}: nobody else has it")
        needs_two = NEED_TWO.intersection(may)
        used = permit("operator", cause, subject=name, may=[*may]) if needs_two else ()
        stream_id = Operator.id_of(len(known) + 1)
        facts = {"name": name, "may": [*may], "key_hash": key_for(stream_id)}
        made = Operator.begin(Operator.Registered, cause, stream_id, **facts)
        self.log.append(*used, made)
        return made

    def rotate_key(
        self, operator_id: UUID, key_hash: str, cause: Cause, permit: Permit
    ) -> Operator:
        """Give an operator a new key; raises what `permit` raises for that of somebody else."""

        def rotate(newest: Operator) -> None:
            newest.rotate_key(key_hash, cause)
            if cause.actor != newest.actor and NEED_TWO.intersection(newest.may):
                self.log.append(*permit("key", cause, subject=str(operator_id)), newest)

        return self.log.update(self.get(operator_id), rotate)

    def revoke(self, operator_id: UUID, cause: Cause) -> Operator:
        """Revoke an operator; raises NotPossible for the last one who can create others."""
        revoked = self.get(operator_id)
        others = (each.manages for each in self.all() if each.id != operator_id)
        if revoked.manages and not any(others):
            message = f"this is the last operator with the right {MANAGES}: create another first"
            raise NotPossible(message)
        return self.log.update(revoked, lambda newest: newest.revoke(cause))
