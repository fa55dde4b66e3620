"""Every refusal that a caller can meet: its class is the one place that says all of it.

From it come the replies, their examples in the OpenAPI document, and the table of the guide.

Refused
├── Unauthorized
├── OrganizationNotFound · OrganizationSuspended · OrganizationInactive · InsufficientScope
├── NumberLookupDisabled · BillingNotConfigured · InsufficientBalance · SpendingLimit
├── ValidationFailed · NotFound
├── IdempotencyKeyReused · IdempotencyInProgress · JobFinished
├── NotSupportedByNetwork · LinkBusy · LinkEnded · LinkInUse · CancelWindowOver
├── WebhookLimit · WebhookDisabled · LastClient
├── NotAcceptable · RateLimited
├── ConfigError
├── IncompleteNetworkAnswer · ProvisioningError · NetworkUnavailable
└── NumberLookupUnavailable · ServiceUnavailable
    ├── InstallationHeld
    └── ClockOff
Conflict          another writer was first on our own stream: reload and decide anew
ForOperator       one line tells an operator why something cannot be done
└── NotPossible   an operator asked for something that another fact forbids
    └── WrongCurrency
"""

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn
from uuid import UUID

from domain.money import format_amount


class Refused(Exception):
    """A request that is declined for a reason that its sender can read; `code` never changes.

    The guide of partners says `cause`, or else the message, and `advice`: what they can do.
    """

    code: str
    status: int  # Of HTTP.
    message: str = ""
    cause: str = ""
    advice: str
    retryable: bool | None = None  # Stated in the reply unless it is None.
    retry_after_s: int | None = None  # After how long a retry can help, if known.
    is_bound: bool = False  # To its Idempotency-Key: a repeat gets the same refusal.
    example_of: tuple[Any, ...] = ()  # What the one in the document is made of.

    def __init__(self, message: str = "", **details: Any) -> None:
        super().__init__(message or self.message)
        self.details = details

    @classmethod
    def example(cls) -> "Refused":
        """Return one as the document shows it."""
        return cls(*cls.example_of)


class Unauthorized(Refused):
    """Raised when a token is missing, invalid or expired, or its client is revoked.

    Its message says which, in plain ASCII without quotes, because a header repeats it.
    """

    code, status = "UNAUTHORIZED", 401
    message = "A valid access token is required."
    cause = "the token is missing, malformed, expired, revoked or not ours"
    advice = "get a new token, once"


class OrganizationNotFound(Refused):
    """Raised when a request names no organization, or one that does not exist."""

    code, status = "ORGANIZATION_NOT_FOUND", 403
    message = "The organization of this request is not registered."
    cause = "the token names no organization and `X-Organization-Id` is missing or wrong"
    advice = "send the header, if your client is a machine-to-machine one"


class OrganizationSuspended(Refused):
    """Raised for every request of a suspended organization."""

    code, status = "ORGANIZATION_SUSPENDED", 403
    message = "The organization is suspended."
    advice = "ask whoever runs this installation"


class OrganizationInactive(Refused):
    """Raised for every request of an organization that is neither active nor suspended."""

    code, status = "ORGANIZATION_INACTIVE", 403
    message = "The organization is not active."
    advice = "ask whoever runs this installation"


class InsufficientScope(Refused):
    """Raised when a valid token lacks the scope of the operation (RFC 6750 §3.1)."""

    code, status = "INSUFFICIENT_SCOPE", 403
    message = "The access token does not carry the scope of this operation."
    cause = "the token lacks the scope that the message names"
    advice = "ask for a token with it"


class NumberLookupDisabled(Refused):
    """Raised when lookups are off for everybody or for this organization."""

    code, status = "NUMBER_LOOKUP_DISABLED", 403
    message = "Number lookup is disabled."
    cause = "lookups are off for you, or for everybody"
    advice = "ask whoever runs this installation"


class BillingNotConfigured(Refused):
    """Raised when something has a price and the organization has no wallet."""

    code, status = "BILLING_NOT_CONFIGURED", 403
    message = "The organization has no wallet to charge."
    cause = "it has a price, and you have no wallet"
    advice = "ask whoever runs this installation"


class InsufficientBalance(Refused):
    """Raised by the wallet when a charge exceeds its balance."""

    code, status = "INSUFFICIENT_BALANCE", 402
    cause = "the balance is too low; `required`, `available`, `currency`"
    advice = "deposit, then the same request"
    example_of = (4_500_000, 1_000_000, "USD")

    def __init__(
        self, required_micros: int, available_micros: int, currency: str, claim_micros: int = 0
    ) -> None:
        required, available = format_amount(required_micros), format_amount(available_micros)
        message = (
            f"The wallet balance does not cover this charge: {required} {currency} is required, "
            f"{available} {currency} is available."
        )
        if claim_micros:
            claim = f"{format_amount(claim_micros)} {currency} is owed for a reversed deposit"
            message += f" {claim}, which the next deposit settles first."
        super().__init__(message, required=required, available=available, currency=currency)


class SpendingLimit(Refused):
    """Raised by the wallet when a charge would go past what may be spent in this month."""

    code, status = "SPENDING_LIMIT", 402
    cause = (
        "it would go past [your limit for the month](money.md#a-limit-for-each-month); "
        "`limit`, `spent`, `required`, `currency`"
    )
    advice = "wait for the next month, or ask whoever runs this installation"
    example_of = (4_500_000, 49_000_000, 50_000_000, "USD")

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

    code, status = "VALIDATION_ERROR", 422
    message = "The request is not valid."
    cause = "a field is wrong; see below"
    advice = "correct the field"
    example_of = ({"name": ["Unknown field."]},)

    def __init__(self, fields: Mapping[str, Sequence[str]]) -> None:
        super().__init__()
        self.details = {name: list(messages) for name, messages in fields.items()}


class NotFound(Refused):
    """Raised if a resource does not exist or is of another organization; both look alike."""

    code, status = "NOT_FOUND", 404
    message = "The resource does not exist."
    cause = "there is no such thing, it is not yours or erased, or the path is wrong"
    advice = "check id and path"


KEY_ERASED = "What this Idempotency-Key stands for has been erased."


class IdempotencyKeyReused(Refused):
    """Raised when a key that is in use comes with another request."""

    code, status = "IDEMPOTENCY_KEY_REUSED", 422
    cause = "the key was used for another request; the message says which"
    advice = "take a new key"
    example_of = ("plan_id",)

    def __init__(self, *differing: str, message: str = "") -> None:
        others = " and ".join(differing)  # Names of what a request holds.
        was = f"This Idempotency-Key was used for a request with another {others}; use a new key."
        super().__init__(message or was)


def refuse_other(**differs: bool) -> None:
    """Raise IdempotencyKeyReused with the names of what differs from the request of a key."""
    if any(differs.values()):
        raise IdempotencyKeyReused(*(name for name, other in differs.items() if other))


class IdempotencyInProgress(Refused):
    """Raised when the first request of a key does not end in time."""

    code, status = "IDEMPOTENCY_IN_PROGRESS", 409
    message = "The first request with this Idempotency-Key is still running."
    retryable = True
    cause = "the first request with this key still runs"
    advice = "wait, then the same request"


class NotAcceptable(Refused):
    """Raised when a caller takes none of the types in which a reply can come."""

    code, status = "NOT_ACCEPTABLE", 406
    cause = "`Accept` names no type that the reply has; the message lists them"
    advice = "ask for one, or `*/*`"

    def __init__(self, *served: str) -> None:
        super().__init__(f"`Accept` names none of the types of this reply: {', '.join(served)}.")


class RateLimited(Refused):
    """Raised when a caller asks too often."""

    code, status = "RATE_LIMITED", 429
    message = "Too many requests."
    retryable = True
    cause = (
        "your organization is beyond one of the [limits](limits.md#at-once); nothing was charged"
    )
    advice = "wait, then the same request"

    def __init__(self, message: str = "", retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


NO_BASE_PLAN = "The network's default base plan is not configured."
OTHER_CURRENCY = "The service is set to another currency than that of the wallet or the plan."


class ConfigError(Refused):
    """Raised when the operator of this service has not made a setting that a request needs."""

    code, status = "CONFIG_ERROR", 500
    message = "The service is not configured for this; its operator has to act."
    retryable = False
    cause = "this installation is not set up for this operation"
    advice = "tell whoever runs it"


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
NOT_STARTED = "No worker has begun it in time, so the network was asked for nothing"
NETWORK_REASONS = (UNREACHABLE, LATE, REJECTED, NO_ESIM)
_FINAL = {REJECTED: "it would be refused again", NO_ESIM: "choose another plan"}


class IncompleteNetworkAnswer(Refused):
    """Raised when the network answered without what was asked of it.

    `outcome` says in half sentences what happened to the money and to the rest.
    """

    code, status = "PROVISIONING_FAILED", 502
    retryable = False
    cause = "the network answered, but without what was asked of it; the money is back"
    advice = "choose another plan, and tell us"

    def __init__(self, *outcome: str, **details: Any) -> None:
        happened = "The network answered, but without what was asked of it"
        super().__init__("; ".join([happened, *outcome]) + ".", reason=REJECTED, **details)


class ProvisioningError(Refused):
    """Raised when the network failed, refused, had no eSIM or took too long; `reason` says which.

    `outcome` says in half sentences what happened to the money and to the rest. `again` says how to
    try again, if that makes sense. `started`: a worker has taken it up, so the network was asked.
    """

    code, status = "PROVISIONING_ERROR", 502
    cause = "the network failed; `reason` says why; the money is back"
    advice = "see below"

    def __init__(
        self,
        reason: str | None = None,
        *outcome: str,
        again: str = "try again",
        started: bool = True,
        **details: Any,
    ) -> None:
        parts = [
            _HAPPENED[reason] if started else NOT_STARTED,
            *outcome,
            _FINAL.get(reason or "", again),
        ]
        known = {} if reason is None else {"reason": reason}
        super().__init__("; ".join(parts) + ".", **known, **details)
        self.retryable = reason not in _FINAL


class NotSupportedByNetwork(Refused):
    """Raised for what the network of a link cannot do; see the link's `capabilities`."""

    code, status = "NOT_SUPPORTED_BY_NETWORK", 409
    message = "The network of this link cannot do this."
    retryable = False
    advice = "look at its `capabilities` first"


class JobFinished(Refused):
    """Raised for an operation that needs a job that has not ended."""

    code, status = "JOB_FINISHED", 409
    message = "The job has ended: there is nothing left to cancel."
    retryable = False
    cause = "the job has ended, and cannot be cancelled any more"
    advice = "read its results"


class LinkBusy(Refused):
    """Raised while another change of a link is open; nothing was done."""

    code, status = "LINK_BUSY", 409
    message = "Another change of this link is still running; try again."
    retryable = True
    cause = (
        "something else that changes this link still runs, for which a change of plans has waited "
        "15 s, end and cancel 5 s; suspend and reactivate do not wait for a change of plans, but "
        "5 s for the end of the link"
    )
    advice = "the same request after `Retry-After`"


class LinkEnded(Refused):
    """Raised for an operation that needs a link that has not ended."""

    code, status = "LINK_ENDED", 409
    message = "This link has ended."
    retryable = False
    advice = "buy another one"


class LinkInUse(Refused):
    """Raised when a link cannot be cancelled because it was installed or used."""

    code, status = "LINK_IN_USE", 409
    message = "This link has been installed or used, so it can be ended but not cancelled."
    retryable = False
    cause = (
        "the link to cancel was installed or used, or one lives where a sandbox is to begin anew"
    )
    advice = "end it, without money back"


class CancelWindowOver(Refused):
    """Raised when a link is too old to be cancelled."""

    code, status = "CANCEL_WINDOW_OVER", 409
    message = "The time in which this link could be cancelled is over; it can be ended."
    retryable = False
    cause = "the link is too old, or this service cancels none"
    advice = "end it, without money back"


class WebhookLimit(Refused):
    """Raised when an organization already has all the webhook endpoints it may have."""

    code, status = "WEBHOOK_LIMIT", 409
    message = "An organization has at most 10 webhook endpoints; delete one first."
    retryable = False
    cause = "your organization has ten webhooks"
    advice = "delete one first"


class WebhookDisabled(Refused):
    """Raised for an operation that needs an enabled webhook endpoint."""

    code, status = "WEBHOOK_DISABLED", 409
    message = "This webhook endpoint is disabled; enable it first."
    retryable = False
    cause = "the webhook is disabled, so nothing is sent to it"
    advice = "enable it first, with PATCH"


class LastClient(Refused):
    """Raised when a partner would end the last client that may manage those of its organization."""

    code, status = "LAST_CLIENT", 409
    message = "This is the last client with the scope clients, so it stays."
    retryable = False
    cause = "no other client of your organization has the scope `clients`"
    advice = "ask whoever runs this installation to make another one, or to revoke this one"


class NetworkUnavailable(Refused):
    """Raised when a live answer was asked for and the network gave none."""

    code, status = "NETWORK_UNAVAILABLE", 503
    message = "The network cannot be reached."
    retryable = True
    cause = "the network gave no live answer"
    advice = "read without `live`, or wait"


class NumberLookupUnavailable(Refused):
    """Raised when the lookup provider gave no usable answer; nothing was charged.

    It is not `retryable` if the provider works and has no data for this number.
    """

    code, status = "NUMBER_LOOKUP_UNAVAILABLE", 503
    message = "The lookup service is unavailable."
    cause = (
        "the lookup provider is away, or (`retryable` is false) has no data for this number; "
        "nothing was charged"
    )
    advice = "where `retryable` is true, wait, then the same request"

    def __init__(self, message: str = "", *, retryable: bool = True) -> None:
        super().__init__(message)
        self.retryable = retryable


class ServiceUnavailable(Refused):
    """Raised when the log cannot be reached or has no room for another command."""

    code, status = "SERVICE_UNAVAILABLE", 503
    message = "The service cannot reach its log; try again."
    retryable = True
    cause = (
        "our own storage cannot be reached, a machine is out of order, what you ask for is not in "
        "our lists yet, or too many requests wait here"
    )
    advice = "wait, then the same request with the same key"


class InstallationHeld(ServiceUnavailable):
    """Raised for what would act on the world in a copy that nobody has released."""

    message = "This installation is a held copy: it answers reads only, until it is released."


class ClockOff(ServiceUnavailable):
    """Raised in a process that does no work, because its clock is not that of the database."""

    message = "the clock of this machine is not that of the database"


REFUSALS: Mapping[str, type[Refused]] = {each.code: each for each in Refused.__subclasses__()}


class Conflict(Exception):
    """Raised when another writer was first on a stream that is not a wallet."""

    def __init__(self, stream_id: UUID | str) -> None:
        super().__init__(f"stream {stream_id} has moved on")
        self.stream_id = stream_id


class ForOperator(Exception):
    """Raised with the one line that tells an operator why something cannot be done."""


class NotPossible(ForOperator):
    """Raised when an operator's command contradicts a fact of the log; its text says which."""


def refuse(message: str) -> NoReturn:
    raise NotPossible(message)


class WrongCurrency(NotPossible):
    """Raised when CURRENCY is not the currency of the log."""

    def __init__(self, currency: str) -> None:
        super().__init__(f"CURRENCY must stay {currency}: the log of this installation holds it")
