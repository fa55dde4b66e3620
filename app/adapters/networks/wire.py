"""Reads amounts of money and times, which several networks send in the same form."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, TypeVar

from msgspec import Meta, Struct, ValidationError, convert

from app.adapters.remote.exchange import CURRENCY, micros_of, path_of
from domain.catalogue.supplied import OddEntry
from domain.cost import Cost

T = TypeVar("T")
Operators = Mapping[str, tuple[tuple[str, tuple[str, ...]], ...]]

QUANTITY_MAX = 1e15
# In whatever unit. The bounds refuse NaN, which a text may hold.
Quantity = Annotated[float, Meta(ge=-QUANTITY_MAX, le=QUANTITY_MAX)]


def cost_of(
    amount: Decimal | None, currency: str | None, reference: str | None, *, estimated: bool = False
) -> Cost | None:
    """Return an amount as a cost; None if it is missing or is no valid cost."""
    micros = micros_of(amount)
    if micros is None or micros < 0 or not currency or not CURRENCY.fullmatch(currency):
        return None
    return Cost(micros, currency, reference, estimated)


def moment(text: str | None) -> datetime | None:
    """Return a time in UTC; a time without a zone is UTC. None for a text that is no time.

    Date and time may be separated by a space. Some networks send an empty text for an event that
    has not happened.
    """
    try:
        parsed = convert((text or "").replace(" ", "T", 1), datetime)
        return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)
    except (ValidationError, OverflowError):  # Overflow: day 1 of year 1 in a zone ahead of UTC.
        return None


def entries(
    listed: list[Any] | Mapping[str, Any],
    kind: type[T],
    where: str,
    odd: list[OddEntry],
    id_name: str = "",
) -> Iterator[tuple[str, T]]:
    """Yield the entries of a list, or of an object, each with its place; `odd` gets the others.

    `id_name` is the field of an entry that is the id of a plan, if it is one.
    """
    values = listed.values() if isinstance(listed, Mapping) else listed
    for index, value in enumerate(values):
        at = f"{where}[{index}]"
        try:
            entry = convert(value, kind, strict=False)
        except ValidationError as error:
            known_as = value.get(id_name) if isinstance(value, Mapping) else None
            provider_plan_id = known_as if isinstance(known_as, str) else None
            reason = f"cannot be read at {at}{path_of(error)[1:]}"
            odd.append(OddEntry(provider_plan_id, reason))
        else:
            yield at, entry


class MobileNetwork(Struct, rename={"brand_name": "brandName"}):
    """A network of a country and its generations, which each provider calls otherwise."""

    name: str
    brand_name: str | None = None
    types: list[str] | None = None
    speed: list[str] | None = None
    speeds: list[str] | None = None


class CountryNetworks(Struct):
    """The networks of a country; `name` is its code where there is no other."""

    name: str
    iso: str | None = None
    code: str | None = None
    networks: list[Any] | None = None


def operators_by_country(listed: list[Any], where: str, odd: list[OddEntry]) -> Operators:
    """Return the names and generations of networks, by the code of their country."""
    return {
        each.iso or each.code or each.name: tuple(
            (its.brand_name or its.name, tuple(its.types or its.speed or its.speeds or ()))
            for _, its in entries(each.networks or [], MobileNetwork, f"{at}.networks", odd)
        )
        for at, each in entries(listed, CountryNetworks, where, odd)
    }
