"""The projector writes batches of the log into the read models and moves their positions."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from projections.engine.consumer import Consumer
from projections.engine.positions import Position, Source
from projections.engine.read_model import Batch, ReadModel, unused_by
from projections.engine.rebuild import rebuild_all

logger = logging.getLogger(__name__)


class Projector(Consumer):
    """Keeps read models up to date with the log; one that fails stops alone, the others go on."""

    name = "projector"
    beats = True

    def __init__(self, source: Source, models: Sequence[ReadModel]) -> None:
        super().__init__(source)
        self.members = {model.name: model for model in models}
        self.unused = unused_by(models)

    def follow(self, connection: Any, batch: Batch) -> None:
        for model in self.members.values():
            model.follow(connection, batch)

    def _is_lost(self, name: str, position: Position | None) -> bool:
        """Tell of a table that is ours; one never built or of another version is `migrate`'s."""
        is_ours = position is not None and position.version == self.members[name].version
        return is_ours and super()._is_lost(name, position)

    def _initialize(self, lost: Sequence[str], known: Mapping[str, Position]) -> None:
        """Rebuild the read models that have projected events that a failover has lost.

        Usually there are none: tables in the database of the log have lost the same commits.
        """
        del known
        logger.warning("read models are rebuilt: %s", lost)
        models = [self.members[name] for name in lost]
        rebuild_all(self._source, models)
