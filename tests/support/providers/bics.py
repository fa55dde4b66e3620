"""A scripted BICS SIM for Things: our reading of its public documentation and public clients.

It has no machine-readable specification. What nobody tells in public is chosen here so that an
adapter has the harder case: a creation is not idempotent, additions have no reference, a refused
token may hide in a 200.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from domain.cause import Clock, utc_now
from tests.support.providers.server import Answer, FaultKind, Handler, Request, ScriptedServer

USERNAME, PASSWORD = "acme-api", "correct horse battery"
BASE_PLAN, ROAMING_PROFILE, APN_GROUP = "base", "3017", "PDP_1785"
SLOW_PLAN = "slow-plan"  # A change with it is done after SLOW, and nobody waits for the reply.
SLOW = timedelta(seconds=170)
SPONSORS = ("sp-atlas", "sp-meridian")
PRODUCT = "IPP Consumer eUICC LPWAN"
SIMS = 260
MB = 1 << 20
MB_PER_HOUR = 20.0
MOMENT = "%d/%m/%Y %H:%M:%S"
NO_ENDPOINT = "Endpoint does not exist"


@dataclass
class Plan:
    """What an add-on gives."""

    data_mb: int = 1_000
    validity_days: int = 7


PLANS = {
    "eu-3gb-30d": Plan(3_000, 30),
    **{name: Plan() for name in ("eu-1", "eu-1gb-7d", "eu-2", "eu-3", SLOW_PLAN)},
}


@dataclass
class AddonOn:
    """An add-on of an endpoint; it begins with its first traffic."""

    unique_id: int
    plan_id: str
    left_mb: float
    began_at: datetime | None = None
    expires_at: datetime | None = None


@dataclass
class SimCard:
    iccid: str
    sponsor: str
    product: str
    matching_id: str
    endpoint_id: str | None = None


@dataclass
class EndpointOf:
    endpoint_id: str
    name: str
    iccid: str | None
    life_cycle: str = "Active"
    addons: list[AddonOn] = field(default_factory=list)
    days: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """A line of the ledger: an add-on that was bought on an endpoint with this name."""

    endpoint_id: str
    name: str
    plan_id: str
    unique_id: int


class BicsServer(ScriptedServer):
    """One account with a stock of eSIMs.

    `hides_401`: a token that is not taken is told inside a 200. `bought` and `taken_off` are the
    ledger: an add-on is in the second when it was removed, alone or with its endpoint.
    """

    prefix = "/api"

    def __init__(self, sims: int = SIMS, clock: Clock = utc_now) -> None:
        self.hides_401 = True
        self.offset = timedelta(0)
        self.clock = clock
        self.tokens: set[str] = set()
        self.sims = {sim.iccid: sim for sim in map(_sim, range(sims))}
        self.endpoints: dict[str, EndpointOf] = {}
        self.bought: list[Entry] = []
        self.taken_off: set[int] = set()
        self.activates = True
        self._pending: list[tuple[datetime, Callable[[], object]]] = []
        super().__init__()
        self.route("log in", "POST", "/login", self._log_in)
        self.route("sims", "GET", "/fetchSIM", self._authorized(self._fetch_sim))
        self.route("create", "POST", "/CreateEndPoint", self._authorized(self._create))
        for name, method, path, handler in (
            ("activate", "POST", "/EndPointActivation", self._activate),
            ("delink", "POST", "/DeLinkSim", self._delink),
            ("delete", "POST", "/DeleteEndPoint", self._delete),
            ("plans", "PATCH", "/endpoint", self._patch),
            ("profile", "GET", "/GetEndPointProfile", self._profile),
            ("statistics", "GET", "/GetStatistics", self._statistics),
            ("life cycle", "POST", "/EndPointLifeCycleChange", self._change_life_cycle),
        ):
            self.route(name, method, path, self._authorized(self._of_endpoint(handler)))

    @property
    def settings(self) -> dict[str, str]:
        """Return the settings of an installation that sells on this account."""
        return {
            "NETWORK_PROVIDER": "bics",
            "SANDBOX": "false",
            "NETWORK_BASE_PLAN": BASE_PLAN,
            "BICS_URL": self.url,
            "BICS_USERNAME": USERNAME,
            "BICS_PASSWORD": PASSWORD,
            "BICS_ROAMING_PROFILE": ROAMING_PROFILE,
            "BICS_APN_GROUP": APN_GROUP,
        }

    def now(self) -> datetime:
        return self.clock() + self.offset

    def forward(self, by: timedelta) -> None:
        """Let time pass, in which active endpoints have traffic on their first plan."""
        with self.lock:
            self.offset += by
            self._settle()
            for endpoint in self.endpoints.values():
                if endpoint.life_cycle == "Active" and endpoint.iccid is not None:
                    self._use(endpoint, by / timedelta(hours=1) * MB_PER_HOUR)

    def forget_tokens(self) -> None:
        with self.lock:
            self.tokens.clear()

    def unpaid(self) -> list[Entry]:
        """Return what is on endpoints now, by the ledger."""
        return [each for each in self.bought if each.unique_id not in self.taken_off]

    def take(self, request: Request) -> Any:
        """Let a request with the slow plan be answered late, wherever the plan is named."""
        if SLOW_PLAN.encode() in request.body:
            route = "create" if request.path.endswith("/CreateEndPoint") else "plans"
            self.fault(FaultKind.LATE_REPLY, on=route)
        return super().take(request)

    def take_by_hand(self, iccid: str, name: str) -> None:
        """Make an endpoint in the portal, which knows nothing of us."""
        with self.lock:
            sim = self.sims[iccid]
            sim.endpoint_id = f"9{len(self.endpoints)}"
            self.endpoints[sim.endpoint_id] = EndpointOf(sim.endpoint_id, name, iccid)

    def handler_of(self, route: str) -> Handler:
        return next(handler for name, *_, handler in self._routes if name == route)

    def route_first(self, route: str, method: str, path: str, handler: Handler) -> None:
        """Answer a route in another way from now on."""
        self.route(route, method, path, handler)
        self._routes.insert(0, self._routes.pop())

    def _use(self, endpoint: EndpointOf, mb: float) -> None:
        now = self.now()
        for addon in endpoint.addons:
            used = min(mb, addon.left_mb)
            if not used or (addon.expires_at is not None and addon.expires_at <= now):
                continue
            if addon.began_at is None:
                validity = timedelta(days=PLANS[addon.plan_id].validity_days)
                addon.began_at, addon.expires_at = now, now + validity
            addon.left_mb -= used
            day = f"{now:%d/%m/%Y}"
            endpoint.days[day] = endpoint.days.get(day, 0.0) + used
            return

    def _settle(self) -> None:
        due = [each for each in self._pending if each[0] <= self.now()]
        self._pending = [each for each in self._pending if each[0] > self.now()]
        for _, effect in due:
            effect()

    def _log_in(self, request: Request) -> Answer:
        if request.json() != {"username": USERNAME, "password": PASSWORD}:
            return 401, {"message": "Authentication failed"}, {}
        token = f"eyJ.token-{len(self.requests)}"
        self.tokens.add(token)
        return 200, {"AccessToken": token, "RefreshToken": f"{token}-refresh"}, {}

    def _authorized(self, handler: Handler) -> Handler:
        def answer(request: Request) -> Answer:
            self._settle()
            scheme, _, token = request.headers.get("x-authorization", "").partition(" ")
            ajax = request.headers.get("x-requested-with") == "XMLHttpRequest"
            if ajax and scheme == "Bearer" and token in self.tokens:
                return handler(request)
            if self.hides_401:
                return refused("401", "Unauthorized")
            return 401, {"message": "Unauthorized"}, {}

        return answer

    def _fetch_sim(self, request: Request) -> Answer:
        query = request.query
        found = list(self.sims.values())
        if "iccid" in query:
            found = [sim for sim in found if sim.iccid == query["iccid"]]
        page, size = int(query.get("page", "1")), int(query.get("perPage", "10"))
        rows = [self._row(sim) for sim in found[(page - 1) * size : page * size]]
        return done("2001", {"responseParam": {"rows": rows, "totalCount": str(len(found))}})

    def _row(self, sim: SimCard) -> dict[str, Any]:
        endpoint = self.endpoints.get(sim.endpoint_id or "")
        smdp = "smdp.bics.example"
        return {
            "iccid": sim.iccid,
            "simProduct": sim.product,
            "simStatus": endpoint.life_cycle if endpoint else "Ready To Activate",
            "simAttachStatus": "ATTACHED" if endpoint else "NOT ATTACHED",
            "endPointId": sim.endpoint_id or "-",
            "iMSIList": [{"supplierIMSIList": [{"sponsorName": sim.sponsor}]}],
            "activationCode": {
                "textQrCode": f"LPA:1${smdp}${sim.matching_id}",
                "smDpPlusAdress": smdp,
                "matchingId": sim.matching_id,
            },
        }

    def _create(self, request: Request) -> Answer:
        wanted = request.json()["Request"]["requestParam"]
        known = {
            "isLinkSIM": "true",
            "roamingProfileId": ROAMING_PROFILE,
            "apnGroupId": APN_GROUP,
            "planId": BASE_PLAN,
        }
        wrong = [name for name, value in known.items() if wanted.get(name) != value]
        unknown = [each for each in wanted["addonPlanIds"] if each not in PLANS]
        if wrong or unknown or not wanted["name"]:
            return refused("1001", f"Invalid parameter {[*wrong, *unknown]}")
        if wanted["iccid"] not in self.sims:
            return refused("6401", "SIM does not exist")

        def effect() -> Answer:
            sim = self.sims[wanted["iccid"]]
            if sim.endpoint_id is not None:
                return refused("6412", f"SIM {sim.iccid} is already attached")
            made = EndpointOf(str(1_000_000 + len(self.bought)), wanted["name"], sim.iccid)
            active = wanted["isDefaultActivation"] == "true" and self.activates
            made.life_cycle = "Active" if active else "Pre-Active"
            sim.endpoint_id = made.endpoint_id
            self.endpoints[made.endpoint_id] = made
            self._buy(made, wanted["addonPlanIds"])
            return done("4001", {"endPointId": made.endpoint_id})

        return self._perhaps_later(effect, wanted["addonPlanIds"])

    def _perhaps_later(self, effect: Callable[[], Answer], plan_ids: list[str]) -> Answer:
        if SLOW_PLAN not in plan_ids:
            return effect()
        self._pending.append((self.now() + SLOW, effect))
        return refused("9999", "Timed out")

    def _buy(self, endpoint: EndpointOf, plan_ids: list[str]) -> None:
        for plan_id in plan_ids:
            unique_id = 70_001 + len(self.bought)
            endpoint.addons.append(AddonOn(unique_id, plan_id, PLANS[plan_id].data_mb))
            entry = Entry(endpoint.endpoint_id, endpoint.name, plan_id, unique_id)
            self.bought.append(entry)

    def _of_endpoint(self, handler: Callable[[Request, EndpointOf], Answer]) -> Handler:
        """Give a handler the endpoint that a request names; refuse one that is not there."""

        def answer(request: Request) -> Answer:
            asked = request.query if request.method == "GET" else request.json()["Request"]
            endpoint = self.endpoints.get(str(asked.get("endPointId")))
            return refused("2001", NO_ENDPOINT) if endpoint is None else handler(request, endpoint)

        return answer

    def _activate(self, _: Request, endpoint: EndpointOf) -> Answer:
        if endpoint.iccid is None:
            return refused("6420", "SIM is not attached")
        if endpoint.life_cycle == "Active":
            return refused("2507", "Endpoint is already active")
        if endpoint.life_cycle != "Pre-Active" or not self.activates:
            return refused("5099", "Activation is not allowed")
        endpoint.life_cycle = "Active"
        return done("5014")

    def _delink(self, _: Request, endpoint: EndpointOf) -> Answer:
        if endpoint.iccid is None:
            return refused("6420", "SIM is not attached")
        self.sims[endpoint.iccid].endpoint_id = None
        endpoint.iccid, endpoint.life_cycle = None, "Hold"
        return done("6413")

    def _delete(self, _: Request, endpoint: EndpointOf) -> Answer:
        if endpoint.iccid is not None:
            return refused("10160", "SIM is attached")
        self.taken_off |= {each.unique_id for each in endpoint.addons}
        del self.endpoints[endpoint.endpoint_id]
        return done("10159")

    def _patch(self, request: Request, endpoint: EndpointOf) -> Answer:
        wanted = request.json()["Request"]["requestParam"]
        added: list[str] = wanted.get("addAddonPlanIds", [])
        removed = {str(each) for each in wanted.get("removeAddonUniqueIds", [])}
        on_it = {str(each.unique_id) for each in endpoint.addons}
        if not {*added} <= PLANS.keys() or not removed <= on_it:
            return refused("1001", "Invalid plan")

        def effect() -> Answer:
            self._buy(endpoint, added)
            gone = [each for each in endpoint.addons if str(each.unique_id) in removed]
            self.taken_off |= {each.unique_id for each in gone}
            endpoint.addons = [each for each in endpoint.addons if each not in gone]
            return done("7005")

        return self._perhaps_later(effect, added)

    def _profile(self, _: Request, endpoint: EndpointOf) -> Answer:
        left = [each for each in endpoint.addons if each.left_mb]
        info = {
            "basicInfo": {
                "name": endpoint.name,
                "iccid": endpoint.iccid or "-",
                "msisdn": f"8823900{endpoint.endpoint_id}",
                "lifeCycle": endpoint.life_cycle,
            },
            "promotionalPlans": {"plan": [_plan(each) for each in endpoint.addons]},
            "benefitInfo": {"benefit": [_benefit(each) for each in left]},
        }
        return done("2000", {"info": info})

    def _statistics(self, request: Request, endpoint: EndpointOf) -> Answer:
        first, last = request.query["from_date"], request.query["to_date"]
        days = [
            {"date": day, "totalVolume": f"{volume:.3f}", "totalCost": "0.000"}
            for day, volume in endpoint.days.items()
            if first <= f"{datetime.strptime(day, '%d/%m/%Y').replace(tzinfo=UTC):%Y%m%d}" <= last
        ]
        if not days:
            return refused("1340", "No data found")
        return done("1339", {"responseParam": {"dataUsage": days}})

    def _change_life_cycle(self, request: Request, endpoint: EndpointOf) -> Answer:
        wanted = {"A": "Active", "S": "Suspended", "AI": "Active-Inventory"}
        target = wanted[request.json()["Request"]["requestParam"]["lifeCycle"]]
        if endpoint.life_cycle in {"Pre-Active", "Hold"}:
            return refused("5018", "Life cycle change is not allowed")
        before, endpoint.life_cycle = endpoint.life_cycle, target
        states = {"currentStatus": target, "previousStatus": before}
        return done("9003" if before == target else "5017", {"responseParam": states})


def _sim(number: int) -> SimCard:
    iccid = f"8932042{number:012d}"
    sponsor = SPONSORS[number % len(SPONSORS)]
    return SimCard(iccid, sponsor, PRODUCT, f"BICS-{number:04d}-{number * 7919 % 10_000:04d}")


def _plan(addon: AddonOn) -> dict[str, Any]:
    return {
        "planId": addon.plan_id,
        "planName": addon.plan_id.upper(),
        "planServiceName": "DATA",
        "uniqueId": addon.unique_id,
        "planStartDate": _moment(addon.began_at),
        "planExpiryDate": _moment(addon.expires_at),
    }


def _benefit(addon: AddonOn) -> dict[str, Any]:
    return {
        "name": "DATA",
        "uniqueId": addon.unique_id,
        "startDate": _moment(addon.began_at),
        "expiryDate": _moment(addon.expires_at),
        "actualBalance": str(PLANS[addon.plan_id].data_mb * MB),
        "balance": str(round(addon.left_mb * MB)),
    }


def _moment(moment: datetime | None) -> str:
    return f"{moment:{MOMENT}}" if moment else "-"


def done(code: str, more: dict[str, Any] | None = None) -> Answer:
    return _told("0", code, "Success", more)


def refused(code: str, description: str) -> Answer:
    return _told("1", code, description, None)


def _told(result: str, code: str, description: str, more: dict[str, Any] | None) -> Answer:
    param = {"resultCode": code, "resultDescription": description}
    return 200, {"Response": {"resultCode": result, "resultParam": param, **(more or {})}}, {}
