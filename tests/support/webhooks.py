"""A sender for services of tests: nothing leaves the machine, and what was told can be read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock

from domain.webhooks.deliveries import Sent


@dataclass
class Told:
    """One attempt."""

    url: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class KeepingSender:
    """Accepts everything, or answers with another status."""

    status: int = 200
    told: list[Told] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Sent:
        with self._lock:
            self.told.append(Told(url, headers, body))
        return Sent(self.status, None, 1)

    def to(self, url: str) -> list[Told]:
        with self._lock:
            return [each for each in self.told if each.url == url]
