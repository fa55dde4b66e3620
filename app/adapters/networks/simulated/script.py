"""The sandbox plans: each plays, on demand, one failure that a partner can meet."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from domain.links.network import NoEndpoint, ProviderPlan
from domain.provider_errors import Rejected, Unavailable

PATIENCE: Final = timedelta(seconds=15)  # How long callers wait for one outcome, over all calls.
LATE: Final = timedelta(seconds=3)  # How long after everybody has given up a late effect comes.


class Fault(StrEnum):
    """What goes wrong; the value is the `provider_plan_id` that asks for it."""

    NO_ENDPOINT = "sandbox-no-endpoint"
    PROVIDER_ERROR = "sandbox-provider-error"
    NO_ESIM = "sandbox-no-esim"
    LOST_REPLY = "sandbox-lost-reply"
    SLOW = "sandbox-slow"
    UNREACHABLE = "sandbox-unreachable"


_FAULTS = {fault.value: fault for fault in Fault}


def fault_of(plan: ProviderPlan) -> Fault | None:
    """Return the fault that a plan asks for; None for a plan that works."""
    return _FAULTS.get(plan.provider_plan_id)


def refuse(fault: Fault | None) -> None:
    """Raise for the faults that leave nothing behind."""
    match fault:
        case Fault.NO_ENDPOINT:
            message = "the sandbox plays an answer without an id"
            raise NoEndpoint(message)
        case Fault.PROVIDER_ERROR:
            message = "the sandbox plays a network that fails"
            raise Unavailable(message)
        case Fault.NO_ESIM:
            message = "the sandbox plays a plan that no eSIM can carry"
            raise Rejected(message)
        case _:
            return


def comes_at(fault: Fault | None, now: datetime, late: timedelta) -> datetime:
    """Return the moment at which the effect of a call that begins now comes into being.

    It is written at once, so that it comes late even if the process of the call has died.
    """
    return now + late if fault is Fault.SLOW else now
