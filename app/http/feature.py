"""Whether a feature is on for a caller; asked before its input is looked at."""

from app.authorization import Caller
from app.http.request_context import container
from domain.errors import NumberLookupDisabled


def require_lookup(caller: Caller) -> None:
    """Raise NumberLookupDisabled while lookups are off, for everybody or for the caller."""
    if not (container().settings.number_lookup_enabled and caller.lookup_enabled):
        raise NumberLookupDisabled


def lookup_price_micros(caller: Caller) -> int:
    """Return what a lookup costs this caller: its own price, else the general one."""
    if caller.price_micros is not None:
        return caller.price_micros
    return container().settings.price_per_lookup_micros
