"""The connections of one process for one purpose: opened as they are wanted, few, and kept."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from sqlalchemy.pool import QueuePool

from projections.engine.hot_reads import has_news


class FixedPool(QueuePool):
    """The library's pool, which lends what the driver has, too: a hot read needs no more.

    So both take from the same few connections.
    """

    @contextmanager
    def lent(self) -> Iterator[psycopg.Connection]:
        """Lend one in autocommit; it is dropped when the block raises."""
        record: Any = self._do_get()
        try:
            if record.dbapi_connection is not None and has_news(record.dbapi_connection):
                record.invalidate()
            driver: psycopg.Connection = record.get_connection()
            if not driver.autocommit:  # Nearly always it was lent so before.
                driver.autocommit = True
            yield driver
        except BaseException:
            record.invalidate()
            raise
        finally:
            self._do_return_conn(record)
