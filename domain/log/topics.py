"""Which class a topic of the log names: one of ours that is loaded, and nothing else.

The library would import any module that a topic names, and a log may be somebody else's export.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

from eventsourcing.utils import TopicError


@cache
def class_of(topic: str, base: type[Any]) -> Any:
    """Return the class below `base` that has this topic; raises TopicError if there is none."""
    named = [kind for kind in _below(base) if getattr(kind, "TOPIC", None) == topic]
    if not named:
        message = f"the topic {topic!r} is not known here"
        raise TopicError(message)
    return named[-1]  # Below some of our classes the library makes one of its own, and uses that.


def _below(base: type[Any]) -> Iterator[type[Any]]:
    for kind in base.__subclasses__():
        yield kind
        yield from _below(kind)
