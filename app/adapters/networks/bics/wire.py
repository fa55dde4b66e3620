"""The replies of the API of BICS SIM for Things, as far as we read them.

Result codes are texts. Ids come as texts or numbers, so both are accepted.
"""

import msgspec

from app.adapters.networks.wire import Quantity
from domain.links.network import LinkStatus

Id = str | int

NONE = {"", "-"}  # How a field says that there is nothing.
BYTES_PER_MB = 1 << 20  # Balances are in bytes; the API's own MB are 1024 × 1024 of them.
MOMENT = "%d/%m/%Y %H:%M:%S"
DAY = "%d/%m/%Y"

# A life cycle by its name or its letter. An endpoint in any other one carries no traffic: it was
# never activated (`Pre-Active`), is in inventory (`Active-Inventory`) or has no SIM (`Hold`).
LIFE_CYCLES: dict[str, LinkStatus] = {
    **dict.fromkeys(("active", "a"), "active"),
    **dict.fromkeys(("suspended", "suspend", "s"), "suspended"),
}
NEVER_ACTIVATED = {"pre-active", "p"}


class Outcome(msgspec.Struct, rename="camel"):
    """How a call went: `result_code` "0" is success; `result_param` says more of each outcome."""

    class Result(msgspec.Struct, rename="camel"):
        result_code: str = ""
        result_description: str = ""

    result_code: str
    result_param: Result = msgspec.field(default_factory=Result)

    @property
    def code(self) -> str:
        """The detailed code, also given with a success."""
        return self.result_param.result_code


class Created(msgspec.Struct, rename="camel"):
    """The reply to a creation."""

    end_point_id: Id = ""


class ActivationCode(msgspec.Struct, rename="camel"):
    """`sm_dp_plus_adress` is spelled as the API spells it."""

    text_qr_code: str = ""
    sm_dp_plus_adress: str = ""
    matching_id: str = ""

    @property
    def lpa(self) -> str:
        """The code as text (GSMA SGP.22 §4.1)."""
        return self.text_qr_code or f"LPA:1${self.sm_dp_plus_adress}${self.matching_id}"


class Sim(msgspec.Struct, rename="camel"):
    """An eSIM of the account; `end_point_id` is `-` while it has no endpoint."""

    class Imsi(msgspec.Struct):
        class Supplier(msgspec.Struct, rename="camel"):
            sponsor_name: str = ""

        suppliers: list[Supplier] = msgspec.field(name="supplierIMSIList", default_factory=list)

    iccid: str
    sim_product: str = ""
    sim_status: str = ""
    end_point_id: Id = "-"
    imsis: list[Imsi] = msgspec.field(name="iMSIList", default_factory=list)
    activation_code: ActivationCode | None = None

    @property
    def endpoint_id(self) -> str | None:
        found = str(self.end_point_id)
        return None if found in NONE else found

    @property
    def is_free(self) -> bool:
        return self.endpoint_id is None and self.sim_status.casefold() == "ready to activate"

    @property
    def sponsors(self) -> list[str]:
        """The names of the sponsors on whose IMSIs it can run."""
        return [each.sponsor_name for imsi in self.imsis for each in imsi.suppliers]


class BasicInfo(msgspec.Struct, rename="camel"):
    """`name` is our reference. If `life_cycle` is missing, read the status of the SIM."""

    name: str = ""
    iccid: str = ""
    msisdn: Id | None = None
    life_cycle: str = ""


class PlanOn(msgspec.Struct, rename="camel"):
    """An add-on; its dates are `-` until it is first used."""

    plan_id: Id
    unique_id: Id
    plan_start_date: str | None = None
    plan_expiry_date: str | None = None


class Benefit(msgspec.Struct, rename="camel"):
    """The bytes of an add-on: `actual_balance` at its start, `balance` now."""

    name: str = ""
    unique_id: Id = ""
    actual_balance: Quantity = 0.0
    balance: Quantity = 0.0


class Info(msgspec.Struct, rename="camel"):
    """The state of an endpoint and its plans."""

    class Plans(msgspec.Struct):
        plan: list[PlanOn] = []

    class Benefits(msgspec.Struct):
        benefit: list[Benefit] = []

    basic_info: BasicInfo
    promotional_plans: Plans = msgspec.field(default_factory=Plans)
    benefit_info: Benefits = msgspec.field(default_factory=Benefits)


class DayUsage(msgspec.Struct, rename="camel"):
    """`total_volume` in MB."""

    date: str
    total_volume: Quantity = 0.0


class Statistics(msgspec.Struct, rename="camel"):
    """The days with traffic."""

    class Traffic(msgspec.Struct, rename="camel"):
        data_usage: list[DayUsage] = []

    response_param: Traffic = msgspec.field(default_factory=Traffic)


def status_of(life_cycle: str) -> LinkStatus:
    return LIFE_CYCLES.get(life_cycle.casefold(), "inactive")
