"""What each process has to show: a metric appears where its process has something to say of it."""

from typing import Literal

Role = Literal["serve", "web", "worker", "dispatcher", "projector", "clock"]

ANSWERING: frozenset[Role] = frozenset({"serve", "web"})
DECIDING: frozenset[Role] = frozenset({"serve", "web", "worker"})  # These append events.
WORKING: frozenset[Role] = frozenset({"serve", "worker"})
WITH_BROKER: frozenset[Role] = frozenset({"serve", "worker", "dispatcher", "clock"})
WITH_STANDBY: frozenset[Role] = frozenset({"serve", "dispatcher", "projector", "clock"})
