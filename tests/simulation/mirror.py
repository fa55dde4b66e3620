"""What a partner knows who has read nothing but the feed of events: it is what the API says."""

from collections.abc import Callable, Iterator
from typing import Any

Get = Callable[[str], Any]  # Returns the data of a read.


class Mirror:
    """Made of events alone, which may come in pages of any size."""

    def __init__(self) -> None:
        self.links: dict[str, str] = {}
        self.plans: dict[str, dict[str, str | None]] = {}  # By link, when each ends.
        self.jobs: dict[str, str] = {}
        self.balance, self.sequence = "", 0

    def take(self, name: str, data: dict[str, Any]) -> None:
        noun, _, what = name.partition(".")
        if noun == "wallet" and what != "low_balance":
            assert data["sequence"] == self.sequence + 1, "an entry is missing"
            self.balance, self.sequence = data["balance"], data["sequence"]
        match name:
            case "job.finished":
                self.jobs[data["job_id"]] = data["status"]
            case "link.activated":
                self.links[data["link_id"]] = "active"
                begun = data.get("plans", [data])
                self.plans[data["link_id"]] = {e["activation_id"]: None for e in begun}
            case "link.status_changed":
                assert self.links[data["link_id"]] == data["was"]
                self.links[data["link_id"]] = data["status"]
            case "topup.completed":
                self.plans[data["link_id"]][data["activation_id"]] = None
            case "link.plan_removed":
                del self.plans[data["link_id"]][data["activation_id"]]
            case "link.plan_started":
                self.plans[data["link_id"]][data["activation_id"]] = data["expires_at"]


def differences(get: Get) -> Iterator[str]:
    """Read all that the API shows, and yield what a mirror has otherwise."""
    listed = get("/v1/links?per_page=100")["data"]
    shown = {each["id"]: get(f"/v1/links/{each['id']}") for each in listed}
    jobs = get("/number-lookup/bulk?per_page=100")["data"]
    balance, mirror = get("/v1/wallet")["balance"], Mirror()
    for name, data in _events(get):  # After the reads, which record what they see.
        mirror.take(name, data)
    if mirror.links != {each["id"]: each["status"] for each in shown.values()}:
        yield f"links {mirror.links}"
    for link_id, link in shown.items():
        known = mirror.plans[link_id]
        plans = {  # Nobody reads in the background here: of what has expired no end is told.
            e["id"]: known.get(e["id"]) if e["status"] == "expired" else e["expiry_date"]
            for e in link["activations"]
        }
        if link["status"] != "ended" and known != plans:
            yield f"plans of {link_id}: {known}, not {plans}"
    ended = {e["job_id"]: e["status"] for e in jobs if e["status"] not in {"queued", "processing"}}
    if mirror.jobs != ended:
        yield f"jobs {mirror.jobs}, not {ended}"
    if mirror.balance != balance:
        yield f"balance {mirror.balance}, not {balance}"


def _events(get: Get) -> Iterator[tuple[str, Any]]:
    after, has_more = "", True
    while has_more:
        page = get(f"/v1/events?limit=7&after={after}")
        after, has_more = page["next"], page["has_more"]
        yield from ((each["body"]["type"], each["body"]["data"]) for each in page["data"])
