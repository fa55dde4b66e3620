"""The connections of one process for one purpose: few, opened when needed, and kept."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy.pool import QueuePool

from app.adapters.postgres.connection import BoundedConnection
from projections.engine.hot_reads import has_news


class FixedPool(QueuePool):
    """SQLAlchemy's pool, which also lends bare connections of the driver to hot reads.

    So ordinary and hot reads share the same few connections.
    """

    @contextmanager
    def lent(self) -> Iterator[BoundedConnection]:
        """Lend a connection in autocommit; it is dropped when the block raises."""
        record: Any = self._do_get()
        try:
            if record.dbapi_connection is not None and has_news(record.dbapi_connection):
                record.invalidate()
            driver: BoundedConnection = record.get_connection()
            driver.require()
            if not driver.autocommit:  # Nearly always the last user left it in autocommit.
                driver.autocommit = True
            yield driver
        except BaseException:
            record.invalidate()
            raise
        finally:
            self._do_return_conn(record)
