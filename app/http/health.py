"""Whether the service can serve."""

from typing import Annotated, Any, Final

from flask import Response
from msgspec import UNSET, Struct, UnsetType, to_builtins
from msgspec.structs import replace

from app.bootstrap.known_keys import missing_keys
from app.http.edge.errors import OUTAGES
from app.http.edge.operation import Group, Shown
from app.http.edge.problem_docs import RetryError, error_responses
from app.http.edge.problems import UNAVAILABLE
from app.http.edge.replies import json_response
from app.http.edge.request import Given
from app.http.edge.schemas import example_of, ref
from app.http.server.loop import LIVEZ
from app.watch.trouble import NOT_MIGRATED
from projections.engine.shape import Moment, format_time, means

READYZ, HEALTH = "/readyz", "/number-lookup/health"
PROBES = (LIVEZ, READYZ, HEALTH)

blueprint = Group("Health", description=__doc__)


class Health(Struct):
    """Whether lookups can be served."""

    ok: Annotated[bool, means("Whether lookups can be served now.")]
    timestamp: Annotated[Moment, means("When this was found (UTC).")]


class Liveness(Struct):
    """Whether the process answers."""

    ok: Annotated[bool, means(enum=[True])] = True


class Readiness(Struct, kw_only=True):
    """Whether the process can serve."""

    ok: Annotated[bool, means("Whether to send requests here.")]
    database: Annotated[bool, means("Whether it can be reached.")]
    migrated: Annotated[bool, means("Whether its tables are made.")]
    missing: Annotated[
        list[str], means("What stands in the way, in the words of the database.", example=[])
    ]
    failed_read_models: Annotated[
        list[str], means("Read models that have stopped; what they show is old.", example=[])
    ]
    signing_keys: Annotated[bool, means("Whether tokens can be signed and checked.")]
    clock_offset_seconds: Annotated[
        float,
        means("How far the database's clock is ahead of this machine's; over 2 it is not ready."),
        means(example=0.002),
    ]
    held: Annotated[
        bool | UnsetType, means("Only `true`: this is a held copy, which answers reads alone.")
    ] = UNSET


_WELL: Final = Health(**example_of(Health))
_READY: Final = Readiness(**example_of(Readiness))
_NOT_READY: Final = replace(_READY, ok=False, migrated=False, missing=[NOT_MIGRATED])


def _refuses(reply: Struct, name: str, description: str) -> dict[str, Any]:
    """Return the document of a 503: `reply`, or the error of a full server; `name` of both."""
    (refused,) = error_responses([UNAVAILABLE]).values()
    either = [ref(each.__name__) for each in (type(reply), RetryError)]
    blueprint.schemas[name] = {"anyOf": either}
    summary = {"description": f"{description} An error where too many requests wait."}
    content = {"content": {"application/json": {"schema": name, "example": to_builtins(reply)}}}
    return {"responses": {503: refused | summary | content}}


@blueprint.operation(
    f"GET {HEALTH}",
    reply=Shown(_WELL, description="Lookups can be served."),
    doc=_refuses(
        replace(_WELL, ok=False), "HealthOrError", "Lookups cannot be served; `ok` is false."
    ),
)
def number_lookup_health(given: Given[None]) -> Response:
    """Tell whether lookups can be served.

    They cannot while the event log is out of reach, while the clock of the process is wrong, while
    lookups are disabled for everybody, and while the lookup provider does not answer.
    """
    parts = given.parts
    can_work = parts.settings.number_lookup_enabled and not parts.gate.is_off()
    ok = can_work and _missing_log(given) is None and parts.provider.is_up()
    return json_response(Health(ok, format_time(parts.clock())), 200 if ok else 503)


@blueprint.operation(f"GET {LIVEZ}", reply=Shown(Liveness(), description="The process answers."))
def livez(_: Given[None]) -> Response:
    """Tell whether the process answers.

    It asks nothing else: restart a process only when this fails.
    """
    return json_response(Liveness())


@blueprint.operation(
    f"GET {READYZ}",
    reply=Shown(_READY, description="The process can serve."),
    doc=_refuses(_NOT_READY, "ReadinessOrError", "It cannot; the body says why."),
)
def readyz(given: Given[None]) -> Response:
    """Tell whether the process can serve.

    It can when the database is reached, its tables are made, the signing keys can be read and the
    clock is right. A read model that has stopped is named but does not count: every process would
    see the same, and old reads beat none.
    """
    parts, gate = given.parts, given.parts.gate
    away, no_keys = _missing_log(given), missing_keys(parts)
    failed, old = _read_models(given) if away is None else ([], away)
    other = parts.shared_settings.difference() if away is None else None
    missing = [each for each in (old, no_keys, gate.reason(), other) if each is not None]
    readiness = Readiness(
        ok=not missing,
        database=away is None,
        migrated=old is None,
        missing=missing,
        failed_read_models=failed,
        signing_keys=no_keys is None,
        held=gate.held or UNSET,
        clock_offset_seconds=round(gate.off_s, 3),
    )
    return json_response(readiness, 200 if readiness.ok else 503)


def _missing_log(given: Given[None]) -> str | None:
    """Say why the log, or another part of the database, cannot be used; None when it can."""
    try:
        return given.parts.log.fault() or given.parts.persistence.fault()
    except Exception as error:  # noqa: BLE001 - Whatever the error, the log cannot be reached.
        reason: str = given.extensions[OUTAGES].record(error)
        return reason


def _read_models(given: Given[None]) -> tuple[list[str], str | None]:
    """Return which ones have stopped, and why not all are built by this version, if so."""
    parts = given.parts
    try:
        known = parts.positions.all(parts.views)
    except Exception as error:  # noqa: BLE001 - Most likely a table is missing.
        return [], given.extensions[OUTAGES].record(error)
    positions = [known.get(model.name) for model in parts.models]
    versions = [model.version for model in parts.models]
    is_migrated = [position.version for position in positions if position is not None] == versions
    failed = [position.name for position in positions if position is not None and position.failure]
    return failed, None if is_migrated else NOT_MIGRATED
