"""What adapters of providers may raise; every other error becomes one of these."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager


class ProviderError(Exception):
    """The base class; no other error passes an adapter."""


class Unavailable(ProviderError):
    """Raised when the provider did nothing and we have no answer; try later."""


class NotAnswered(Unavailable):
    """Raised when a provider works but has no answer to this question; another may have one."""


class NotNow(Unavailable):
    """Raised when a provider works but it or we ourselves limit our calls; ask later."""


class Rejected(ProviderError):
    """Raised when the network refuses for good; nothing happened."""


class OutcomeUnknown(ProviderError):
    """Raised when a reply was lost or late; the call may have had its effect, or still have it."""


class OutcomeNotStated(OutcomeUnknown):
    """Raised when the provider is up, but its reply to a change does not tell the outcome."""


def unknown_after(error: ProviderError) -> OutcomeUnknown:
    """Return what an error in the middle of a change means, and keep whether the provider is up."""
    is_up = isinstance(error, Rejected | NotAnswered | OutcomeNotStated)
    return (OutcomeNotStated if is_up else OutcomeUnknown)(str(error))


@contextmanager
def becoming(
    these: type[ProviderError] | tuple[type[ProviderError], ...],
    make: Callable[[ProviderError], ProviderError] = unknown_after,
) -> Iterator[None]:
    """Make other errors of these, with no trace of them: an error may hold what a reply said."""
    try:
        yield
    except these as error:
        made = make(error)
    else:
        return
    raise made


def in_doubt() -> AbstractContextManager[None]:
    """Make OutcomeUnknown of a read that fails, where only that read could tell what happened.

    A refused change may have been done before: a proxy may have sent it twice, and the provider
    refuses the second one.
    """
    return becoming(Unavailable)


def problem_of(error: Exception) -> str:
    """Describe an error; an unexpected one by its type alone, as its text may hold numbers."""
    return (isinstance(error, ProviderError) and str(error)) or type(error).__name__
