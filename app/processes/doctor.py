"""Checks whether the settings and the installation are ready for production."""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Literal

from eventsourcing.utils import get_topic, resolve_topic
from msgspec import Struct

from app.bootstrap.container import Container
from app.bootstrap.gate import MEANING
from app.bootstrap.known_keys import active_clients, lost_keys, missing_keys
from app.bootstrap.providers import BY_ORDER, NETWORKS
from app.processes.demo import DEMO_CLIENT_ID
from app.processes.migrate import slow_search
from app.processes.providers import NEVER_RUN, check
from app.processes.readiness import what_is_missing, wrong_price
from app.security.key_file import SigningKeysError, is_read_only
from app.settings import Settings, WrongSetting, secrets_open_to_all
from domain.accounts.approvals import ALONE_AFTER, PEOPLE
from domain.accounts.organization import OF_MACHINES, ApiClient
from domain.accounts.wallet import SANDBOX_DEPOSIT
from domain.catalogue.plan import SIMULATED
from domain.cause import is_operator
from domain.errors import WrongCurrency
from domain.log.log import UNREADABLE
from projections.audit.covering import ChangedCheckpoint

BEHIND_MAX_S = 10.0  # Of a follower; a healthy one is behind for less than a second.
BACKUP_AGE_MAX = timedelta(days=7)
CHECKPOINT_AGE_MAX = timedelta(days=1)
# What writes the events that RELEASE_BEFORE cannot read; one of them closes the way back to it.
RELEASE_BEFORE = "514c2a3"
UNKNOWN_BEFORE = {
    "`PRICE_PER_LOOKUP` or `prices lookup`": "price.opened price.set",
    "the first checkpoint": "log_origin.fixed",
    "commands of operators": "operator_act.done",
    "approvals": "approval_limit.opened approval_limit.set proposal.made proposal.approved "
    "proposal.rejected proposal.granted proposal.used",
    "reading the links": "link.plan_started link.plan_ended",
    "`keys rotate pepper`": "api_client.secret_rehashed operator.key_rehashed",
    "`privacy erase`": "erasure.made",
    "play money": "deposit.played",
    "a request to send again all that failed": "webhook_request.redeliveries_asked",
    "a client with the scope `clients`": "organization.key_holders_changed secret_rotation.asked",
    "a page for a traveller": "handover.made link.handover_set",
    "its colour or logo": "organization.brand_set",
    "a sandbox that begins anew": "organization.sandbox_reset",
    "`org set --customer-number`": "organization.customer_number_set",
    "`wallet reverse` or `wallet payout`": "reversal.made payout.made wallet.reversed "
    "wallet.paid_out wallet.claim_changed",
    "`audit reconcile --book`": "settlement.booked",
}
UPGRADED = timedelta(days=30)  # For so long somebody may want to go back.

logger = logging.getLogger(__name__)


class Finding(Struct, frozen=True):
    """One problem. A fault must be mended; advice may be declined with a reason."""

    check: str
    severity: Literal["fault", "advice"]
    message: str


def examine(container: Container) -> list[Finding]:
    """Return everything that is not ready; checks that need a missing database are left out."""
    found = [*_settings(container.settings), *_tried("settings", container.check_settings)]
    if (missing := what_is_missing(container)) is not None:
        return [*found, Finding("database", "fault", missing)]
    if _has_demo(container):  # `serve --demo` sets one for itself.
        found = [each for each in found if each.check != "base plan"]
    found += _tried("settings", container.shared_settings.require)
    found += _tried("settings", container.currency.check)
    checks = [_hold, _keys, _operators, _start, _work, _webhooks]
    checks += [_months, _providers, _trials, _data, _checkpoints, _way_back]
    for each in checks:
        try:
            found += each(container)
        except UNREADABLE as error:
            found.append(Finding("log", "fault", str(error)))
    return [*dict.fromkeys(found)]


def announce(container: Container) -> None:
    """Log what this process works with, and what of it is not ready for production.

    This comes first, because a process that waits at a wrong place must name that place.
    """
    settings, location = container.settings, container.persistence.location
    logger.info(
        "%s begins: database %s %s; broker %s; lookups by %s; links by %s",
        container.role,
        "SQLite" if settings.is_on_files else "PostgreSQL",
        location,
        settings.broker_shown,
        settings.lookup_provider,
        settings.network_provider,
    )
    if (warning := warning_at_start(settings)) is not None:
        logger.warning(warning)
    for handler in logging.getLogger().handlers:
        handler.flush()


def warning_at_start(settings: Settings) -> str | None:
    """Say in one line what is not ready; None without faults, or on SQLite without RabbitMQ."""
    serves_partners = not (settings.is_on_files and settings.has_own_broker)
    faults = [each.message for each in _settings(settings) if each.severity == "fault"]
    if not serves_partners or not faults:
        return None
    return f"not ready for production: {'; '.join(faults)} (see: python -m app doctor)"


def split_database(settings: Settings) -> str | None:
    """Say that the processes share a broker and perhaps no database; None if they share both."""
    if not settings.is_on_files or settings.has_own_broker:
        return None
    return (
        f"DATABASE_URL is SQLite beside a broker: {settings.database_path.absolute()} is the log "
        "of this machine alone; name a PostgreSQL in DATABASE_URL or DATABASE_URL_FILE"
    )


def _settings(settings: Settings) -> Iterator[Finding]:
    if SIMULATED in settings.networks:
        named = settings.network_provider
        message = f"NETWORK_PROVIDER is {named}: no phone can use links of the simulated network"
        yield Finding("network", "fault", message)
    if not settings.network_base_plan and {*settings.networks} - BY_ORDER:
        message = "NETWORK_BASE_PLAN is not set: every sale of a link ends in 500 CONFIG_ERROR"
        yield Finding("base plan", "fault", message)
    if settings.sandbox:
        message = "SANDBOX is on: numbers and plans fail on purpose, and partners pay themselves"
        yield Finding("sandbox", "fault", message)
    if settings.webhooks_allow_private:
        message = "WEBHOOKS_ALLOW_PRIVATE is on: partners can have this network called"
        yield Finding("webhooks", "fault", message)
    if (split := split_database(settings)) is not None:
        yield Finding("sqlite", "fault", split)
    elif settings.is_on_files:
        message = "DATABASE_URL is SQLite: one process on one machine, gone with its disk"
        yield Finding("sqlite", "advice", message)
    for name in secrets_open_to_all():
        message = f"{name} names a file that every user of this machine may read: chmod 600"
        yield Finding("secrets", "advice", message)
    if not settings.public_url:
        message = f"PUBLIC_URL is not set: replies and documents name {settings.public}"
        yield Finding("public url", "advice", message)


def _tried(name: str, call: Callable[[], object]) -> Iterator[Finding]:
    try:
        call()
    except (SigningKeysError, WrongSetting, WrongCurrency, *UNREADABLE) as error:
        yield Finding(name, "fault", str(error))


def _keys(container: Container) -> Iterator[Finding]:
    notes, directory = container.notes, container.settings.signing_keys
    if directory.is_dir():
        yield from _tried("keys", lambda: is_read_only(directory))
    if notes.newest("signing_keys") and (missing := missing_keys(container)):
        yield Finding("keys", "fault", missing)
    if notes.newest("pepper"):
        yield from _tried("keys", container.pepper.newest)
    if notes.newest("webhook_key"):
        yield from _tried("keys", container.webhook_key.require)
    with suppress(SigningKeysError):  # It was said above.
        yield from (Finding("keys", "fault", lost) for lost in lost_keys(container))


def _operators(container: Container) -> Iterator[Finding]:
    names = container.operators.names()
    for operator in container.operators.all():
        if not operator.revoked and not operator.has_own_key:
            maker = operator.key.actor or "somebody"
            message = (
                f"operator {operator.name} has a key that {names.get(maker, maker)} has seen: its "
                "holder should replace it (operator rotate-key)"
            )
            yield Finding("operators", "fault", message)
        if operator.locked_out_at is not None:
            at = f"{operator.locked_out_at:%Y-%m-%d %H:%M} UTC"
            message = f"operator {operator.name} got a key with --locked-out on {at}"
            yield Finding("operators", "advice", message)
    for each in map(container.accounts.waiting, container.views.read(container.proposals.all)):
        if each.made.kind in PEOPLE and not is_operator(each.proposed_by):
            at = f"{each.created_on + ALONE_AFTER:%Y-%m-%d %H:%M}"
            message = (
                f"{each.proposed_by} asks without a key for one of an operator: where nobody can "
                f"approve, it works from {at} UTC on; `wallet adjustments reject {each.id}` ends it"
            )
            yield Finding("operators", "fault", message)


def _hold(container: Container) -> Iterator[Finding]:
    if container.gate.refresh_hold():
        yield Finding("hold", "fault", MEANING)


def _start(container: Container) -> Iterator[Finding]:
    if (wrong := wrong_price(container)) is not None:
        yield Finding("price", "fault", f"no process starts again: {wrong}")
    if (reason := container.gate.check()) is not None:
        yield Finding("clock", "fault", f"{reason}: set up NTP")


def _work(container: Container) -> Iterator[Finding]:
    for lag, behind_s in container.observed.follower_lags():
        if lag.failure is not None:
            message = f"{lag.name} has stopped at position {lag.position}: {lag.failure}"
            yield Finding("read models", "fault", message)
        elif lag.behind and (behind_s is None or behind_s > BEHIND_MAX_S):
            by = "" if behind_s is None else f" by {behind_s:.0f} s"
            message = f"{lag.name} is behind the log{by}: is its process running?"
            yield Finding("read models", "fault", message)


def _webhooks(container: Container) -> Iterator[Finding]:
    for each in container.views.read(container.webhook_endpoints.all):
        if each.disabled in {"failing", "gone"}:
            whose = f"{each.id} of organization {each.organization_id}"
            message = f"webhook endpoint {whose} is disabled ({each.disabled}): tell the partner"
            yield Finding("webhooks", "advice", message)


def _months(container: Container) -> Iterator[Finding]:
    if overdue := container.month_end.overdue():
        more = f" and {len(overdue) - 1} more" if overdue[1:] else ""
        why = container.cut_off.doubt() or "is the clock running?"
        message = f"month {overdue[0]}{more} has ended and is not closed: {why}"
        yield Finding("months", "fault", message)
    if (early := container.month_end.closed_too_early()) is not None:
        message = (
            f"month {early} is closed and has not ended: a clock was ahead; entries of this month "
            "stand in the statements of later ones"
        )
        yield Finding("months", "fault", message)


def _providers(container: Container) -> Iterator[Finding]:
    names = container.operators.names()
    for name, drained in container.gate.refresh_drains().items():
        who = drained.actor or "nobody known"
        by, since = names.get(who, who), f"{drained.timestamp:%Y-%m-%d %H:%M}"
        message = f"{name} is drained by {by} since {since} UTC: it gets no new work"
        yield Finding("providers", "advice", message)
    missing = [name for name in NETWORKS if name not in container.settings.networks]
    for name in container.views.read(container.links.networks_of, missing):
        message = f"links run on {name}, which NETWORK_PROVIDER does not name: none can change"
        yield Finding("network", "fault", message)


def _trials(container: Container) -> Iterator[Finding]:
    if container.gate.is_shut():  # Then it calls nobody; `_hold` or `_start` reports it.
        return
    try:
        checked = check(container)
    except WrongSetting:  # `examine` reports it.
        return
    for each in checked:
        if each.problem is not None:
            yield Finding("providers", "fault", f"{each.provider}: {each.problem}")
        elif each.verified == NEVER_RUN:
            message = f"{each.provider} was {NEVER_RUN}: python -m app providers smoke"
            yield Finding("providers", "advice", message)


def _data(container: Container) -> Iterator[Finding]:
    if container.persistence.may_change_events():
        message = "the user of DATABASE_URL could change events: give the processes a SERVICE_ROLE"
        yield Finding("roles", "advice", message)
    if slow := slow_search(container):
        yield Finding("search", "advice", slow)
    backup = container.notes.newest("backup")
    if backup is None and container.log.head():
        message = (
            "no backup is known: python -m app backup DIR (copies by other means are not seen)"
        )
        yield Finding("backup", "fault", message)
    elif backup is not None and container.clock() - backup.at > BACKUP_AGE_MAX:
        message = f"the last known backup was made on {backup.at:%Y-%m-%d}"
        yield Finding("backup", "fault", message)
    redo = container.settings.redo_dir
    if redo and not os.access(f"{redo}/.", os.W_OK):
        message = f"REDO_DIR: {redo} is missing or cannot be written: the list in it ends"
        yield Finding("redo", "fault", message)
    has_play_money = container.views.read(container.statements.has, SANDBOX_DEPOSIT)
    if has_play_money and not container.settings.sandbox:
        message = "wallets hold play money of a sandbox, which could buy: begin with an empty log"
        yield Finding("play money", "fault", message)
    for client in active_clients(container):
        if OF_MACHINES.intersection(client.scopes):
            message = f"client {client.client_id} may deposit money: is it a payment service?"
            yield Finding("deposits", "advice", message)
    if _has_demo(container):
        message = f"the client of the demo is active: python -m app client revoke {DEMO_CLIENT_ID}"
        yield Finding("demo", "fault", message)


def _checkpoints(container: Container) -> Iterator[Finding]:
    for stored in container.checkpoint_store.all():
        if isinstance(stored, ChangedCheckpoint):
            yield Finding("checkpoints", "fault", str(stored))
            return
    if failures := container.observed.audit()["audit_failures"]:
        message = f"the last nightly audit found {failures} failures: see audit verify"
        yield Finding("audit", "fault", message)
    if not container.settings.checkpoint_sink:
        message = "CHECKPOINT_SINK is not set: nobody outside can tell that the log was rewritten"
        yield Finding("checkpoints", "advice", message)
    elif container.log.head():
        newest = container.checkpoint_store.newest(delivered=True)
        if newest is None:
            message = "no checkpoint has reached CHECKPOINT_SINK yet"
            yield Finding("checkpoints", "fault", message)
        elif container.clock() - newest.signed.checkpoint.at > CHECKPOINT_AGE_MAX:
            at = newest.signed.checkpoint.at
            message = f"the newest checkpoint that reached CHECKPOINT_SINK is of {at:%Y-%m-%d}"
            yield Finding("checkpoints", "fault", message)


def _way_back(container: Container) -> Iterator[Finding]:
    """Tell of an installation that was upgraded lately whether the release before can return."""
    since = container.notes.newest("counters")  # Of the first `migrate` of this release.
    if since is None or not since.value or container.clock() - since.at > UPGRADED:
        return
    before = container.log.position_before(since.at)
    writers = {topic: who for who, topics in UNKNOWN_BEFORE.items() for topic in topics.split()}
    found = container.log.first(*map(resolve_topic, writers), after=before)
    text = f"release {RELEASE_BEFORE} can still return"
    if found is not None:
        topic = get_topic(type(found))
        text = f"release {RELEASE_BEFORE} cannot return: {writers[topic]} has written {topic}"
    yield Finding("way back", "advice", f"{text}; see: docs/deployment.md, Roll back")


def _has_demo(container: Container) -> bool:
    demo = container.log.find(ApiClient, ApiClient.id_of(DEMO_CLIENT_ID))
    return demo is not None and not demo.revoked
