"""A process without HTTP: one role of the runtime, from its start to a clean end."""

import logging

from prometheus_client import Gauge

from app.bootstrap.container import Container
from app.processes.doctor import announce
from app.processes.lives import Lives
from app.processes.readiness import wait_until_ready, what_is_missing
from app.processes.runtime import Role, runs
from app.processes.stopping import READY, notify, stop_on_signals, wait_alive
from app.settings import WrongSetting
from app.watch.gauges import PREFIX, WITH_BROKER, ProcessName
from app.watch.metrics_server import MetricsServer, Need, pages

CLOCK_OFFSET = "clock_offset_seconds"

logger = logging.getLogger(__name__)


def run(container: Container, role: Role) -> None:
    """Work until SIGTERM or SIGINT; then finish the work in hand and leave the rest queued."""
    stop, lives = stop_on_signals(), Lives(container)
    listen(lives, role)
    announce(container)
    notify(READY)
    if not wait_until_ready(container, stop, sets_price=role == "clock"):
        return
    container.complete()
    try:
        lives.start(runs({role}))
        logger.info("%s is at work", role)
        wait_alive(stop)
    finally:
        logger.info("stopping")
        lives.stop()


def listen(lives: Lives, role: ProcessName, **others: Need) -> MetricsServer | None:
    """Answer probes and metrics on METRICS_PORT, if it is set.

    `/readyz` checks `others` besides the database, the clock and the broker. Raises WrongSetting
    when the port is taken.
    """
    container, settings = lives.now, lives.now.settings
    if not settings.metrics_port:
        return None
    if settings.metrics_port == settings.port and role in {"web", "serve"}:
        raise WrongSetting(f"PORT and METRICS_PORT are both {settings.port}: they must differ")
    needs: dict[str, Need] = {
        "database": lambda: what_is_missing(lives.now) or lives.now.shared_settings.difference(),
        "clock": lambda: lives.now.gate.reason(),  # noqa: PLW0108  # `now` changes.
        **others,
    }
    if role in WITH_BROKER:
        needs["broker"] = lambda: missing_broker(lives.now)
    registry = container.metrics.registry(role)
    about = "How far the clock of the database is ahead of that of this machine."
    offset = Gauge(f"{PREFIX}{CLOCK_OFFSET}", about, registry=registry)
    offset.set_function(lambda: lives.now.gate.off_s)
    shown = pages(registry, needs, lambda: _facts(lives.now))
    try:
        return MetricsServer(settings.host, settings.metrics_port, shown)
    except (OSError, ValueError) as error:
        where = f"HOST {settings.host} METRICS_PORT {settings.metrics_port}"
        reason = getattr(error, "strerror", "no such address")
        raise WrongSetting(f"cannot listen on {where}: {reason}") from error


def _facts(container: Container) -> dict[str, object]:
    mark = {"held": True} if container.gate.held else {}
    return {CLOCK_OFFSET: round(container.gate.off_s, 3), **mark}


def missing_broker(container: Container) -> str | None:
    try:
        container.observed.queues()
    except Exception as error:  # noqa: BLE001  # Any error counts. Its text may hold a password.
        return f"the broker cannot be reached ({type(error).__name__})"
    return None
