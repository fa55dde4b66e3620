"""The one rule by which a recording is the same on every day: what is made up gets a number.

Ids, secrets, signatures and places in the log are numbered by their first appearance, each kind for
itself, so that what is equal stays equal. A time is told by the moment of the scenario that it
belongs to. Nothing else is masked: no amount, no count, no name.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

Replace = Callable[[re.Match[str]], str]

# A moment of the scenario lasts from its beginning until this long after the last exchange; the
# simulated network says that a phone is installed and used within three minutes.
NEAR = timedelta(minutes=4)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)

TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|\+00:00| UTC)"
# A checkpoint as it is signed. The clock makes one at an interval, so the newest differs.
NOTE = (
    r"api\.example\n\d+\n[A-Za-z0-9+/]{43}=\nposition \d+\ntime \S+\n"
    r"\n— api\.example [A-Za-z0-9+/]+=*"
)
SIGNATURE = r"\bv1,[\w+/]{43}="  # Two of one second are the same.
# By kind, the first that fits: a pattern whose group is replaced.
NUMBERED = {
    "token": r"(eyJ[\w-]+\.[\w-]+\.[\w-]+)",
    "secret": r"(whsec_[\w+/=]+|(?:cls|hov)_[\w-]{43}|opk_[0-9a-f]{32}_[\w-]{43})",
    "etag": r'(W/"[^"]+")',
    "cursor": r"(\bAQAAAA[\w-]{14}(?![\w-]))",
    "client": r"(\bcl_[0-9a-f]{24,32}\b)",
    "code": r"(?:\$|%24|<code dir=\"ltr\">)([A-Z2-7]{4}(?:-[A-Z2-7]{4}){3}\b)",
    "symbol": r"role=\"img\" aria-label=\"[^\"]*\">(<svg .*?</svg>)",  # It draws the code.
    "id": r"([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|\b[0-9a-f]{32}\b)",
    "iccid": r"(\b89883999\d{11}\b)",
    "msisdn": r"(\+883999\d{9}\b)",
    "endpoint": r"(\b(?:ep|ad)-[0-9a-f]{20}\b)",
    "hash": (
        r"(\b[0-9a-f]{64}\b"
        r"|(?<![\w+/])(?:[A-Za-z0-9+/]{43}=|[A-Za-z0-9+/]{58,}={0,2}|[\w-]{43})(?![\w=-]))"
    ),
}
# Of headers and of what commands print.
FLEETING = {
    r"(\bt=)\d+": r"\1<seconds>",
    r"(^ratelimit-policy: .*\nretry-after: )\d+": r"\1<seconds>",
    r"(^retry-after: )\d{2,}": r"\1<seconds>",
    r"\bos:[a-z_][\w-]*": "<user>",
    r"\bby key [0-9a-f]{8}\b": "by key <key>",
    r"\blog positions [\d,]+ to [\d,]+": "log positions <from> to <to>",
}
# In JSON by the name that a value has: its place in the log, which others write to meanwhile; what
# takes as long as it takes; and what the simulated network draws by the ICCID.
POSITION = re.compile(r"([a-z_]*position|trusted)$")
SIZES = {"size", "index"}  # Of the tree over the log, which has no gaps as positions have.
DURATION = re.compile(r"([a-z_]*_ms|clock_offset_seconds)$")
EPOCH = {"iat", "exp", "nbf"}
KEYS = {"key_id", "kid"}
DRAWN = {"confirmation_code"}
UNORDERED = {"charged_link_ids", "link_ids"}  # They come in the order of the ids themselves.


@dataclass
class Moment:
    """A time at which the scenario does something; the clock runs on meanwhile."""

    name: str
    begin: datetime
    end: datetime


@dataclass
class Masks:
    """What one scenario has masked so far. `plain` names texts of its surroundings."""

    moments: list[Moment] = field(default_factory=list)
    plain: dict[str, str] = field(default_factory=dict)
    fleeting: dict[str, str] = field(default_factory=lambda: dict(FLEETING))
    figures: set[str] = field(
        default_factory=set
    )  # Names of numbers of which none is like another.
    _seen: dict[str, dict[str, int]] = field(default_factory=dict)

    def hide_sizes(self) -> None:
        """Hide how many bytes something takes."""
        self.fleeting |= {r"[\d,]+\.\d MB": "<size>", r"[\d,]+ bytes an event": "<size> an event"}
        self.figures |= {"used", "of", "bytes_a_day", "events_a_day"}

    def mask(self, text: str) -> str:
        """Return a text as it stands in a recording."""
        for found, name in self.plain.items():
            text = text.replace(found, f"<{name}>").replace(found.upper(), f"<{name}>")
        text = re.sub(NOTE, "<signed note>", text)
        text = re.sub(SIGNATURE, "<signature>", text)
        text = re.sub(TIME, lambda match: self._time(match[0]), text)
        for kind, pattern in NUMBERED.items():
            text = re.sub(pattern, self._numbering(kind), text)
        text = re.sub(r"(webhook-timestamp: )(\d{10})\b", self._epoch, text)
        for pattern, instead in self.fleeting.items():
            text = re.sub(pattern, instead, text, flags=re.MULTILINE)
        return text

    def tree(self, value: Any, name: str = "") -> Any:
        """Return JSON as it stands in a recording; what is JSON inside a text is shown as such."""
        match value:
            case dict():
                return {each: self.tree(value[each], each) for each in sorted(value)}
            case list() if name in UNORDERED:
                return sorted(self.mask(each) for each in value)
            case list():
                return [self.tree(each, name) for each in value]
            case _ if name in DRAWN:
                return f"<{name}>"
            case bool() | None:
                return value
            case str():
                return self._text(value, name)
            case _:
                return self._number(value, name)

    def _text(self, value: str, name: str) -> Any:
        if name in KEYS:
            return self._name("key", value)
        return self.tree(json.loads(value)) if value.startswith('{"') else self.mask(value)

    def _number(self, value: float, name: str) -> Any:
        if POSITION.match(name):
            return self._name("position", str(value))
        if name in SIZES:
            return self._name("size", str(value))
        if name in self.figures:
            return "<figure>"
        if name in EPOCH:
            return self._told(datetime.fromtimestamp(value, UTC))
        return "<duration>" if DURATION.match(name) else value

    def columns(self, rows: Sequence[Sequence[str]]) -> Sequence[Sequence[str]]:
        """Return the rows of a table with the positions in it numbered."""
        head, *others = rows
        places = {index for index, name in enumerate(head) if name.endswith("position")}
        return [head] + [
            [
                self._name("position", cell) if index in places and cell else self._cell(cell)
                for index, cell in enumerate(row)
            ]
            for row in others
        ]

    def _cell(self, text: str) -> str:
        return json.dumps(self.tree(text)) if text.startswith('{"') else text

    def _numbering(self, kind: str) -> Replace:
        def replace(match: re.Match[str]) -> str:
            begin, end = match.start(1) - match.start(), match.end(1) - match.start()
            return f"{match[0][:begin]}{self._name(kind, match[1])}{match[0][end:]}"

        return replace

    def _name(self, kind: str, value: str) -> str:
        seen, value = self._seen.setdefault(kind, {}), value.lower()
        return f"<{kind} {seen.setdefault(value, len(seen) + 1)}>"

    def _epoch(self, match: re.Match[str]) -> str:
        return match[1] + self._told(datetime.fromtimestamp(int(match[2]), UTC))

    def _time(self, text: str) -> str:
        text = text.replace(" UTC", "+00:00").replace("Z", "+00:00")
        return self._told(datetime.fromisoformat(text))

    def _told(self, time: datetime) -> str:
        """Name the moment that a time belongs to, or how far it is from the last one before it."""
        for moment in self.moments:
            if moment.begin - MINUTE <= time <= moment.end + NEAR:
                return f"<{moment.name}>"
        before = [each for each in self.moments if each.begin <= time] or self.moments[:1]
        moment = max(before, key=lambda each: each.begin)
        return f"<{moment.name} {_distance(time - moment.begin)}>"


def _distance(apart: timedelta) -> str:
    """Tell a distance as exactly as the speed of a machine leaves it certain."""
    sign, apart = ("-", -apart) if apart < timedelta(0) else ("+", apart)
    unit = next(
        unit
        for least, unit in ((2 * DAY, HOUR), (2 * HOUR, 10 * MINUTE), (-DAY, MINUTE))
        if apart >= least
    )
    whole = round(apart / unit) * unit
    hours, minutes = divmod(whole.seconds // 60, 60)
    parts = (whole.days, "d"), (hours, "h"), (minutes, "min")
    return sign + (" ".join(f"{count} {name}" for count, name in parts if count) or "0")
