"""Every rule about the log, for the audit: those of the verifier and the life cycles.

The verifier is the program for auditors, loaded as a module that knows nothing of us. So a rule
about money, rights or prices is written once: `@rule` in docs/verifier/verify.py.
"""

import sqlite3
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from domain.log.aggregate import Created
from domain.log.log import Recorded, Stored
from projections.audit.life import Life

VERIFIER = Path(__file__).parents[2] / "docs" / "verifier" / "verify.py"


@cache
def verifier() -> ModuleType:
    spec = spec_from_file_location("carrier_verifier", VERIFIER)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)  # Its dataclasses look there.
    spec.loader.exec_module(module)
    return module


class Rules:
    """Give it every event in order; it returns what is wrong.

    Of a part of the log only what needs no earlier event is checked: no stream and no wallet has a
    gap, and the ids of streams follow from facts. The first event of a stream is believed then.
    """

    def __init__(self, *, is_part: bool = False) -> None:
        self._event, self._judge = verifier().Event, verifier().Judge(is_part=is_part)
        self._life = None if is_part else Life()

    def check(self, row: Stored, recorded: Recorded) -> list[str]:
        """Check one event against all before it; the row and the event are the same."""
        position, stream_id, version, topic, state = row
        event = self._event(position, str(stream_id), version, topic, state.decode())
        try:
            wrong: list[str] = self._judge.take(event)
        except sqlite3.Error as error:  # Such as a full disk; it says nothing about the log.
            raise OSError(f"the temporary file of the audit: {error}") from error
        if version > 1 and isinstance(recorded.event, Created):
            wrong.append("its stream begins again")
        if self._life is not None:
            wrong.extend(self._life.check(event))
        return wrong

    def check_end(self) -> Iterator[tuple[int, str]]:
        """Yield what should have come by now, each with the position that says so."""
        if self._life is not None:
            yield from self._judge.books.open_ends()
            yield from self._judge.people.end()
            yield from self._judge.terms.end()
            yield from self._life.check_end()
