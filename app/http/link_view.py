"""A link as partners read it: its eSIM, what is left of its plans, and where they work."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote
from uuid import UUID

from app.http.envelope import format_time
from domain.commands.link_readings import LinkReading, PlanStage, PlanUsage
from domain.countries import country_name
from domain.link import Link
from domain.network import NetworkStatus, Usage
from domain.plan import Operator, PlanTerms
from projections.links import LinkRow

APPLE = "https://esimsetup.apple.com/esim_qrcode_provisioning?carddata="
ANDROID = "https://esimsetup.android.com/esim_qrcode_provisioning?carddata="
MB_DECIMALS = 3  # A kilobyte: what is finer comes from adding fractions up.


def show_link(reading: LinkReading, terms: Mapping[UUID, PlanTerms]) -> dict[str, Any]:
    """Return a link with its plans; `terms` are the present ones of these plans, by id."""
    link = reading.link
    assert link.activated_at is not None
    return {
        "id": link.id,
        "name": link.requested.name,
        "iccid": link.iccid,
        "status": reading.status,
        "created_at": format_time(link.activated_at),
        "sponsor_profile": link.sponsor_profile,
        "installed_at": _format(link.installed_at),
        "first_used_at": _format(link.first_used_at),
        **_codes(reading.lpa),
        **_usage(reading.plans, reading.usage, reading.as_of),
        "activations": [_activation(each) for each in reading.plans],
        "coverage_data": _coverage(reading.plans, terms),
    }


def show_row(
    row: LinkRow, plans: Sequence[PlanUsage], usage: Usage | None, lpa: str | None
) -> dict[str, Any]:
    """Return a link of a list; `plans` are the current ones with their usage."""
    return {
        "id": row.id,
        "name": row.name,
        "iccid": row.iccid,
        "status": row.status,
        "created_at": format_time(row.created_at),
        "sponsor_profile": row.sponsor_profile,
        "installed_at": _format(row.installed_at),
        "first_used_at": _format(row.first_used_at),
        **_codes(lpa),
        **_usage(plans, usage, usage.as_of if usage is not None else row.created_at),
    }


def show_status(link: Link, status: NetworkStatus, *, cached: bool) -> dict[str, Any]:
    """Return whether and where a link is connected."""
    return {
        "link_id": link.id,
        "iccid": link.iccid,
        "status": status.status,
        "connected": status.connected,
        "network": status.network,
        "last_seen_at": _format(status.last_seen_at),
        "as_of": format_time(status.as_of),
        "cached": cached,
    }


def _codes(lpa: str | None) -> dict[str, Any]:
    """Return the activation code and the pages that install it; null for one that is not known."""
    carddata = quote(lpa, safe="") if lpa is not None else None
    return {
        "lpa_profile": lpa,
        "apple_activation_url": carddata and APPLE + carddata,
        "android_activation_url": carddata and ANDROID + carddata,
    }


def _usage(plans: Sequence[PlanUsage], usage: Usage | None, as_of: datetime) -> dict[str, Any]:
    in_use = [each for each in plans if each.stage is PlanStage.IN_USE]
    ends = [each.expires_at for each in in_use if each.expires_at is not None]
    return {
        "msisdn": usage.msisdn if usage is not None else None,
        "data_used_mb": round(sum((each.used_mb for each in plans), 0.0), MB_DECIMALS),
        "data_remaining_mb": round(sum((each.remaining_mb for each in plans), 0.0), MB_DECIMALS),
        "data_total_mb": float(sum(each.activation.plan.data_mb for each in plans)),
        "expires_at": _format(max(ends, default=None)),
        "usage_as_of": format_time(as_of),
    }


def _activation(each: PlanUsage) -> dict[str, Any]:
    plan = each.activation.plan
    return {
        "id": each.activation.id,
        "plan_id": plan.plan_id,
        "plan_name": plan.name,
        "status": "expired" if each.is_expired else "active",
        "activation_date": format_time(each.activation.bought_at),
        "expiry_date": _format(each.expires_at),
        "data_used_mb": round(each.used_mb, MB_DECIMALS),
        "data_remaining_mb": round(each.remaining_mb, MB_DECIMALS),
        "coverage_countries": plan.countries,
    }


def _coverage(plans: Sequence[PlanUsage], terms: Mapping[UUID, PlanTerms]) -> list[dict[str, Any]]:
    """Return the countries of the active plans as bought, with the networks of today."""
    found: dict[str, dict[str, Operator]] = {}
    for bought in (each.activation.plan for each in plans if not each.is_expired):
        today = terms.get(bought.plan_id)
        networks = {each.country_code: each.operators for each in today.coverage} if today else {}
        for code in bought.countries:
            _merge(found.setdefault(code, {}), networks.get(code, []))
    return [
        {
            "country_code": code,
            "country_name": country_name(code),
            "operators": [*operators.values()],
        }
        for code, operators in sorted(found.items())
    ]


def _merge(operators: dict[str, Operator], more: Sequence[Operator]) -> None:
    """Add networks by name; one that is there gets the generations that it lacks."""
    for each in more:
        known = operators.get(each.name)
        types = [*known.network_types, *each.network_types] if known else each.network_types
        operators[each.name] = Operator(each.name, [*dict.fromkeys(types)])


def _format(moment: datetime | None) -> str | None:
    return None if moment is None else format_time(moment)
