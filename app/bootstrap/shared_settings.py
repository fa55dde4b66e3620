"""What all processes beside a broker must share, or two `web` refuse each other's tokens.

The first process records it in the database; each other one compares at its start, `/readyz` later.
"""

import json
from collections.abc import Mapping
from datetime import datetime

from app.settings import Settings, WrongSetting
from projections.stores.notes import Notes

NAMES = ("TOKEN_ISSUER", "TOKEN_AUDIENCE", "CURRENCY", "TOKEN_ALGORITHM", "PATH_PREFIX")
COPIED = {"CURRENCY", "TOKEN_ALGORITHM"}  # By a restored copy, which has a place of its own.
SOURCES = ("TOKEN_ISSUER", "AUTH_URL", "PUBLIC_URL")  # Of the issuer; else HOST and PORT.


class SharedSettings:
    """The values of this process by setting, `own`, beside what is recorded."""

    def __init__(self, notes: Notes, settings: Settings, role: str) -> None:
        self._notes = notes
        # A projector needs no broker, so one without it is not alone.
        self._is_alone = settings.has_own_broker and role != "projector"
        self.own = {name: getattr(settings, name.lower()) for name in NAMES}
        self.own["TOKEN_ISSUER"] = settings.iss
        found = (each for each in SOURCES if getattr(settings, each.lower()))
        self._source = next(found, "HOST and PORT, as PUBLIC_URL is not set")
        if self._source not in SOURCES and not role.startswith(("web", "serve")):
            del self.own["TOKEN_ISSUER"]  # Nobody can call this process there.

    def recorded(self) -> Mapping[str, str]:
        found: dict[str, str] = json.loads(self._notes.value("settings") or "{}")
        return found

    def record(self, values: Mapping[str, str], at: datetime) -> None:
        self._notes.add("settings", json.dumps(values, sort_keys=True), at)

    def agree(self, at: datetime) -> None:
        """Record what is not recorded yet, or if alone all; WrongSetting if this one differs."""
        known = self.recorded()
        wanted = {**known, **self.own} if self._is_alone else {**self.own, **known}
        if wanted != known:
            self.record(wanted, at)
        self.require()

    def require(self) -> None:
        if (wrong := self.difference()) is not None:
            raise WrongSetting(wrong)

    def difference(self) -> str | None:
        """Say in what this process differs from what is recorded; None if in nothing."""
        known = self.own if self._is_alone else self.recorded()
        names = {"TOKEN_ISSUER": f"TOKEN_ISSUER (from {self._source})"}
        wrong = [
            f"{names.get(name, name)} is {own or 'empty'} here and {known[name] or 'empty'} for all"
            for name, own in self.own.items()
            if known.get(name, own) != own
        ]
        how = "set it alike in each process, or record it anew: python -m app settings --adopt"
        return f"{'; '.join(wrong)}: {how}" if wrong else None
