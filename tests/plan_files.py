"""Plan files as operators write them."""

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from app.bootstrap.container import Container
from app.cli.import_files import read_link_file, read_plan_file
from app.cli.serving import sample_plans
from app.processes.demo import Demo, prepare_demo
from domain.catalogue.commands import Imported
from domain.catalogue.file_errors import FileRefused
from domain.catalogue.plan import Plan, key_of, plan_id
from domain.cause import Cause
from domain.links.importing import ImportedLinks

Written = dict[str, Any]


def covering(*countries: str, operators: int = 1) -> list[dict[str, Any]]:
    """Return the coverage of these countries, each with so many networks."""
    networks = [
        {"name": f"Operator {number}", "network_types": ["4G", "5G"]} for number in range(operators)
    ]
    return [{"country_code": code, "operators": networks} for code in countries]


def profile(profile_id: str = "sp-1") -> dict[str, str]:
    return {"id": profile_id, "name": f"Profile {profile_id}", "color": "#1F6FEB"}


def plan(called: str = "Germany 1 GB", /, **changes: Any) -> Written:
    """Return one plan; what is changed to Ellipsis is left out."""
    whole = {
        "provider_plan_id": called.lower().replace(" ", "-"),
        "name": called,
        "retail_price": "4.50",
        "currency": "USD",
        "data_mb": 1000,
        "validity_days": 7,
        "sponsor_profiles": [profile()],
        "coverage": covering("DE"),
        **changes,
    }
    return {member: value for member, value in whole.items() if value is not ...}


def written(*plans: object) -> bytes:
    return json.dumps({"plans": plans}).encode()


def import_plans(parts: Container, *plans: Written, request_id: str = "import") -> Imported:
    """Import a file with these plans."""
    settings = parts.settings
    entries = read_plan_file(written(*plans), settings.currency, settings.networks)
    return parts.catalogue.import_plans(entries, Cause(parts.clock(), request_id))


def take_over(
    parts: Container, cause: Cause, *links: Mapping[str, Any], dry_run: bool = False
) -> ImportedLinks:
    """Import a file with these links."""
    data = json.dumps({"links": links}).encode()
    entries = read_link_file(data, parts.networks.names)
    return parts.link_import.run(entries, cause, dry_run=dry_run)


def make_demo(parts: Container) -> Demo:
    """Prepare the demo, as `serve --demo` does."""
    return prepare_demo(parts, sample_plans(parts.settings.currency))


def refusal(parts: Container, *plans: Written) -> list[str]:
    """Import a file that has to be refused as a whole; return the lines that say why."""
    head = parts.log.head()
    try:
        import_plans(parts, *plans)
    except FileRefused as refused:
        assert parts.log.head() == head
        return refused.lines
    message = "the import was not refused"
    raise AssertionError(message)


def topics(parts: Container, after: int = 0) -> list[str]:
    """Return the events since a position, by topic."""
    recorded = parts.log.read(after, 1_000)
    return [type(each.event).TOPIC for each in recorded]  # type: ignore[attr-defined]  # every event has one


def stored(
    parts: Container,
    called: str = "Germany 1 GB",
    owner: UUID | None = None,
    network: str | None = None,
) -> Plan:
    """Return the plan that was imported under this name without an id."""
    key = key_of(owner, called.lower().replace(" ", "-"), called, network)
    return parts.log.get(Plan, plan_id(key))
