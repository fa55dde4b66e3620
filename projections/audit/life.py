"""Life cycles: in which order the events of links, eSIMs, plan changes and lost orders may come.

No money is judged here; that is docs/verifier/verify.py, whose events these are. The tables say
what may follow what, what an event announces of a later one of its commit, and what must be named
again; the functions below say the rest. They share nothing with the aggregates, and no reason names
an ICCID.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from domain.ids import derive_id

Steps = Mapping[str, str]  # The stages after which an event may come, and what follows each.
Facts = dict[str, Any]  # What is remembered of a stream.

ENDED = ""  # Such a stream is forgotten, and one that has not begun is not known.
FAILED = dict.fromkeys(("requested", "reserved", "begun", "ordering"), "failed")
DONE = {"begun": "idle", "failed, begun": "failed", "undoing, begun": "failed"}
STARTED = {"idle": "begun", "begun": "begun"}
STARTED |= dict.fromkeys(("undoing", "undoing, begun"), "undoing, begun")
STAGES: Mapping[str, Steps] = {
    "link.requested": {ENDED: "requested"},
    "link.imported": {ENDED: "ordered"},
    "link.esim_reserved": {"requested": "reserved"},
    "link.endpoint_requested": {"reserved": "begun", "begun": "begun"},
    "link.order_requested": {"requested": "ordering", "ordering": "ordering"},
    "link.order_placed": {"ordering": "ordered"},
    "link.endpoint_created": {"begun": "created", "ordered": "created"},
    "link.activated": {"created": "active"},
    "link.provisioning_failed": FAILED,
    "link.endpoint_found": {"failed": "failed"},
    "link.endpoint_left_over": {"failed": "failed"},
    "link.endpoint_removed": {"failed": "cleaned up"},
    "link.esim_released": {"failed": ENDED, "cleaned up": ENDED},
    "link.renamed": {"active": "active", "over": "over"},
    "link.ended": {"active": "over"},
    "link": {"active": "active"},  # Any other event of a link.
    "esim.registered": {ENDED: "free"},
    "esim.reserved": {"free": "held"},
    "esim.quarantined": {"held": "held"},
    "esim.released": {"held": "free"},
    "lost_order.opened": {ENDED: "looking"},
    "lost_order.found": {"looking": "found"},
    "lost_order.taken_back": {"found": "looking"},
    "lost_order.left_over": {"found": "looking"},
    "lost_order.settled": {"looking": ENDED},
    # A step that has failed for certain is not begun again; one that may be done yet, to undo it.
    "plan_change.requested": {ENDED: "idle"},
    "plan_change.plan_removal_started": STARTED,
    "plan_change.plan_addition_started": STARTED,
    "plan_change.plan_removal_done": DONE,
    "plan_change.plan_addition_done": {"begun": "idle"},
    "plan_change.failed": {"idle": "failed", "begun": "failed, begun"},
    "plan_change.failed, unsettled": {"idle": "undoing", "begun": "undoing, begun"},
    "plan_change.finished": dict.fromkeys(("idle", *DONE, "failed", "undoing"), ENDED),
}
# One thing at a time is done with an active link.
FREE = ""
EXCLUSIVE: Mapping[str, Steps] = {
    "link.change_opened": {FREE: "being changed"},
    "link.plan_added": {"being changed": "being changed"},
    "link.plan_removed": {"being changed": "being changed"},
    "link.change_closed": {"being changed": FREE},
    "link.status_requested": {FREE: FREE, "being changed": "being changed"},
    "link.end_requested": {FREE: "being ended"},
    "link.end_kept": {"being ended": FREE},
    "link.ended": {FREE: FREE, "being ended": FREE},
}
# What is remembered of an event; whatever else in its stream names it names the same.
REMEMBERED = {
    "link.requested": ("organization_id",),
    "link.imported": ("organization_id", "iccid"),
    "link.esim_reserved": ("iccid",),
    "link.order_requested": ("attempt",),
    "link.order_placed": ("iccid",),
    "link.change_opened": ("change_id",),
    "esim.registered": ("iccid",),
    "esim.reserved": ("link_id",),
    "lost_order.opened": ("organization_id", "link_id"),
    "lost_order.found": ("iccid",),
    "plan_change.requested": ("organization_id", "link_id"),
}
SAME = ("organization_id", "link_id", "change_id", "iccid")
# What an event announces of a later one of its commit (see also `_announced`), and by which facts
# that one keeps it, in the same order.
RESERVES, FREES = ("esim.reserved", "stream", "iccid"), ("esim.released", "stream", "iccid")
ANNOUNCED = {
    "link.imported": RESERVES,
    "link.esim_reserved": RESERVES,
    "link.order_placed": RESERVES,
    "link.esim_released": FREES,
    "lost_order.found": ("esim.reserved", "link_id", "iccid"),
    "lost_order.taken_back": ("esim.released", "link_id", "iccid"),
    "lost_order.left_over": ("esim.released", "link_id", "iccid"),
    "plan_change.requested": ("link.change_opened", "stream", "link_id", "organization_id"),
    "plan_change.plan_addition_done": ("link.plan_added", "stream", "link_id", "added", "addon_id"),
    "plan_change.plan_removal_done": ("link.plan_removed", "stream", "link_id", "removed"),
    "plan_change.finished": ("link.change_closed", "stream", "link_id"),
    "webhook_endpoint.registered": ("webhook_list.added", "stream", "organization_id"),
    "webhook_endpoint.deleted": ("webhook_list.removed", "stream", "organization_id"),
}
KEPT_BY = {
    "esim.reserved": ("link_id", "iccid"),
    "esim.released": ("link_id", "iccid"),
    "lost_order.opened": ("link_id", "organization_id"),
    "link.change_opened": ("change_id", "stream", "organization_id"),
    "link.plan_added": ("change_id", "stream", "activation_id", "addon_id"),
    "link.plan_removed": ("change_id", "stream", "activation_id"),
    "link.change_closed": ("change_id", "stream"),
    "webhook_list.added": ("endpoint_id", "organization_id"),
    "webhook_list.removed": ("endpoint_id", "organization_id"),
}
UNKNOWN = {"stage": "not begun, or has ended", "turn": "not being changed or ended"}
NOUNS = {each.partition(".")[0] for each in (*STAGES, *KEPT_BY, *ANNOUNCED)}
AFTERWARDS = ("refunded_by_hand", "plan_change.returned")  # Money alone, at any time.
ONCE = {"link.usage_reached", "link.expiry_near", "link.plan_started", "link.plan_ended"}
LISTED_MAX = 10
# How much earlier than us a network may date an order: it cuts to seconds.
APART = timedelta(seconds=3)


class Life:
    """Every stream whose life cycle is in the tables; give it each event in order."""

    def __init__(self) -> None:
        self._streams: dict[str, Facts] = {}
        self._due: dict[tuple[Any, ...], int] = {}  # With the position of the announcement.
        self._holders: dict[str, str] = {}  # ICCID to the stream of the eSIM; it is unique.
        self._listed: defaultdict[str, set[str]] = defaultdict(set)
        self._operators = 0

    def check(self, event: Any) -> Iterator[str]:
        """Check one event against all before it; yield what is wrong with it."""
        if event.topic == "operator.registered":
            self._operators += 1
            if event.stream != str(derive_id("operator", self._operators)):
                yield "its operator does not have the next number"
        if event.noun not in NOUNS or event.topic.endswith(AFTERWARDS):
            return
        facts = self._streams.setdefault(event.stream, {})
        out_of_order = [*_follow(event, facts)]
        yield from out_of_order or self._live(event, facts)
        if not facts.get("stage"):
            del self._streams[event.stream]

    def _live(self, event: Any, facts: Facts) -> Iterator[str]:
        facts |= {name: event[name] for name in REMEMBERED.get(event.topic, ())}
        for name in SAME if "stage" in facts else ():
            if name in event.state and event[name] != facts.get(name):
                yield f"it names another {name} than its {event.noun} has"
        if event.noun == "link":
            yield from _link(event, facts)
        elif event.noun == "plan_change":
            yield from _plan_change(event, facts)
        yield from self._track(event, facts)
        yield from self._check_unique(event, facts)

    def check_end(self) -> Iterator[tuple[int, str]]:
        """Yield what was announced and never came, with the position of its announcement."""
        for (topic, *_), position in self._due.items():
            yield position, f"it announces {topic}, which never comes"

    def _track(self, event: Any, facts: Facts) -> Iterator[str]:
        """Take what was announced off the list, and put on it what this event announces."""
        if event.topic in KEPT_BY:
            key = (event.topic, *(_value(event, facts, name) for name in KEPT_BY[event.topic]))
            if self._due.pop(key, None) is None:
                yield "no event before it says so"
        for topic, *names in _announced(event, facts):
            key = (topic, *(_value(event, facts, name) for name in names))
            if key in self._due:
                yield f"it announces again what has not come: {topic}"
            self._due[key] = event.position

    def _check_unique(self, event: Any, facts: Facts) -> Iterator[str]:
        """Check that no two streams hold one eSIM, and that no list is too long."""
        if event.topic == "esim.reserved":
            if self._holders.setdefault(facts["iccid"], event.stream) != event.stream:
                yield "it is an eSIM that another link holds"
        elif event.topic == "esim.released":
            self._holders.pop(facts["iccid"], None)
        elif event.topic == "webhook_list.added":
            listed = self._listed[event["organization_id"]]
            listed.add(event["endpoint_id"])
            if len(listed) > LISTED_MAX:
                yield f"its organization has more than {LISTED_MAX} webhook endpoints"
        elif event.topic == "webhook_list.removed":
            self._listed[event["organization_id"]].discard(event["endpoint_id"])


def _value(event: Any, facts: Facts, name: str) -> Any:
    return event.stream if name == "stream" else event.state.get(name, facts.get(name))


def _follow(event: Any, facts: Facts) -> Iterator[str]:
    """Go to the next stage; an event that may not come changes none."""
    topic, any_other = event.topic, STAGES.get(event.noun)
    if topic == "plan_change.failed" and event["settled_at"] is not None:
        topic = "plan_change.failed, unsettled"
    for facet, steps in (("stage", STAGES.get(topic, any_other)), ("turn", EXCLUSIVE.get(topic))):
        if steps is not None:
            before = facts.get(facet, "")
            if before not in steps:
                yield f"it comes while its {event.noun} is {before or UNKNOWN[facet]}"
            facts[facet] = steps.get(before, before)


def _announced(event: Any, facts: Facts) -> Iterator[tuple[str, ...]]:
    if event.topic in ANNOUNCED:
        yield ANNOUNCED[event.topic]
    is_again = event.topic == "link.order_placed" and (event["adopted"] or facts["attempt"] > 1)
    is_late = event.topic == "link.provisioning_failed" and event["settled_at"] is not None
    if is_again or (is_late and "attempt" in facts):  # The reply of an order was lost.
        yield "lost_order.opened", "stream", "organization_id"
    if event.topic == "link.ended" and event["reason"] == "cancelled" and "attempt" in facts:
        yield "esim.released", "stream", "iccid"


def _link(event: Any, facts: Facts) -> Iterator[str]:
    activations: dict[str, bool] = facts.setdefault("activations", {})  # Whether each is there.
    if event.topic in {"link.requested", "link.imported"}:
        facts["item"] = event["plan"]["provider_plan_id"]
    elif event.topic.startswith("link.order_"):
        yield from _order(event, facts)
    elif event.topic == "link.activated":
        plans = [event.state, *(event.state.get("more") or [])]
        activations |= {each["activation_id"]: True for each in plans}
    elif event.topic == "link.plan_added":
        if event["activation_id"] in activations:
            yield "it adds a plan twice"
        activations[event["activation_id"]] = True
    elif event.topic == "link.plan_removed" or event.topic in ONCE:
        if not activations.get(event["activation_id"]):
            yield "it is about a plan that its link does not have"
        yield from _once(event, facts)
    elif event.topic == "link.provisioning_failed" and facts.get("iccid") is None:
        facts["stage"] = ENDED


def _once(event: Any, facts: Facts) -> Iterator[str]:
    """Check that an event about a plan comes once, or says more than the one before."""
    if event.topic == "link.plan_removed":
        facts["activations"][event["activation_id"]] = False
        return
    said: dict[tuple[str, str], int] = facts.setdefault("said", {})
    key, much = (event.topic, event["activation_id"]), event.state.get("percent", 1)
    if much <= said.get(key, 0):
        yield "it says again what was said of this plan"
    said[key] = much


def _order(event: Any, facts: Facts) -> Iterator[str]:
    at = datetime.fromisoformat(event["timestamp"])
    if event.topic == "link.order_requested":
        if event["item"] != facts["item"]:
            yield "it orders another plan than was asked for"
        if at < facts.setdefault("free_at", at):
            yield "it orders again before the time-out of its order"
        facts["free_at"] = datetime.fromisoformat(event["until"])
        facts.setdefault("since", at)
    elif event["adopted"] and (datetime.fromisoformat(event["placed_at"]) < facts["since"] - APART):
        yield "it takes an order that is older than its own"


def _plan_change(event: Any, facts: Facts) -> Iterator[str]:
    if event.topic == "plan_change.requested":
        steps = [*event["removals"], *event["additions"]]
        facts["steps"], facts["done"] = [each["activation_id"] for each in steps], 0
        facts["removals"] = len(event["removals"])
        if not steps:
            yield "it asks for nothing"
    elif event.topic.endswith("_started"):
        is_removal = event["index"] < facts["removals"]
        is_step = event["index"] == facts["done"] < len(facts["steps"])
        if not is_step or is_removal != (event.topic == "plan_change.plan_removal_started"):
            yield "it begins a step that is not the present one"
    elif event.topic.endswith("_done"):
        facts["added"] = facts["removed"] = facts["steps"][event["index"]]
        facts["done"] = event["index"] + 1
