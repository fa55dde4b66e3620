"""Which process of `make test` runs which tests: what is costly to start is started once."""

import re

from xdist.scheduler import LoadFileScheduling

BROKER_GROUP = "RabbitMQ"
BROKER_USERS = (  # Each file or room.
    "tests/app/adapters/queues/",
    "tests/app/processes/test_cluster.py",
    "tests/app/watch/test_tracing.py",
    "tests/contracts/test_broker.py",
    "tests/scenarios/",
)
ONE_BY_ONE = "tests/simulation/"
_ON_POSTGRESQL = re.compile(r"[\[-]postgresql[\]-]")


def rank(nodeid: str) -> int:
    return 1 - nodeid.startswith(BROKER_USERS) + nodeid.startswith(ONE_BY_ONE)


class Shares(LoadFileScheduling):
    """Shares tests out file by file, one database after the other.

    pytest collects all tests of one database together: who went file by file would end the service
    of one and start that of the other twice a file. All that use RabbitMQ are one share: one start,
    and TEST_BROKER_URL has one user at a time. Those ONE_BY_ONE come last, so all end together.
    """

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(BROKER_USERS):
            return BROKER_GROUP
        if nodeid.startswith(ONE_BY_ONE):
            return nodeid
        file: str = super()._split_scope(nodeid)
        return f"{file} on PostgreSQL" if _ON_POSTGRESQL.search(nodeid) else file
