"""The settings that must be the same in all processes of an installation beside a broker.

The first process records them in the database; each other one compares at its start, and `/readyz`
from then on. Otherwise two `web` would refuse each other's tokens, and nothing would say so.
"""

import json
from dataclasses import replace
from datetime import datetime

from app.settings import Settings, WrongSetting
from projections.stores.notes import Notes

ISSUER = "TOKEN_ISSUER"
NAMES = (ISSUER, "TOKEN_AUDIENCE", "CURRENCY", "TOKEN_ALGORITHM", "PATH_PREFIX")
OF_ONE_PLACE = {ISSUER, "TOKEN_AUDIENCE", "PATH_PREFIX"}  # A restored copy has its own.
SOURCES = {ISSUER: "token_issuer", "AUTH_URL": "auth_url", "PUBLIC_URL": "public_url"}


def shared(settings: Settings, *, listens: bool) -> dict[str, str]:
    """Return the values, by setting; the address of a process is an issuer only if it `listens`."""
    found = {name: getattr(settings, name.lower()) for name in NAMES} | {ISSUER: settings.iss}
    if not (listens or settings.names_issuer):
        del found[ISSUER]
    return found


class SharedSettings:
    """What this process is set to beside what is recorded."""

    def __init__(self, notes: Notes, settings: Settings, role: str) -> None:
        self._notes = notes
        self._settings = settings
        self._own = shared(settings, listens=role.startswith(("web", "serve")))
        self._is_alone = settings.has_own_broker

    def recorded(self) -> dict[str, str]:
        """Return what is recorded, by setting."""
        found: dict[str, str] = json.loads(self._notes.value("settings") or "{}")
        return found

    def agree(self, at: datetime) -> None:
        """Record what is not recorded yet; a process that is alone records its own values.

        Raises WrongSetting if this process differs.
        """
        known = self.recorded()
        wanted = known | self._own if self._is_alone else self._own | known
        if wanted != known:
            self.record(wanted, at)
        self.require()

    def require(self) -> None:
        """Raise WrongSetting if this process differs from what is recorded."""
        if (wrong := self.difference()) is not None:
            raise WrongSetting(wrong)

    def record(self, values: dict[str, str], at: datetime) -> None:
        """Record these values in place of all others."""
        self._notes.add("settings", json.dumps(values, sort_keys=True), at)

    def forget_place(self, at: datetime) -> None:
        """Forget what a copy at another place has of its own."""
        kept = {name: it for name, it in self.recorded().items() if name not in OF_ONE_PLACE}
        self.record(kept, at)

    def difference(self) -> str | None:
        """Say which settings of this process differ from the recorded ones; None if none does."""
        if self._is_alone:
            return None
        known = self.recorded()
        wrong = [
            f"{self._named(name)} is {value or 'empty'} here and {known[name] or 'empty'} for all"
            for name, value in self._own.items()
            if known.get(name, value) != value
        ]
        how = "set it alike in each process, or record the new value: python -m app settings adopt"
        return f"{'; '.join(wrong)}: {how}" if wrong else None

    def _named(self, name: str) -> str:
        if name != ISSUER:
            return name
        found = (each for each, field in SOURCES.items() if getattr(self._settings, field))
        source = next(found, "HOST and PORT, as PUBLIC_URL is not set")
        return name if source == name else f"{name} (from {source})"


def with_recorded(settings: Settings, recorded: dict[str, str]) -> Settings:
    """Return settings with the recorded values, which commands use."""
    known = {name.lower(): recorded[name] for name in NAMES if name in recorded}
    return replace(settings, **known)  # type: ignore[arg-type]  # They were read from settings.
