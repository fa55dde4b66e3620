"""Time, devices and failures of your own, on installations that sell nothing real.

`application` registers these operations where SANDBOX is on; elsewhere there is no such path.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any, ClassVar, Final
from uuid import UUID

from marshmallow import Schema, ValidationError, validate
from marshmallow import validates_schema as validates_whole
from msgspec import Struct
from msgspec.structs import replace

from app.bootstrap.container import Container
from app.bootstrap.sandbox import (
    ACTIONS,
    CHANGE,
    FAILURES,
    HOURS_MAX,
    LOOKUP,
    NOT_COVERED,
    OVER,
    REQUEST,
    SELECTORS,
    STILL_LIVES,
    attempts_at,
    is_of,
)
from app.http.accounts import deposits
from app.http.accounts.input import Money, one_line
from app.http.catalogue import Country
from app.http.edge.input import KEY, NOT_A_KEY, Id, JsonNumber, Query, Text, choice
from app.http.edge.operation import OF_MONEY, Group
from app.http.edge.problems import INTERNAL, UNAVAILABLE, Problem
from app.http.edge.replies import Answer, example, time_or_null
from app.http.edge.request import Given
from app.http.links.finding import load_link, show_read
from app.http.links.replies import LinkMeta, PlayedLink
from app.http.lookups.input import PATTERN, PhoneNumber
from app.security.authorization import Caller
from app.security.rate_limits import Admission
from app.security.tokens import REVOKED_KEY
from domain.accounts.organization import Organization
from domain.accounts.wallet import SANDBOX_DEPOSIT
from domain.errors import (
    REFUSALS,
    InsufficientBalance,
    LinkInUse,
    NotFound,
    NotPossible,
    RateLimited,
    Refused,
    SpendingLimit,
    Unauthorized,
    ValidationFailed,
)
from domain.links.link import Link
from domain.money import MICROS, format_amount
from projections.engine.shape import MORE_MAY_COME, Moment, means, one_of

DEPOSIT_MICROS_MAX = 10_000 * MICROS
ATTEMPTS_MAX, MINUTES_MAX = 20, 60
MISSING = "Missing data for required field."
NOT_OF_IT = "Is not used by this action."
NOT_SO = {of: f"This operation fails so: {', '.join(ways)}." for of, ways in FAILURES.items()}
ONLY_ATTEMPTS = "It holds a thread for long, so it is played for a number of attempts."
ONE_SELECTOR = "Must be given without another of `plan_id`, `phone_number` and `key_prefix`."
NOT_ITS_SELECTOR = "Is not used for this operation."
SCRIPTS_MAX = 50  # Of an organization, at once.
TOO_MANY_SCRIPTS = f"{SCRIPTS_MAX} failures are scripted; end some of them first."
NO_SUCH_LINK = "You have no such link."
TOO_FAR = "The time of your links would be more than ten years ahead."
HOUR = timedelta(hours=1)
PATHS = "/v1/sandbox"  # What is asked there is never played.
SPENT_MICROS = 50 * MICROS  # Of a limit of as much, where one is played.
PER_MINUTE = Admission(60, 0, 1, is_over=True)  # Of an organization without a limit.
# Those of these codes are not logged as an outage, as ours would be.
OURS: Final = {each.code: each for each in (INTERNAL, UNAVAILABLE)}
# What an action needs, and what it may be given.
NEEDED: Mapping[str, set[str]] = {"use": {"percent"}, "roam": {"country_code"}}
ALLOWED = {**NEEDED, "use": {"percent", "activation_id"}, "expire": {"hours", "activation_id"}}

Operation = Annotated[
    str, means("What fails.", **one_of("SandboxOperation", FAILURES, MORE_MAY_COME))
]
Way = Annotated[str, means("How.", example="unavailable")]


class Playable(Struct):
    """A way in which something can fail."""

    operation: Operation
    failure: Way
    always: Annotated[
        str | None,
        means("What always fails so: a number, or the `provider_plan_id` of a plan."),
        means(example="+15005550001"),
    ]


PLAYABLE: Final = [Playable(of, *way) for of, ways in FAILURES.items() for way in ways.items()]
WAYS: Final = dict.fromkeys(each.failure for each in PLAYABLE)


class PlayMoneyBody(Schema):
    """How much play money, and a reference of your own."""

    example: ClassVar = {name: deposits.EXAMPLE.data[name] for name in ("amount", "reference")}

    amount = Money(
        f"More than 0 and at most {format_amount(DEPOSIT_MICROS_MAX)}.",
        DEPOSIT_MICROS_MAX,
        required=True,
    )
    reference = one_line("The same one again is the same deposit.")


class ClockBody(Schema):
    """How far to move the clock."""

    example: ClassVar = {"hours": 24}

    hours = JsonNumber("How many hours pass.", HOURS_MAX, required=True)
    link_id = Id("For this link only; else for all, also those to come.")


class SandboxQuery(Query):
    """Of which link to tell the time."""

    link_id = Id("Of which link to tell the time; else that of all.")


class ActionBody(Schema):
    """What happens to a link, and what more has to be said of it."""

    example: ClassVar = {"action": "use", "percent": 80}

    action = choice(ACTIONS, "What happens.", "SandboxAction", required=True)
    percent = JsonNumber("Of `use`, and needed there: how much of the plan is used then.", 100)
    country_code = Country(
        "Of `roam`, and needed there: where the device is then.",
        pattern="^[A-Za-z]{2}$",
        examples=["FR"],
    )
    hours = JsonNumber(
        "Of `expire`: in how many hours at the latest; else now.", HOURS_MAX, lowest=0
    )
    activation_id = Id("Of `use` and `expire`: which plan; else the one in use.")

    @validates_whole
    def check_action(self, data: Mapping[str, Any], **_: Any) -> None:
        action, given = data["action"], data.keys() - {"action"}
        wrong = {name: [NOT_OF_IT] for name in given - ALLOWED.get(action, set())}
        wrong |= {name: [MISSING] for name in NEEDED.get(action, set()) - given}
        if wrong:
            raise ValidationError(dict(wrong))


class FailureBody(Schema):
    """Which attempts fail, how, and how many or for how long."""

    example: ClassVar = {"operation": "lookup", "failure": "unavailable", "attempts": 1}

    operation = choice(FAILURES, "What fails.", "KnownSandboxOperation", required=True)
    failure = Text(
        "How, of those that `GET /v1/sandbox` lists for the operation; null: it fails no more.",
        required=True,
        allow_none=True,
        type="string",
        **one_of("SandboxFailure", WAYS, {"type": "null"}),
    )
    attempts = JsonNumber(
        "How many attempts; 1 if neither this nor `minutes` is given.", ATTEMPTS_MAX
    )
    minutes = JsonNumber("For how long; all attempts, unless these are counted.", MINUTES_MAX)
    plan_id = Id("Only attempts at this plan. Not of `lookup`.")
    phone_number = PhoneNumber(
        "Only attempts at this number. Of `lookup` and `request`.", pattern=PATTERN
    )
    key_prefix = Text(
        "Only requests whose `Idempotency-Key` begins so. Of `purchase` and `request`.",
        validate=validate.Regexp(KEY, error=NOT_A_KEY),
        examples=["ci-42-"],
    )

    @validates_whole
    def check_failure(self, data: Mapping[str, Any], **_: Any) -> None:
        operation, failure = data["operation"], data["failure"]
        if failure is None and (unused := data.keys() & {"attempts", "minutes"}):
            raise ValidationError({it: ["Is not used where nothing is to fail."] for it in unused})
        if failure is not None and failure not in FAILURES[operation]:
            raise ValidationError({"failure": [NOT_SO[operation]]})
        chosen = [each for each in SELECTORS[REQUEST] if each in data]
        wrong = {it: [NOT_ITS_SELECTOR] for it in chosen if it not in SELECTORS[operation]}
        if wrong := wrong or {each: [ONE_SELECTOR] for each in chosen[1:]}:
            raise ValidationError(dict(wrong))
        is_slow = failure == "slow" and operation in {LOOKUP, CHANGE}
        if is_slow and "minutes" in data and "attempts" not in data:
            raise ValidationError({"minutes": [ONLY_ATTEMPTS]})


class Scripted(Struct):
    """What fails next."""

    operation: Operation
    only: Annotated[
        str | None,
        means(
            "Of which attempts: `plan_id …`, `key_prefix …`, or `phone_number` and a digest of the "
            "number, which is not stored. Null: of all that nothing else is scripted for.",
            example="key_prefix ci-42-",
        ),
    ]
    failure: Way
    attempts_left: Annotated[int | None, means("How many times yet. Null: every time.", example=1)]
    until: Annotated[Moment | None, means("When that ends (UTC). Null: with the last attempt.")]


class Sandbox(Struct):
    """What can be played, and what is being played."""

    ahead_hours: Annotated[int, means("How far the time of your links is ahead.", example=24)]
    next: Annotated[list[Scripted], means("What fails next.")]
    failures: Annotated[list[Playable], means("What of yours can fail, and how.")]
    actions: Annotated[list[str], means("What can happen to a link.", example=[*ACTIONS])]


class Played(Given[Any]):
    """A request in a sandbox: what its organization has scripted for it refuses it."""

    def refuse_over_limit(self) -> None:
        """Refuse it as it was scripted, at the end of the checks, or because it is over a limit."""
        super().refuse_over_limit()
        owner, is_of_sandbox = self.organization_id, self.environ["PATH_INFO"].startswith(PATHS)
        if owner is None or is_of_sandbox:
            return

        plans, numbers = _bought(self)

        def can_be(attempts: str, how: str) -> bool:
            code = how.upper()
            is_meant = is_of(attempts, REQUEST, plans, numbers, self.key)
            if not is_meant or code not in {*self.operation.codes, *OURS}:
                return False
            return code not in OF_MONEY.split() or bool(_price_micros(self, owner))

        how = self.parts.counters.next_failure(owner, can_be)
        if how == RateLimited.code.lower():
            admission = self.admission or PER_MINUTE
            self.admission = admission._replace(left=0, is_over=True)
            super().refuse_over_limit()
        if how is not None:
            raise _refusal(self, owner, how.upper())


def _refusal(given: Given[Any], owner: UUID, code: str) -> Refused:
    currency = given.parts.settings.currency
    if code in OURS:
        said = OURS[code]
        made = Problem(said.status, str(said), code=code)
        made.retryable = said.retryable
        return made
    if code == InsufficientBalance.code:
        return InsufficientBalance(_price_micros(given, owner), 0, currency)
    if code == SpendingLimit.code:
        return SpendingLimit(_price_micros(given, owner), SPENT_MICROS, SPENT_MICROS, currency)
    return Unauthorized(REVOKED_KEY) if code == Unauthorized.code else REFUSALS[code]()


def _bought(given: Given[Any]) -> tuple[Sequence[UUID], Sequence[str]]:
    """Return the plans and the numbers that a request names."""
    sent = given.body | given.query
    plans, number = sent.get("add") or [sent.get("plan_id")], sent.get("phone_number")
    return [*filter(None, plans)], sent.get("phone_numbers") or [*filter(None, [number])]


def _price_micros(given: Given[Any], owner: UUID) -> int:
    parts, (plans, numbers) = given.parts, _bought(given)
    if numbers:
        own_micros = parts.log.get(Organization, owner).price_micros
        return len(numbers) * parts.prices.of_lookup(own_micros)
    offered = [parts.offer(owner, each) for each in plans]
    return sum(each.retail_price_micros for each in offered if each is not None)


STATE: Final = example("The sandbox.", Sandbox)

blueprint = Group("Sandbox", "links", description=__doc__, strict=True)
blueprint.loaders["identifier"] = load_link
money = Group(
    "Sandbox money",
    "wallet",
    description="Play money, which the books keep apart.",
    strict=True,
)
GROUPS = (blueprint, money)


@money.operation(
    "POST /v1/sandbox/deposits",
    body=PlayMoneyBody,
    reply=deposits.REPLIES,
    errors="BILLING_NOT_CONFIGURED",
    invalid=deposits.OTHER_AMOUNT,
)
def deposit_play_money(caller: Caller, given: Given[None]) -> Answer:
    """Add play money to your wallet.

    It may be repeated: the same reference is the same deposit, and with another amount it is
    refused. Its transaction has the kind `sandbox_deposit`.
    """
    return deposits.book(given, caller.organization_id, given.cause(), SANDBOX_DEPOSIT)


@blueprint.operation("GET /v1/sandbox", query=SandboxQuery, reply=STATE)
def read_sandbox(caller: Caller, given: Given[None]) -> Sandbox:
    """Read the sandbox.

    What can be played, and what is being played for your organization.
    """
    return _state_of(given.parts, caller.organization_id, _link_id(caller, given, given.query))


@blueprint.operation(
    "POST /v1/sandbox/clock", body=ClockBody, reply=STATE, invalid={"hours": TOO_FAR}
)
def move_clock(caller: Caller, given: Given[None]) -> Sandbox:
    """Let hours pass for your links, or for one.

    Their data are used up and their plans come nearer to their end; within seconds each is read
    anew, so lists and webhooks follow. Each request moves the clock; only a reset moves it back.
    """
    owner, link_id = caller.organization_id, _link_id(caller, given, given.body)
    state = _state_of(given.parts, owner)  # Before, because it may fail.
    try:
        ahead = given.parts.sandbox.advance(given.body["hours"] * HOUR, owner, link_id)
    except NotPossible:
        raise ValidationFailed({"hours": [TOO_FAR]}) from None
    return replace(state, ahead_hours=ahead // HOUR)


@blueprint.operation(
    "POST /v1/sandbox/reset", reply=STATE, errors="LINK_IN_USE", examples=[LinkInUse(STILL_LIVES)]
)
def reset_sandbox(caller: Caller, given: Given[None]) -> Sandbox:
    """Begin anew.

    Links and jobs that have ended are not listed any more, the time of your links is the present,
    and nothing is scripted. All your links must have ended. Money, transactions, webhooks, clients
    and used keys stay, and what has ended can still be read by its id.
    """
    given.parts.sandbox.reset(caller.organization_id, given.cause())
    return _state_of(given.parts, caller.organization_id)


@blueprint.operation(
    "POST /v1/sandbox/links/<identifier>",
    body=ActionBody,
    reply=example("The link.", PlayedLink, meta=LinkMeta),
    errors="NOT_SUPPORTED_BY_NETWORK LINK_ENDED NETWORK_UNAVAILABLE",
    invalid={"country_code": NOT_COVERED, "action": OVER},
)
def play_link(_: Caller, given: Given[Link]) -> Answer:
    """Let something happen to a link.

    `install` its eSIM on a device; `use` up a part of a plan; let the device `roam` in a country;
    let the network `suspend` or `deactivate` it; let a plan `expire`. What has happened stays so,
    and happens no second time: each may be repeated, and `changed` tells whether anything happened.
    """
    changed = given.parts.sandbox.happen(given.found, given.body["action"], given.body)
    return show_read(given, given.found, PlayedLink, changed=changed)


@blueprint.operation(
    "PUT /v1/sandbox/failures", body=FailureBody, reply=STATE, invalid={"failure": NOT_SO[LOOKUP]}
)
def script_failure(caller: Caller, given: Given[None]) -> Sandbox:
    """Let your next lookups, purchases, changes of links or requests fail.

    It takes the place of what was scripted for the operation, and for those of its attempts that a
    `plan_id`, a `phone_number` or a `key_prefix` picks; so it may be repeated. An attempt of
    a lookup is one call of the provider: a single lookup makes one, an item of a job at most three.
    An attempt of a purchase is one link, or one change of plans, whose first plan fails. One of
    `change` is one call of the network to suspend, reactivate, end or cancel a link. One of
    `request` is a request for any operation but those of the sandbox, if that can answer the code:
    it passes all checks of what it says, is refused with the code, and nothing is done.
    """
    parts, body, owner = given.parts, given.body, caller.organization_id
    minutes = body.get("minutes")
    until = None if minutes is None else parts.clock() + timedelta(minutes=minutes)
    attempts = body.get("attempts", 1 if minutes is None else None)
    operation: str = body["operation"]
    by = [attempts_at(operation, each, body[each]) for each in SELECTORS[operation] if each in body]
    [wanted] = by or [operation]
    others = {each[0] for each in parts.counters.scripted_failures(owner)} - {wanted}
    if body["failure"] is not None and len(others) >= SCRIPTS_MAX:
        raise ValidationFailed({"operation": [TOO_MANY_SCRIPTS]})
    parts.counters.script_failure(owner, wanted, body["failure"], attempts, until)
    return _state_of(parts, owner)


def _link_id(caller: Caller, given: Given[None], sent: Mapping[str, Any]) -> UUID | None:
    """Return which link is meant; one that the organization does not have is refused."""
    try:
        return load_link(caller, given, str(sent["link_id"])).id if "link_id" in sent else None
    except NotFound:
        raise ValidationFailed({"link_id": [NO_SUCH_LINK]}) from None


def _state_of(parts: Container, owner: UUID, link_id: UUID | None = None) -> Sandbox:
    scripted = [
        Scripted(of.partition(" ")[0], of.partition(" ")[2] or None, how, left, time_or_null(until))
        for of, how, left, until in parts.counters.scripted_failures(owner)
    ]
    ahead = parts.counters.simulated_ahead((owner, link_id) if link_id else (owner,))
    return Sandbox(ahead // HOUR, scripted, PLAYABLE, [*ACTIONS])
