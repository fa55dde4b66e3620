"""Whether the read models stand where the log stands, for operators, probes and start-up."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from domain.log.log import Log
from projections.engine.database import Database
from projections.engine.positions import Position, Positions
from projections.engine.read_model import ReadModel


@dataclass(frozen=True, slots=True)
class Lag:
    """How far one follower is behind; `events` counts positions, which may have gaps."""

    name: str
    position: int
    events: int
    caught_up_at: datetime | None
    failure: str | None


def lags(log: Log, database: Database, positions: Positions) -> list[Lag]:
    """Return the lag of every follower."""
    known = positions.all(database)
    head = log.head()
    return [
        Lag(
            place.name,
            place.position,
            max(0, head - place.position),
            place.caught_up_at,
            place.failure,
        )
        for place in known.values()
    ]


def strangers(
    log: Log, database: Database, positions: Positions, models: Sequence[ReadModel]
) -> list[ReadModel]:
    """Return the models to rebuild: never built, of another version, or of another log."""
    known = positions.all(database)
    return [model for model in models if _is_strange(log, known.get(model.name), model)]


def _is_strange(log: Log, place: Position | None, model: ReadModel) -> bool:
    return place is None or place.version != model.version or not belongs(log, place)


def belongs(log: Log, place: Position) -> bool:
    """Tell whether the event at a position is the one that was followed there."""
    if place.position == 0:
        return True
    found = log.recorder.select_notifications(place.position, 1, stop=place.position)
    return bool(found) and (found[0].originator_id, found[0].originator_version) == (
        place.stream_id,
        place.stream_version,
    )
