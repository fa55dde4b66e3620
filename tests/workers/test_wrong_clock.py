"""A worker whose clock jumps refunds nothing, gives nothing up and buys nothing twice.

Here it has taken its message just before. Once the clock is right, all ends as it should.
"""

from collections.abc import Callable
from uuid import UUID

import pytest

from domain.errors import ClockOff, ProvisioningError
from domain.links.link import Stage
from tests.installation import Installation, Process, SetClock
from tests.order_network import SHOWN_LATE
from tests.workers.link_checks import check
from tests.workers.link_lab import Lab
from tests.workers.network_faults import UNKNOWN, arm
from tests.workers.order_lab import OrderLab, check_order_lab

HOUR_S = 3_600

Work = Callable[[Process], object]


def an_order(lab: Lab) -> Work:
    """The reply to the order of a link was lost, and the network shows the order late."""
    arm(lab.network, "order", UNKNOWN["unknown, done"])
    link = lab.create()
    assert link.stage is Stage.ORDERING
    return lambda process: process.provisioning.work(link.id)


def a_lost_order(lab: Lab) -> Work:
    """The link has failed meanwhile; what it ordered is to be found and given back."""
    an_order(lab)
    lab.clock.forward(seconds=15)
    lab.sweep()
    (lost_id,) = [work.id for work in lab.unfinished() if work.kind == "lost_order"]
    return lambda process: process.lost_orders.work(lost_id)


def an_endpoint(lab: Lab) -> Work:
    arm(lab.network, "create_endpoint", UNKNOWN["unknown, not done"])
    link = lab.create()
    assert link.stage is Stage.ENDPOINT_REQUESTED
    return lambda process: process.provisioning.work(link.id)


def an_end(lab: Lab) -> Work:
    link = lab.create()
    arm(lab.network, "remove_endpoint", UNKNOWN["unknown, not done"])
    with pytest.raises(ProvisioningError):
        lab.finish(link.id, "cancel")
    return lambda process: process.provisioning.work(link.id)


def a_change(lab: Lab) -> Work:
    change_id = open_change(lab)
    return lambda process: process.plan_changes.work(change_id)


def a_failed_change(lab: Lab) -> Work:
    change_id = open_change(lab)
    lab.expire_change(change_id)
    return lambda process: process.plan_changes.work(change_id)


def open_change(lab: Lab) -> UUID:
    change_id = lab.request_change(lab.create().id, [], [lab.plan("t3", "1.00")])
    arm(lab.network, "add_plan", UNKNOWN["unknown, not done"])
    lab.work_change(change_id)
    return change_id


@pytest.mark.parametrize(
    "begin", [an_order, a_lost_order, an_endpoint, an_end, a_change, a_failed_change]
)
def test_a_worker_whose_clock_jumps_after_it_took_a_message_decides_nothing(
    installation: Installation, begin: Callable[[Lab], Work]
) -> None:
    sells_by_order = begin in {an_order, a_lost_order}
    lab = OrderLab(installation) if sells_by_order else Lab(installation)
    if isinstance(lab, OrderLab):
        lab.book.lag = lambda: SHOWN_LATE
    work = begin(lab)
    worker, right = lab.other_process(), SetClock(lab.clock())
    worker.gate.query, worker.gate.monotonic = right, lambda: right().timestamp()
    worker.gate.require()
    head = lab.process.log.head()
    lab.clock.forward(seconds=HOUR_S)
    with pytest.raises(ClockOff):
        work(worker)
    assert lab.process.log.head() == head
    lab.clock.now = right()
    lab.settle()
    (check_order_lab if isinstance(lab, OrderLab) else check)(lab)  # type: ignore[operator]  # Each takes its lab.
