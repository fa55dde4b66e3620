"""What customers have asked for and what they were told: it has to stay true."""

from dataclasses import dataclass, field
from typing import Literal
from uuid import UUID

Kind = Literal["lookup", "job", "link", "change", "deposit"]
Outcome = tuple[frozenset[int], frozenset[int], int]  # Items: completed, failed, cancelled ones.


@dataclass(frozen=True)
class Ask:
    """One request; whoever sends it again with its key means the same."""

    kind: Kind
    organization_id: UUID
    key: str | None
    plan_id: UUID | None = None
    numbers: tuple[str, ...] = ()
    link_id: UUID | None = None
    remove: tuple[UUID, ...] = ()
    add: tuple[UUID, ...] = ()
    amount_micros: int = 0

    def __str__(self) -> str:
        asked = [f"{self.kind} key={self.key}"]
        asked += [f"{len(self.numbers)} numbers"] * bool(self.numbers)
        asked += [f"plan {self.plan_id}"] * bool(self.plan_id)
        asked += [f"link {self.link_id} -{len(self.remove)} +{len(self.add)}"] * bool(self.link_id)
        asked += [f"{self.amount_micros} micros"] * bool(self.amount_micros)
        return ", ".join(asked)


@dataclass
class Ledger:
    """Successes by request, with the stream that holds each; a keyed request has one for ever."""

    asked: list[Ask] = field(default_factory=list)
    told: list[tuple[Ask, UUID]] = field(default_factory=list)
    cancelled: dict[UUID, Outcome] = field(default_factory=dict)
    _by_key: dict[Ask, UUID] = field(default_factory=dict)

    def tell(self, ask: Ask, stream_id: UUID) -> None:
        """Note what a caller got; the same key always gets the same."""
        if ask.key is None:
            self.told.append((ask, stream_id))
            return
        before = self._by_key.setdefault(ask, stream_id)
        assert before == stream_id, f"{ask}: was told {before}, is told {stream_id}"
        if (ask, stream_id) not in self.told:
            self.told.append((ask, stream_id))

    def refuse(self, ask: Ask, code: str, *, may_be: bool) -> None:
        """Note a refusal: nobody is refused for good what he was told he has."""
        assert may_be, f"{ask}: was told {self._by_key[ask]}, is told {code}"

    @property
    def successes(self) -> set[Ask]:
        """The requests with a key that were told a success."""
        return {*self._by_key}

    def of(self, kind: Kind) -> list[UUID]:
        """Return the streams of what was told, in order."""
        return [stream_id for ask, stream_id in self.told if ask.kind == kind]

    def keyed(self) -> list[Ask]:
        """Return every request that can be sent again."""
        return [*dict.fromkeys(ask for ask in self.asked if ask.key is not None)]
