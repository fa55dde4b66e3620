"""Draws docs/partners/link-states.svg from the product; `python -m tests.docs.pictures` writes it.

By hand are the places of the states, the words of partners, and the styles in the file.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from typing import get_args

from domain.links.link import Link, status_after
from domain.links.network import LinkStatus
from domain.links.readings import PlanStage
from tests.golden.files import EVENTS
from tests.tidy.source import ROOT

PAGE = ROOT / "docs" / "partners" / "link-states.svg"
BEGIN, END = "  <style>", "Each plan on it</text>\n"
SAID = '  <desc id="d">'
WIDE, HIGH = 64, 22  # Half of the box of a state.
PLACES = {"pending": (75, 66), "active": (300, 66), "suspended": (700, 66)}
PLACES |= {"failed": (75, 160), "inactive": (500, 160), "ended": (500, 280)}
PLACES |= {"waiting": (75, 346), "in use": (300, 346), "used up": (500, 404), "expired": (700, 346)}
MIDDLE, NETWORK = 500, "network"
LAST = {"failed", "ended", "expired"}
WORDS = {"link.activated": "201, charged", "link.provisioning_failed": "502, refunded"}
WORDS |= {"link.suspended": "suspend", "link.reactivated": "reactivate"}
WORDS |= {"link.ended": "end, cancel"}
WORDS |= dict.fromkeys(("link.status_seen", "link.status_kept"), NETWORK)
LIVE = get_args(LinkStatus)
Arrows = dict[tuple[str, str], str]


def arrows() -> Arrows:
    """Return what takes a link, and a plan on it, from each of its states to another one."""
    found = defaultdict[tuple[str, str], set[str]](set)
    for event in (each for each in EVENTS if isinstance(each, Link.Event)):
        after = "failed" if isinstance(event, Link.ProvisioningFailed) else status_after(event)
        before = ["pending"] if type(event) in Link.STAGES["stage"] else LIVE
        for way in product(before, LIVE if hasattr(event, "status") else [after]):
            if after and way[0] != way[1]:
                found[way[0], str(way[1])].add(WORDS[event.TOPIC])
    used, new, up, over = (each.name.lower().replace("_", " ") for each in PlanStage)
    plans = {(new, used): "first use", (used, up): "0 MB left"}
    plans |= dict.fromkeys(((used, over), (up, over)), "its end")
    # Whatever a request can do the network can show, too.
    links = {way: ", ".join(sorted(words - {NETWORK} or words)) for way, words in found.items()}
    return links | plans


def page() -> str:
    """Return the picture as it should be."""
    written, drawn = PAGE.read_text("utf-8"), arrows()
    said = "; ".join(f"{one} to {other}: {words}" for (one, other), words in drawn.items())
    by_hand = written.partition(BEGIN)[2].partition(END)[0]
    head = f"{written.partition(SAID)[0]}{SAID}{said}.</desc>\n{BEGIN}{by_hand}{END}"
    return head + "".join(_lines(drawn)) + "</svg>\n"


def _lines(drawn: Arrows) -> Iterator[str]:
    for (one, other), words in drawn.items():
        (x, y), (u, v), back = PLACES[one], PLACES[other], drawn.get((other, one), "")
        if not back or one < other:  # Two opposite ways are one line with two heads.
            part = max(abs(u - x) / WIDE, abs(v - y) / HIGH)
            dx, dy, heads = (u - x) / part, (v - y) / part, " back" * bool(back)
            line = f"M{x + dx:.0f} {y + dy:.0f}L{u - dx:.0f} {v - dy:.0f}"
            yield f'  <path class="way{heads}" d="{line}"/>'
            side = 0 if y == v else (1 if x + u < 2 * MIDDLE else -1) * (-1) ** (other == "ended")
            for row, said in enumerate(filter(None, (words, back))):
                top = y + 40 if x == u else (y + v) / 2 + (8 if other == "ended" else -8)
                at = (x + u) / 2 + 8 * side, top + (14 if side else 25) * row
                yield f'<text class="say side{side}" x="{at[0]:.0f}" y="{at[1]:.0f}">{said}</text>'
            yield "\n"
    for name in dict.fromkeys(name for way in drawn for name in way):
        (x, y), kind = PLACES[name], " end" * (name in LAST)
        box = f'x="{x - WIDE}" y="{y - HIGH}" width="{2 * WIDE}" height="{2 * HIGH}" rx="8"'
        yield f'  <rect class="state{kind}" {box}/>'
        yield f'<text x="{x}" y="{y + 5}">{name}</text>\n'
