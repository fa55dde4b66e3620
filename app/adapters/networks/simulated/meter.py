"""How the plans of an endpoint are used up and expire: pure arithmetic over a period of time."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec


class Addon(msgspec.Struct, frozen=True):
    """A data plan on an endpoint, in MB; its validity starts when it is first used.

    An `added_at` in the future means that it will come late; it is not there yet. A removed plan is
    kept, so that its `reference` is not taken for a new one.
    """

    addon_id: str
    reference: str | None
    provider_plan_id: str
    data_mb: int
    validity_days: int
    added_at: datetime
    started_at: datetime | None = None
    used_mb: float = 0.0
    removed: bool = False
    countries: tuple[str, ...] = ()  # Empty: works anywhere.

    @property
    def expires_at(self) -> datetime | None:
        """When it ends even if some of it is left; None until it is first used."""
        return self.started_at and self.started_at + timedelta(days=self.validity_days)

    def is_listed(self, moment: datetime) -> bool:
        """Tell whether the network lists it at a moment."""
        return not self.removed and self.added_at <= moment

    def remaining_mb(self, moment: datetime) -> float:
        """Return how much can still be used at a moment."""
        return 0.0 if self.has_expired(moment) else self.data_mb - self.used_mb

    def has_expired(self, moment: datetime) -> bool:
        """Tell whether its validity is over at a moment."""
        return self.expires_at is not None and self.expires_at <= moment


def advance(
    addons: Sequence[Addon], since: datetime, until: datetime, mb_per_s: float
) -> list[Addon]:
    """Return the plans after steady traffic from `since` to `until`, in MB per second.

    They are used one after the other in the given order, which must be that of `added_at`. The next
    one starts when the one before it is used up or has expired.
    """
    assert mb_per_s > 0, mb_per_s
    moment = since
    advanced = []
    for addon in addons:
        begin = max(moment, addon.added_at)
        if begin < until and not addon.removed and addon.remaining_mb(begin) > 0:
            used, moment = _use(addon, begin, until, mb_per_s)
            advanced.append(used)
        else:
            advanced.append(addon)
    return advanced


def _use(addon: Addon, begin: datetime, until: datetime, mb_per_s: float) -> tuple[Addon, datetime]:
    """Use one plan from a moment on; return it and the moment at which it could carry no more."""
    started = msgspec.structs.replace(addon, started_at=addon.started_at or begin)
    assert started.expires_at is not None
    end = min(until, started.expires_at)
    left_mb = addon.data_mb - addon.used_mb
    spent_mb = (end - begin).total_seconds() * mb_per_s
    if spent_mb < left_mb:
        used_mb = min(addon.used_mb + spent_mb, float(addon.data_mb))
        return msgspec.structs.replace(started, used_mb=used_mb), end
    emptied = begin + timedelta(seconds=left_mb / mb_per_s)
    used = msgspec.structs.replace(started, used_mb=float(addon.data_mb))
    return used, min(emptied, end)
