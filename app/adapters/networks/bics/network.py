"""The network `bics`: the port over the API of BICS SIM for Things.

The API does not recognize a repeated request, so a creation or an addition is sent once. Our
reference is the name of the endpoint, by which we find a creation whose reply was lost.
"""

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count, islice
from typing import Literal

from msgspec import Raw

from app.adapters.networks.bics.session import Deadline, Session
from app.adapters.networks.bics.wire import (
    BYTES_PER_MB,
    DAY,
    MOMENT,
    NEVER_ACTIVATED,
    NONE,
    Created,
    Info,
    Outcome,
    PlanOn,
    Sim,
    Statistics,
    status_of,
)
from app.adapters.remote.exchange import OddRecord, decode_entry, time_left
from domain.cause import Clock
from domain.links.network import (
    LPA,
    ActivationCode,
    Addon,
    AddonUsage,
    Capability,
    Endpoint,
    NetworkStatus,
    NoActivationCode,
    NoSuchEndpoint,
    ProviderPlan,
    StockNetwork,
    Usage,
)
from domain.provider_errors import (
    NotAnswered,
    OutcomeNotStated,
    OutcomeUnknown,
    ProviderError,
    Rejected,
    Unavailable,
    becoming,
    in_doubt,
)

PAGE_SIMS = 100
BY_US = "1"  # The reason that we give for a change of the life cycle: "System".

# Detailed codes for changes that are done, now or before; taken from public clients of the API.
ACTIVATED = frozenset({"5014", "2507"})
LIFE_CYCLE_CHANGED = frozenset({"5017", "9003"})
DELINKED = frozenset({"6413", "6420"})
DELETED = frozenset({"10159"})
NO_TRAFFIC = frozenset({"1340"})

OF_ANOTHER = "the API of bics answers about another eSIM, at $..iccid"
UNREADABLE = "the API of bics tells what makes no sense, at $..{}"
# How many days back to look for the last traffic: as long as an unused link can be cancelled.
SEEN_DAYS = 366
MSISDN = re.compile(r"[1-9][0-9]{6,14}")  # ITU-T E.164.

logger = logging.getLogger(__name__)


class BicsNetwork(StockNetwork):
    """One account of BICS; thread-safe. Creations are documented to take up to 180 s.

    It has no balance, because it is paid by invoice, and no catalogue: its plans are ours. Every
    new endpoint gets the profile and the group, by their ids at BICS.
    """

    name = "bics"
    shape: Literal["stock"] = "stock"
    remote = True
    settles_after = timedelta(seconds=200)
    capabilities: frozenset[Capability] = frozenset({"suspend", "remove_plan", "cancel"})
    creates_once = False
    adds_once = False
    background_reads_per_s = 4.0  # It publishes no limit.

    def __init__(self, session: Session, clock: Clock, profile: str, apn_group: str) -> None:
        self._session = session
        self._of_all = {"roamingProfileId": profile, "apnGroupId": apn_group}
        self._clock = clock
        # By sponsor and product: the first page of the stock that may have a matching free eSIM.
        self._first_pages: dict[tuple[str | None, str], int] = {}
        self._skipped: set[str] = set()  # ICCIDs that are free at BICS but not to be sold.

    def probe(self, *, timeout_s: float) -> None:
        """Read one eSIM, which also tests the login."""
        self._rows({"page": "1", "perPage": "1"}, time_left(timeout_s))

    def available_esims(
        self,
        plan: ProviderPlan,  # noqa: ARG002  # Every eSIM can carry every plan of the account.
        sponsor_profile_id: str | None,
        product: str,
        *,
        page: int,
        timeout_s: float,
    ) -> Sequence[str]:
        """Return the free eSIMs of one page of the stock; pages without any are not counted.

        Sponsors and products are identified by their names.
        """

        def suits(sim: Sim) -> bool:
            sponsor_suits = sponsor_profile_id is None or sponsor_profile_id in sim.sponsors
            is_free = sim.is_free and sim.iccid not in self._skipped
            return is_free and sponsor_suits and product in {"", sim.sim_product}

        deadline = time_left(timeout_s)
        pages = self._pages((sponsor_profile_id, product), suits, deadline)
        found = ([sim.iccid for sim in sims if suits(sim)] for sims in pages)
        return next(islice(filter(None, found), page, None), [])

    def _pages(
        self, wanted: tuple[str | None, str], suits: Callable[[Sim], bool], deadline: Deadline
    ) -> Iterator[list[Sim]]:
        """Yield the pages of the stock from the first that may have a free eSIM that suits.

        A large stock begins with eSIMs in use. Calls remember how many pages to skip. After the end
        was reached, the next call begins at page 1, because eSIMs there may be free again.
        """
        first = self._first_pages.setdefault(wanted, 1)
        for number in count(first):
            rows = self._rows({"page": str(number), "perPage": str(PAGE_SIMS)}, deadline)
            sims = [*filter(None, map(_readable, rows))]
            if not rows:
                self._first_pages[wanted] = 1
                if number == first > 1:
                    yield from self._pages(wanted, suits, deadline)
                return
            if number == self._first_pages[wanted] and not any(map(suits, sims)):
                self._first_pages[wanted] = number + 1
            yield sims
            if len(rows) < PAGE_SIMS:
                return

    def create_endpoint(
        self, iccid: str, plan: ProviderPlan, base_plan: str, reference: str, *, timeout_s: float
    ) -> Endpoint:
        """Create, link and activate in one call, unless the eSIM has its endpoint already."""
        deadline = time_left(timeout_s)
        sim = self._sim(iccid, deadline)
        if sim is None:
            raise Rejected("bics knows no such eSIM")
        if sim.endpoint_id is not None:
            return self._existing_endpoint(iccid, reference, deadline)
        request = {
            "requestParam": {
                "name": reference,
                "isLinkSIM": "true",
                **self._of_all,
                "iccid": iccid,
                "planId": base_plan,
                "addonPlanIds": [plan.provider_plan_id],
                "isDefaultActivation": "true",
            }
        }
        try:
            made = self._session.change("POST", "/CreateEndPoint", request, deadline, Created)
        except Rejected:  # Perhaps because an earlier call of ours has succeeded meanwhile.
            return self._existing_endpoint(iccid, reference, deadline)
        if str(made.end_point_id) in NONE:
            raise OutcomeNotStated("bics tells of a creation without its endpoint")
        with becoming(ProviderError):  # The endpoint exists.
            self._activate(str(made.end_point_id), deadline)
        return Endpoint(str(made.end_point_id), iccid, reference)

    def _existing_endpoint(self, iccid: str, reference: str, deadline: Deadline) -> Endpoint:
        """Return the endpoint of an eSIM if it has our reference; otherwise raise Rejected."""
        with in_doubt():
            found = self._load_endpoint(iccid, deadline)
        if found is not None and found.reference == reference:
            return found
        raise Rejected("bics refuses the endpoint, or the eSIM has another one")

    def find_endpoint(self, iccid: str, *, timeout_s: float) -> Endpoint | None:
        """Return the endpoint of an eSIM, and activate it first if it never was.

        The activation is the last part of a creation and is safe to repeat. If BICS refuses it, the
        endpoint is returned as it is.
        """
        return self._load_endpoint(iccid, time_left(timeout_s))

    def _load_endpoint(self, iccid: str, deadline: Deadline) -> Endpoint | None:
        sim = self._sim(iccid, deadline)
        if sim is None or sim.endpoint_id is None:
            return None

        def unread(error: ProviderError) -> Unavailable:
            is_up = isinstance(error, NoSuchEndpoint | OutcomeNotStated)
            return (NotAnswered if is_up else Unavailable)(str(error))

        with becoming((NoSuchEndpoint, OutcomeUnknown), unread):  # It may have gone meanwhile.
            info = self._profile(sim.endpoint_id, deadline)
            if info.basic_info.iccid not in {iccid, *NONE}:
                raise OddRecord(OF_ANOTHER)
            self._finish(sim.endpoint_id, info, deadline)
        return Endpoint(sim.endpoint_id, iccid, info.basic_info.name, msisdn=_msisdn_of(info))

    def _finish(self, endpoint_id: str, info: Info, deadline: Deadline) -> None:
        """Activate an endpoint that was never activated; ignore a refusal."""
        if self._life_cycle(info, deadline).casefold() in NEVER_ACTIVATED:
            with suppress(Rejected):
                self._activate(endpoint_id, deadline)

    def _activate(self, endpoint_id: str, deadline: Deadline) -> None:
        request = {"endPointId": endpoint_id}
        self._session.change(
            "POST", "/EndPointActivation", request, deadline, Outcome, done=ACTIVATED
        )

    def remove_endpoint(self, endpoint_id: str, *, timeout_s: float) -> None:
        """Unlink the eSIM, which puts it back into the stock, then delete the endpoint."""
        deadline, request = time_left(timeout_s), {"endPointId": endpoint_id}
        with suppress(NoSuchEndpoint):
            self._session.change("POST", "/DeLinkSim", request, deadline, Outcome, done=DELINKED)
            with becoming(ProviderError), suppress(NoSuchEndpoint):  # Half of it is done.
                self._session.change(
                    "POST", "/DeleteEndPoint", request, deadline, Outcome, done=DELETED
                )

    def release_esim(self, iccid: str, *, timeout_s: float) -> None:
        """Check that the removal of the endpoint has put the eSIM back into the stock."""
        sim = self._sim(iccid, time_left(timeout_s))
        if sim is not None and sim.endpoint_id is not None:
            raise Rejected("the eSIM has an endpoint")

    def skip_esim(self, iccid: str) -> bool:
        """Treat an eSIM as in use, although BICS lists it as free once it has no endpoint."""
        self._skipped.add(iccid)
        return True

    def add_plan(
        self,
        endpoint_id: str,
        plan: ProviderPlan,
        reference: str,  # noqa: ARG002  # The API takes none.
        *,
        timeout_s: float,
    ) -> Addon:
        """Add a plan. The highest id of that plan is the new one; None if it cannot be read."""
        deadline = time_left(timeout_s)
        self._patch(endpoint_id, {"addAddonPlanIds": [plan.provider_plan_id]}, deadline)
        try:
            addons = self._addons(endpoint_id, self._profile(endpoint_id, deadline), deadline)
        except ProviderError:
            return Addon(None)
        of_plan = [e.addon_id for e in addons if e.provider_plan_id == plan.provider_plan_id]
        return Addon(of_plan[-1] if of_plan else None, others=tuple(of_plan[:-1]))

    def remove_plan(self, endpoint_id: str, addon_id: str, *, timeout_s: float) -> None:
        """Remove a plan; if BICS refuses, look whether it was gone already."""
        deadline = time_left(timeout_s)
        with suppress(NoSuchEndpoint):
            try:
                self._patch(endpoint_id, {"removeAddonUniqueIds": [addon_id]}, deadline)
            except NoSuchEndpoint:
                raise
            except Rejected:
                with in_doubt():
                    left = self._profile(endpoint_id, deadline).promotional_plans.plan
                if addon_id in {str(each.unique_id) for each in left}:
                    raise

    def _patch(self, endpoint_id: str, what: dict[str, list[str]], deadline: Deadline) -> None:
        request = {"endPointId": endpoint_id, "requestParam": what}
        self._session.change("PATCH", "/endpoint", request, deadline, Outcome)

    def usage(self, endpoint_id: str, *, timeout_s: float) -> Usage:
        """Return plans and life cycle; the first use is the start of the first plan with usage."""
        deadline, as_of = time_left(timeout_s), self._clock()
        info = self._profile(endpoint_id, deadline)
        addons = self._addons(endpoint_id, info, deadline)
        used = {addon.addon_id for addon in addons if addon.used_mb}
        plans = [each for each in info.promotional_plans.plan if str(each.unique_id) in used]
        started = [_moment_of(each.plan_start_date) for each in plans]
        return Usage(
            status_of(self._life_cycle(info, deadline)),
            addons,
            as_of,
            first_used_at=min(filter(None, started), default=None),
            msisdn=_msisdn_of(info),
        )

    def _addons(self, endpoint_id: str, info: Info, deadline: Deadline) -> list[AddonUsage]:
        """Return the plans in the order in which they were added, which is that of their ids."""
        data = [each for each in info.benefit_info.benefit if each.name == "DATA"]
        benefits = {str(each.unique_id): each for each in data}
        plans = info.promotional_plans.plan
        ended = [each for each in plans if str(each.unique_id) not in benefits]
        started = min(filter(None, (_moment_of(it.plan_start_date) for it in ended)), default=None)
        days = self._traffic(endpoint_id, started, deadline) if started else {}  # Once for all.
        found = []
        for plan in plans:
            benefit = benefits.get(str(plan.unique_id))
            if benefit is None:  # Nothing is left of it.
                used_mb, left_mb = _used_mb(plan, days), 0.0
            else:
                left_mb = _not_negative(benefit.balance, "balance") / BYTES_PER_MB
                # More may be left than at first, because BICS may grant extra data.
                given = _not_negative(benefit.actual_balance, "actualBalance")
                used_mb = max(0.0, given / BYTES_PER_MB - left_mb)
            addon_id, expires_at = str(plan.unique_id), _moment_of(plan.plan_expiry_date)
            found.append(AddonUsage(addon_id, str(plan.plan_id), used_mb, left_mb, expires_at))
        return sorted(found, key=lambda each: (len(each.addon_id), each.addon_id))

    def _traffic(
        self, endpoint_id: str, since: datetime, deadline: Deadline
    ) -> dict[datetime, float]:
        """Return the MB of each day with traffic."""
        query = {
            "endPointId": endpoint_id,
            "from_date": f"{since:%Y%m%d}",
            "to_date": f"{self._clock() + timedelta(days=1):%Y%m%d}",  # Its day may begin earlier.
        }
        path = "/GetStatistics"
        found = self._session.read(path, query, Statistics, deadline, nothing=NO_TRAFFIC)
        days = [
            (_moment_of(each.date, DAY), _not_negative(each.total_volume, "totalVolume"))
            for each in found.response_param.data_usage
        ]
        return {day: volume for day, volume in days if day is not None and volume}

    def status(self, endpoint_id: str, *, timeout_s: float) -> NetworkStatus:
        """Return the life cycle, and the beginning of the last day with traffic.

        BICS does not say whether a device is connected, nor where it is.
        """
        deadline, as_of = time_left(timeout_s), self._clock()
        life_cycle = self._life_cycle(self._profile(endpoint_id, deadline), deadline)
        days = self._traffic(endpoint_id, as_of - timedelta(days=SEEN_DAYS), deadline)
        last = min(max(days), as_of) if days else None
        status = status_of(life_cycle)
        return NetworkStatus(status, connected=False, network=None, last_seen_at=last, as_of=as_of)

    def suspend(self, endpoint_id: str, *, timeout_s: float) -> None:
        self._change_life_cycle(endpoint_id, "S", time_left(timeout_s))

    def resume(self, endpoint_id: str, *, timeout_s: float) -> None:
        """Let traffic flow again; activate an endpoint that was never activated."""
        deadline = time_left(timeout_s)
        info = self._profile(endpoint_id, deadline)
        if self._life_cycle(info, deadline).casefold() in NEVER_ACTIVATED:
            self._activate(endpoint_id, deadline)
        else:
            self._change_life_cycle(endpoint_id, "A", deadline)

    def _change_life_cycle(self, endpoint_id: str, letter: str, deadline: Deadline) -> None:
        wanted = {"lifeCycle": letter, "reason": BY_US}
        request = {"endPointId": endpoint_id, "requestParam": wanted}
        path = "/EndPointLifeCycleChange"
        self._session.change("POST", path, request, deadline, Outcome, done=LIFE_CYCLE_CHANGED)

    def lpa(self, iccid: str, *, timeout_s: float) -> ActivationCode:
        sim = self._sim(iccid, time_left(timeout_s))
        if sim is None:
            raise Rejected("bics knows no such eSIM")
        if sim.activation_code is None:
            raise NoActivationCode("an eSIM without activation code")
        if not LPA.fullmatch(lpa := sim.activation_code.lpa):
            raise OddRecord(UNREADABLE.format("activationCode"))
        return ActivationCode(lpa)

    def _sim(self, iccid: str, deadline: Deadline) -> Sim | None:
        """Return an eSIM of the account; None if the account does not have it."""
        found = [decode_entry(each, Sim) for each in self._rows({"iccid": iccid}, deadline)]
        if any(each.iccid != iccid for each in found):
            raise OddRecord(OF_ANOTHER)
        return next(iter(found), None)

    def _rows(self, query: Mapping[str, str], deadline: Deadline) -> list[Raw]:
        """Read eSIMs, to be decoded one by one, so that an odd one takes no other off the stock."""
        return self._session.read("/fetchSIM", query, list[Raw], deadline, "responseParam", "rows")

    def _profile(self, endpoint_id: str, deadline: Deadline) -> Info:
        query = {"endPointId": endpoint_id}
        return self._session.read("/GetEndPointProfile", query, Info, deadline, "info")

    def _life_cycle(self, info: Info, deadline: Deadline) -> str:
        if info.basic_info.life_cycle:
            return info.basic_info.life_cycle
        sim = self._sim(info.basic_info.iccid, deadline)
        return sim.sim_status if sim is not None else ""


def _readable(row: Raw) -> Sim | None:
    """Return an eSIM of the stock; None, and a line in the log, for one that cannot be read."""
    try:
        return decode_entry(row, Sim)
    except OddRecord as error:
        logger.warning("an eSIM of the stock of bics is passed over: %s", error)
        return None


def _msisdn_of(info: Info) -> str | None:
    found = str(info.basic_info.msisdn or "").removeprefix("+")
    return f"+{found}" if MSISDN.fullmatch(found) else None


def _moment_of(text: str | None, form: str = MOMENT) -> datetime | None:
    if text is None or text in NONE:
        return None
    try:
        return datetime.strptime(text, form).replace(tzinfo=UTC)
    except ValueError:
        raise OddRecord(UNREADABLE.format("date")) from None


def _used_mb(plan: PlanOn, days: Mapping[datetime, float]) -> float:
    """Return all traffic since a plan began; the statistics do not tell the plans apart."""
    started = _moment_of(plan.plan_start_date)
    return sum(mb for day, mb in days.items() if started and day.date() >= started.date())


def _not_negative(amount: float, name: str) -> float:
    if amount < 0:
        raise OddRecord(UNREADABLE.format(name))
    return amount
