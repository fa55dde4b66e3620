"""Organizations with plans of their own, and the links that they buy."""

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from werkzeug.test import TestResponse

from app.adapters.networks.simulated.network import Fault
from tests.app.http.service import Service, Tenant
from tests.plan_files import covering, import_plans, plan, profile

LINKS = "/v1/links"
MISSING = "8c1f0c7e-5b1f-4a5e-8a44-0f6f6f0e2d11"
BASIC, MORE, FREE = "basic", "more", "free"
OTHER_PROFILE, UNSOLD, DISABLED = "other-profile", "unsold", "disabled"
PROFILE = {"id": "sp-1", "name": "Profile sp-1", "color": "#1F6FEB"}


def own_plans(owner: str) -> list[dict[str, Any]]:
    """Return what a buyer is offered; the sandbox plans cost 1.00."""
    own = {"organization_id": owner}
    sandbox = [
        plan(fault.value, retail_price="1.00", coverage=covering("US"), **own) for fault in Fault
    ]
    elsewhere = [
        {"country_code": "FR", "operators": [{"name": "Operator 0", "network_types": ["5G", "3G"]}]}
    ]
    return [
        *sandbox,
        plan(BASIC, coverage=covering("MC", "FR", operators=2), **own),
        plan(MORE, retail_price="2.00", data_mb=500, coverage=elsewhere, **own),
        plan(FREE, retail_price="0.00", **own),
        plan(OTHER_PROFILE, sponsor_profiles=[profile("sp-2")], **own),
        plan(UNSOLD, provider_plan_id=None, **own),
        plan(DISABLED, enabled=False, **own),
    ]


class Buyer(Tenant):
    """A tenant that knows its plans by what they are called."""

    def __init__(self, tenant: Tenant) -> None:
        super().__init__(tenant.service, tenant.id, tenant.client_id)
        plans = [{**each, "id": str(uuid4())} for each in own_plans(str(tenant.id))]
        self.plans: dict[str, str] = {each["name"]: each["id"] for each in plans}
        import_plans(tenant.service.container, *plans)
        if tenant.service.runs:  # Nobody projects in one that does not.
            tenant.service.until_projected("plans")

    def create(self, called: str = BASIC, key: str = "", **body: Any) -> TestResponse:
        """Ask for a link with one of the plans."""
        return self.post(LINKS, json={"plan_id": self.plans[called], **body}, key=key)

    def link(self, called: str = BASIC, **body: Any) -> dict[str, Any]:
        """Buy a link and return it."""
        reply = self.create(called, **body)
        assert reply.status_code == 201, reply.text
        bought: dict[str, Any] = reply.json["data"]
        return bought

    def change(self, link: dict[str, Any], key: str = "", **body: Sequence[str]) -> TestResponse:  # type: ignore[override]  # Of plans.
        """Ask for a change of a link's plans; `add` names them by what they are called."""
        named = {
            **body,
            **({"add": [self.plans[each] for each in body["add"]]} if "add" in body else {}),
        }
        return self.open("PUT", f"{LINKS}/{link['id']}/plans", key, json=named)

    def read(self, link: dict[str, Any], more: str = "", **query: object) -> TestResponse:
        return self.get(f"{LINKS}/{link['id']}{more}", query_string=query)


def buyer(service: Service, balance: str | None = "100.00") -> Buyer:
    return Buyer(service.tenant(balance))
