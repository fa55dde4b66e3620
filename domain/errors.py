"""Every refusal that a caller can meet, each with its stable code; the edge maps them to statuses.

Refused
├── Unauthorized
├── OrganizationNotFound · OrganizationSuspended · OrganizationInactive · InsufficientScope
├── NumberLookupDisabled · BillingNotConfigured · InsufficientBalance · SpendingLimit
├── ValidationFailed · NotFound
├── IdempotencyKeyReused · IdempotencyInProgress · JobFinished
├── NotSupportedByNetwork · LinkBusy · LinkEnded · LinkInUse · CancelWindowOver
├── WebhookLimit · WebhookDisabled
├── NotAcceptable · RateLimited
├── ConfigError
├── IncompleteNetworkAnswer · ProvisioningError · NetworkUnavailable
└── NumberLookupUnavailable · ServiceUnavailable
    ├── InstallationHeld
    └── ClockOff
Conflict          another writer was first on our own stream: reload and decide anew
NotPossible       an operator asked for something that another fact forbids
└── WrongCurrency CURRENCY is not the currency of the log
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from uuid import UUID

from domain.money import format_amount


class Refused(Exception):
    """A request that is declined for a reason that its sender can read; `code` never changes."""

    code: ClassVar[str]
    message: ClassVar[str] = ""
    retryable: bool | None = None  # Stated in the reply unless it is None.
    retry_after_s: int | None = None  # After how long a retry can help, if known.

    def __init__(self, message: str = "", **details: Any) -> None:
        super().__init__(message or self.message)
        self.details = details


class Unauthorized(Refused):
    """Raised when a token is missing, invalid or expired, or its client is revoked.

    Its message says which, in plain ASCII without quotes, because a header repeats it.
    """

    code = "UNAUTHORIZED"
    message = "A valid access token is required."


class OrganizationNotFound(Refused):
    """Raised when a request names no organization, or one that does not exist."""

    code = "ORGANIZATION_NOT_FOUND"
    message = "The organization of this request is not registered."


class OrganizationSuspended(Refused):
    """Raised for every request of a suspended organization."""

    code = "ORGANIZATION_SUSPENDED"
    message = "The organization is suspended."


class OrganizationInactive(Refused):
    """Raised for every request of an organization that is neither active nor suspended."""

    code = "ORGANIZATION_INACTIVE"
    message = "The organization is not active."


class InsufficientScope(Refused):
    """Raised when a valid token lacks the scope of the operation (RFC 6750 §3.1)."""

    code = "INSUFFICIENT_SCOPE"
    message = "The access token does not carry the scope of this operation."


class NumberLookupDisabled(Refused):
    """Raised when lookups are off for everybody or for this organization."""

    code = "NUMBER_LOOKUP_DISABLED"
    message = "Number lookup is disabled."


class BillingNotConfigured(Refused):
    """Raised when something has a price and the organization has no wallet."""

    code = "BILLING_NOT_CONFIGURED"
    message = "The organization has no wallet to charge."


class InsufficientBalance(Refused):
    """Raised by the wallet when a charge exceeds its balance."""

    code = "INSUFFICIENT_BALANCE"
    message = "The wallet balance does not cover this charge."

    def __init__(self, required_micros: int, available_micros: int, currency: str) -> None:
        required, available = format_amount(required_micros), format_amount(available_micros)
        message = (
            f"The wallet balance does not cover this charge: {required} {currency} is required, "
            f"{available} {currency} is available."
        )
        super().__init__(message, required=required, available=available, currency=currency)


class SpendingLimit(Refused):
    """Raised by the wallet when a charge would go past what may be spent in this month."""

    code = "SPENDING_LIMIT"
    message = "The spending limit of this month does not cover this charge."

    def __init__(
        self, required_micros: int, spent_micros: int, limit_micros: int, currency: str
    ) -> None:
        required, spent, limit = map(format_amount, (required_micros, spent_micros, limit_micros))
        message = (
            f"The spending limit of this month does not cover this charge: {required} {currency} "
            f"is required, {format_amount(max(limit_micros - spent_micros, 0))} {currency} is "
            f"available of {limit} {currency}."
        )
        super().__init__(message, limit=limit, spent=spent, required=required, currency=currency)


class ValidationFailed(Refused):
    """Raised for input that breaks a rule; `fields` maps a field to its messages."""

    code = "VALIDATION_ERROR"
    message = "The request is not valid."

    def __init__(self, fields: Mapping[str, Sequence[str]]) -> None:
        super().__init__()
        self.details = {name: list(messages) for name, messages in fields.items()}


class NotFound(Refused):
    """Raised if a resource does not exist or is of another organization; both look alike."""

    code = "NOT_FOUND"
    message = "The resource does not exist."


KEY_ERASED = "What this Idempotency-Key stands for has been erased."


class IdempotencyKeyReused(Refused):
    """Raised when a key that is in use comes with another request."""

    code = "IDEMPOTENCY_KEY_REUSED"
    message = "This Idempotency-Key was used for another request."


class IdempotencyInProgress(Refused):
    """Raised when the first request of a key does not end in time."""

    code = "IDEMPOTENCY_IN_PROGRESS"
    message = "The first request with this Idempotency-Key is still running."
    retryable = True


class JobFinished(Refused):
    """Raised for an operation that needs a job that has not ended."""

    code = "JOB_FINISHED"
    message = "The job has ended: there is nothing left to cancel."
    retryable = False


class NotAcceptable(Refused):
    """Raised when a caller takes none of the types in which a reply can come."""

    code = "NOT_ACCEPTABLE"

    def __init__(self, *served: str) -> None:
        super().__init__(f"`Accept` names none of the types of this reply: {', '.join(served)}.")


class RateLimited(Refused):
    """Raised when a caller asks too often."""

    code = "RATE_LIMITED"
    message = "Too many requests."
    retryable = True

    def __init__(self, message: str = "", retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class NumberLookupUnavailable(Refused):
    """Raised when the lookup provider gave no usable answer; nothing was charged.

    It is not `retryable` if the provider works and has no data for this number.
    """

    code = "NUMBER_LOOKUP_UNAVAILABLE"
    message = "The lookup service is unavailable."

    def __init__(self, message: str = "", *, retryable: bool = True) -> None:
        super().__init__(message)
        self.retryable = retryable


NO_BASE_PLAN = "The network's default base plan is not configured."
OTHER_CURRENCY = "The service is set to another currency than that of the wallet or the plan."


class ConfigError(Refused):
    """Raised when the operator of this service has not made a setting that a request needs."""

    code = "CONFIG_ERROR"
    message = "The service is not configured for this; its operator has to act."
    retryable = False


# Why the network failed: a value of the API, what has happened, what the sender can do.
UNREACHABLE, LATE = "network_unavailable", "deadline"
REJECTED, NO_ESIM = "network_rejected", "no_esim_available"
_HAPPENED: Mapping[str | None, str] = {
    UNREACHABLE: "The network could not be reached",
    LATE: "The network did not answer in time",
    REJECTED: "The network refused it",
    NO_ESIM: "The network has no eSIM available for this plan",
    None: "The network could not do it",  # Failures of earlier releases have no reason.
}
NOT_BEGUN = "No worker has begun it in time, so the network was asked for nothing"
NETWORK_REASONS = (UNREACHABLE, LATE, REJECTED, NO_ESIM)
_FINAL = {REJECTED: "it would be refused again", NO_ESIM: "choose another plan"}


class IncompleteNetworkAnswer(Refused):
    """Raised when the network answered without what was asked of it.

    `outcome` says in half sentences what happened to the money and to the rest.
    """

    code = "PROVISIONING_FAILED"
    retryable = False

    def __init__(self, *outcome: str, **details: Any) -> None:
        happened = "The network answered, but without what was asked of it"
        super().__init__("; ".join([happened, *outcome]) + ".", reason=REJECTED, **details)


class ProvisioningError(Refused):
    """Raised when the network failed, refused, had no eSIM or took too long; `reason` says which.

    `outcome` says in half sentences what happened to the money and to the rest. `again` says how to
    try again, if that makes sense. `begun`: a worker has taken it up, so the network was asked.
    """

    code = "PROVISIONING_ERROR"

    def __init__(
        self,
        reason: str | None = None,
        *outcome: str,
        again: str = "try again",
        begun: bool = True,
        **details: Any,
    ) -> None:
        parts = [
            _HAPPENED[reason] if begun else NOT_BEGUN,
            *outcome,
            _FINAL.get(reason or "", again),
        ]
        known = {} if reason is None else {"reason": reason}
        super().__init__("; ".join(parts) + ".", **known, **details)
        self.retryable = reason not in _FINAL


class NotSupportedByNetwork(Refused):
    """Raised for what the network of a link cannot do; see the link's `capabilities`."""

    code = "NOT_SUPPORTED_BY_NETWORK"
    message = "The network of this link cannot do this."
    retryable = False


class LinkBusy(Refused):
    """Raised while another change of a link is open; nothing was done."""

    code = "LINK_BUSY"
    message = "Another change of this link is still running; try again."
    retryable = True


class LinkEnded(Refused):
    """Raised for an operation that needs a link that has not ended."""

    code = "LINK_ENDED"
    message = "This link has ended."
    retryable = False


class LinkInUse(Refused):
    """Raised when a link cannot be cancelled because it was installed or used."""

    code = "LINK_IN_USE"
    message = "This link has been installed or used, so it can be ended but not cancelled."
    retryable = False


class CancelWindowOver(Refused):
    """Raised when a link is too old to be cancelled."""

    code = "CANCEL_WINDOW_OVER"
    message = "The time in which this link could be cancelled is over; it can be ended."
    retryable = False


class WebhookLimit(Refused):
    """Raised when an organization already has all the webhook endpoints it may have."""

    code = "WEBHOOK_LIMIT"
    message = "An organization has at most 10 webhook endpoints; delete one first."
    retryable = False


class WebhookDisabled(Refused):
    """Raised for an operation that needs an enabled webhook endpoint."""

    code = "WEBHOOK_DISABLED"
    message = "This webhook endpoint is disabled; enable it first."
    retryable = False


class NetworkUnavailable(Refused):
    """Raised when a live answer was asked for and the network gave none."""

    code = "NETWORK_UNAVAILABLE"
    message = "The network cannot be reached."
    retryable = True


class ServiceUnavailable(Refused):
    """Raised when the log cannot be reached or has no room for another command."""

    code = "SERVICE_UNAVAILABLE"
    message = "The service cannot reach its log; try again."
    retryable = True


class InstallationHeld(ServiceUnavailable):
    """Raised for what would act on the world in a copy that nobody has released."""

    message = "This installation is a held copy: it answers reads only, until it is released."


class ClockOff(ServiceUnavailable):
    """Raised in a process that does no work, because its clock is not that of the database."""

    message = "the clock of this machine is not that of the database"


class Conflict(Exception):
    """Raised when another writer was first on a stream that is not a wallet."""

    def __init__(self, stream_id: UUID | str) -> None:
        super().__init__(f"stream {stream_id} has moved on")
        self.stream_id = stream_id


class NotPossible(Exception):
    """Raised when an operator's command contradicts a fact of the log; its text says which."""


class WrongCurrency(NotPossible):
    """Raised when CURRENCY is not the currency of the log."""

    def __init__(self, currency: str) -> None:
        super().__init__(f"CURRENCY must stay {currency}: the log of this installation holds it")
