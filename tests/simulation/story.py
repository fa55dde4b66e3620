"""What customers ask in one run, by the seed alone, whatever the product answers."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

REQUESTS = 24
WEIGHTS = {
    "link": 8,
    "change": 8,
    "suspend": 3,
    "reactivate": 3,
    "end": 1,
    "cancel": 3,
    "again": 5,  # An earlier request, with its key.
    "lookup": 4,
    "job": 4,
    "drop": 2,  # Cancel a job.
    "read": 1,
    "import": 1,  # A link that was issued elsewhere.
    "spend": 1,  # All but a little of what a customer has.
    "deposit": 1,
    "deactivate": 1,  # By the network itself.
}
ABOUT = dict.fromkeys(("change", "suspend", "reactivate", "end", "cancel", "read"), "link")
ABOUT |= {"deactivate": "link", "drop": "job"}
KEYED = ("link", "change", "lookup", "job")
RECENT = 4  # Links, or jobs, that are still asked about.
KEYS, SOON, UNAWAITED = 0.7, 0.25, 0.1
OFTEN = (0, 0, 0, 0, 1, 1, 1, 2, 3, 4, 5, 6, 7)  # Of the catalogue; the last ones play failures.
SIZES = (1, 3, 10, 30, 200, 200)
HOURS = (*[6] * 12, 24, 30 * 24)  # Until the next request, if nothing is left to do.


def chance(*key: object) -> Random:
    """Return choices that follow from a key, whatever was chosen before."""
    return Random(", ".join(map(str, key)))


@dataclass(frozen=True)
class Request:
    """One request; `about` is the number of the request for its link or job.

    `plans` are places in the catalogue; `removes` says which of the present plans go. After one
    that is `soon` the next request comes a second later, whatever is still open.
    """

    number: int
    kind: str
    customer: int
    key: str | None
    about: int
    plans: tuple[int, ...]
    removes: tuple[bool, ...]
    count: int
    amount: int
    waits: bool
    soon: bool
    hours: int
    again: bool = False

    def __str__(self) -> str:
        once_more = "once more " * self.again
        about = f" {ABOUT.get(self.kind, '')} {self.about}" * bool(self.about)
        more = f", removing {sum(self.removes)}, adding {len(self.plans)}" * (self.kind == "change")
        key = f", under key {self.key}" * (self.key is not None)
        return f"customer {self.customer} asks {once_more}to {self.kind}{about}{more}{key}"


def requests(seed: int, plans: int) -> Iterator[tuple[int, Request]]:
    """Yield the requests of a seed, counted from 1; a catalogue has so many plans."""
    made: dict[str, list[Request]] = {"link": [], "job": []}
    keyed: list[Request] = []
    for number in range(1, REQUESTS + 1):
        random = chance(seed, number, "request")
        (kind,) = random.choices([*WEIGHTS], [*WEIGHTS.values()])
        if kind == "again" and keyed:
            yield number, replace(random.choice(keyed), again=True, soon=random.random() < SOON)
            continue
        if kind == "again" or (kind in ABOUT and not made[ABOUT[kind]]):
            kind = "link"
        about = random.choice(made[ABOUT[kind]][-RECENT:]) if kind in ABOUT else None
        request = Request(
            number,
            kind,
            about.customer if about else random.choice((1, 1, 2)),
            f"key-{number}" if random.random() < KEYS and kind in KEYED else None,
            about.number if about else 0,
            tuple(random.choice(OFTEN) % plans for _ in range(random.randint(kind == "link", 2))),
            tuple(random.random() < 0.3 for _ in range(9)),
            random.choice(SIZES),
            random.randint(1, 20_000_000),
            waits=random.random() >= UNAWAITED,
            soon=random.random() < SOON,
            hours=random.choice(HOURS),
        )
        made.get(kind, []).append(request)
        keyed += [request] * (request.key is not None)
        yield number, request
