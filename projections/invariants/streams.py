"""That every stream is without a gap from its first event on."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

from domain.log.aggregate import Event


@dataclass
class Streams:
    """The version that every stream has come to."""

    _versions: dict[UUID, int] = field(default_factory=dict)

    def check(self, event: Event) -> Iterator[str]:
        expected = self._versions.get(event.originator_id, 0) + 1
        if event.originator_version != expected:
            yield f"stream {event.originator_id} jumps to version {event.originator_version}"
        self._versions[event.originator_id] = event.originator_version
