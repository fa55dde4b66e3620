"""The JSON files of operators, plans, links and accounts, read or refused with every mistake.

The fields are stricter than marshmallow's own: no number is read from a string, nor the reverse.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from json import JSONDecodeError
from typing import IO, Any, TypeVar
from uuid import UUID

from marshmallow import Schema, ValidationError, fields, validate, validates_schema

from app.books.journal import BELOW, EACH, FORMS, OWED, PROVIDERS, ROOTS, TIME_ZONES, Accounts
from app.books.postings import word_of
from app.bootstrap.providers import LOOKUPS, NETWORKS
from app.cli.arguments import read_moment
from app.cli.output import Refusals
from domain import strict_json
from domain.catalogue.commands import PLANS_MAX, PlanEntry, label_of
from domain.catalogue.file_errors import FileRefused, Path, Problem, Wrong, lines_of, repeated
from domain.catalogue.plan import (
    COVERAGE_TYPES,
    DATA_MB,
    DATA_MB_MAX,
    LATER_PRICES_MAX,
    SIMULATED,
    TEXT,
    VALIDITY_DAYS,
    VALIDITY_DAYS_MAX,
    CountryCoverage,
    LaterPrice,
    MobileOperator,
    PlanTerms,
    SponsorProfile,
    coverage_type_of,
    is_text,
    why_below_cost,
)
from domain.cost import Cost
from domain.links.esim import ICCID
from domain.links.importing import LINKS_MAX, LinkEntry, PlanBought
from domain.links.importing import label_of as label_of_link
from domain.links.network import LPA, NO_CODE
from domain.money import CURRENCIES, parse_amount
from domain.regions import is_country

FILE_BYTES_MAX = 128 * 1024 * 1024  # Parsed it takes about ten times as much memory.
CONFIRMATION = re.compile(r"[!-~]{1,64}", re.ASCII)

CURRENCY = "must be a currency code of ISO 4217, such as EUR"
DIVIDE = "divide the file, what it lacks stays as it is"
NO_OBJECT = "must be an object"
WHOLE = ("_schema", [NO_OBJECT])  # So marshmallow says it of a schema.

T = TypeVar("T")


class Object(Schema):
    """An object that has no unknown members."""

    error_messages = {"unknown": "is unknown", "type": NO_OBJECT}  # noqa: RUF012  # As marshmallow declares it.


@contextmanager
def naming(file: IO[bytes]) -> Iterator[None]:
    """Begin each reason why a file is refused with its name."""
    try:
        yield
    except FileRefused as refused:
        name = getattr(file, "name", "<stdin>")
        raise Refusals([f"{name}: {line}" for line in refused.lines]) from refused


def _options(rule: str, *, optional: bool) -> dict[str, Any]:
    messages = {"required": "is missing", "null": rule, "invalid": rule}
    absent = {"allow_none": True, "load_default": None} if optional else {"required": True}
    return {"error_messages": messages, **absent}


class Value(fields.Field[Any]):
    """A value that `read` converts, or refuses by an error; `rule` says what it must be."""

    def __init__(
        self, rule: str, read: Callable[[Any], Any], *, optional: bool = False, **options: Any
    ) -> None:
        super().__init__(**{**_options(rule, optional=optional), **options})
        self.rule, self.read = rule, read

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> Any:
        try:
            return self.read(value)
        except (AttributeError, TypeError, ValueError, OverflowError):
            raise ValidationError(self.rule) from None


class One(fields.Nested):
    """An object that is loaded as what `make` returns."""

    def __init__(
        self, make: Callable[..., Any], schema: type[Schema], *, optional: bool = False
    ) -> None:
        super().__init__(schema, **_options(NO_OBJECT, optional=optional))
        self.make = make

    def _deserialize(self, *value: Any, **options: Any) -> Any:
        return self.make(**super()._deserialize(*value, **options))


def of(make: Callable[..., Any], *, optional: bool = False, **members: fields.Field[Any]) -> One:
    """Return a field for an object of these members."""
    return One(make, Object.from_dict({**members}), optional=optional)


def many(item: fields.Field[Any], *rules: validate.Validator, optional: bool = False) -> Any:
    return fields.List(item, validate=rules, **_options("must be a list", optional=optional))


def checked(rule: str, fits: Callable[[Any], object], **options: Any) -> Value:
    """Return a field for a value that is kept as it is, if it fits."""

    def read(value: Any) -> Any:
        if not fits(value):
            raise ValueError
        return value

    return Value(rule, read, **options)


def one_of(*choices: str, optional: bool = True) -> Value:
    return checked(f"must be one of: {', '.join(choices)}", choices.__contains__, optional=optional)


def _read_id(value: Any) -> UUID:
    parsed = UUID(value)
    if str(parsed) != value.lower():  # Python reads other spellings too.
        raise ValueError
    return parsed


def _read_whole(least: int, most: int, value: Any) -> int:
    read = int(value) if type(value) is float and value.is_integer() else value
    if type(read) is not int or not least <= read <= most:
        raise ValueError
    return read


# It is loaded as micro-units.
amount = partial(Value, 'must be a string with at most six decimals, such as "4.50"', parse_amount)
identifier = partial(Value, "must be a UUID", _read_id)
moment = partial(Value, "must be a time with its offset, such as 2026-12-01T00:00:00Z", read_moment)
text = partial(checked, TEXT, is_text)


def _profile(*, optional: bool = False) -> One:
    return of(SponsorProfile, id=text(), name=text(), color=text(), optional=optional)


def _country() -> One:
    operator = of(MobileOperator, name=text(), network_types=many(text()))
    country = checked(
        "must be a country code of ISO 3166-1 alpha-2 (or XK), such as DE", is_country
    )
    return of(CountryCoverage, country_code=country, operators=many(operator))


class _Plan(Object):
    name = text()
    retail_price = amount(allow_none=True)
    data_mb = Value(DATA_MB, partial(_read_whole, 1, DATA_MB_MAX))
    validity_days = Value(VALIDITY_DAYS, partial(_read_whole, 1, VALIDITY_DAYS_MAX))
    sponsor_profiles = many(_profile())
    coverage = many(_country(), validate.Length(min=1, error="must have at least one country"))
    id = identifier(optional=True)
    provider_plan_id = text(optional=True)
    coverage_type = one_of(*COVERAGE_TYPES)
    later_prices = many(
        of(
            LaterPrice,
            starts_at=moment(data_key="from"),
            retail_price_micros=amount(data_key="retail_price"),
        ),
        validate.Length(max=LATER_PRICES_MAX, error="must be at most {max}"),
        optional=True,
    )
    cost = amount(optional=True)
    cost_currency = checked(CURRENCY, CURRENCIES.__contains__, optional=True)
    organization_id = identifier(optional=True)
    excluded_organizations = many(identifier(), optional=True)
    enabled = checked("must be true or false", lambda it: isinstance(it, bool), optional=True)


class _Link(Object):
    organization_id = identifier()
    iccid = checked("must be 18 to 22 digits", ICCID.fullmatch)
    plans = many(
        of(PlanBought, plan_id=identifier(), bought_at=moment(), addon_id=text(optional=True)),
        validate.Length(min=1, error="must have at least one plan"),
    )
    endpoint_id = text(optional=True)
    name = text(optional=True)
    sponsor_profile = _profile(optional=True)
    lpa = checked(NO_CODE, LPA.fullmatch, optional=True)
    confirmation_code = checked(
        "must be 1 to 64 visible ASCII characters", CONFIRMATION.fullmatch, optional=True
    )


def read_plan_file(
    data: bytes, currency: str, networks: Sequence[str] = (SIMULATED,), *, below_cost: bool = False
) -> list[PlanEntry]:
    """Read a plan file; raises FileRefused with every error. The first network is the default.

    `below_cost`: whether a plan may be sold for less than its network charges.
    """
    its_currency = f"must be {currency}, the currency of this installation"
    own = {"currency": checked(its_currency, [currency].__contains__), "network": one_of(*networks)}
    schema = _Plan.from_dict({**own})()

    def read(index: int, value: Any) -> PlanEntry:
        said = schema.load(value)
        terms = _terms(said, networks[0])
        if problems := _contradictions(said) or ([] if below_cost else _losses(terms)):
            raise Wrong(*problems)
        return PlanEntry(
            index=index,
            id=said["id"],
            organization_id=said["organization_id"],
            terms=terms,
            enabled=said["enabled"],
            excluded=said["excluded_organizations"],
            names_network=said["network"] is not None,
        )

    def label(index: int, value: Any) -> str:
        name = value.get("name") if isinstance(value, dict) else None
        return label_of(index, name if is_text(name) else None)

    return _read_entries(data, "plans", PLANS_MAX, read, label)


def _terms(said: Mapping[str, Any], first_network: str) -> PlanTerms:
    cost, network = said["cost"], said["network"] or first_network
    countries = [each.country_code for each in said["coverage"]]
    return PlanTerms(
        name=said["name"],
        provider_plan_id=said["provider_plan_id"],
        retail_price_micros=said["retail_price"] or 0,
        currency=said["currency"],
        data_mb=said["data_mb"],
        validity_days=said["validity_days"],
        coverage_type=said["coverage_type"] or coverage_type_of(countries),
        sponsor_profiles=said["sponsor_profiles"],
        coverage=said["coverage"],
        cost=None if cost is None else Cost(cost, said["cost_currency"] or said["currency"]),
        network=None if network == SIMULATED else network,  # Once it was the only one.
        later_prices=said["later_prices"] or None,
        unpriced=said["retail_price"] is None,
    )


def _contradictions(said: Mapping[str, Any]) -> list[Problem]:
    """Find values that are valid alone but contradict others."""
    countries = (each.country_code for each in said["coverage"])
    profiles = (each.id for each in said["sponsor_profiles"])
    problems = [
        *repeated((("coverage", i, "country_code"), code) for i, code in enumerate(countries)),
        *repeated((("sponsor_profiles", i, "id"), each) for i, each in enumerate(profiles)),
    ]
    if said["organization_id"] is not None and said["excluded_organizations"]:
        message = "must be empty beside an organization_id, since nobody else sees the plan"
        problems.append((("excluded_organizations",), message))
    if said["cost_currency"] is not None and said["cost"] is None:
        problems.append((("cost_currency",), "needs a cost beside it"))
    if said["retail_price"] is None and (said["enabled"] or said["later_prices"]):
        message = "is needed for a plan that is enabled or has prices to come"
        problems.append((("retail_price",), message))
    starts = [each.starts_at for each in said["later_prices"] or ()]
    if any(one >= other for one, other in pairwise(starts)):
        problems.append((("later_prices",), "must be in the order of time, each once"))
    return problems


def _losses(terms: PlanTerms) -> list[Problem]:
    """Refuse prices below the cost."""
    prices: list[tuple[Path, int]] = [
        (("later_prices", index, "retail_price"), each.retail_price_micros)
        for index, each in enumerate(terms.later_prices or ())
    ]
    if not terms.unpriced:
        prices.insert(0, (("retail_price",), terms.retail_price_micros))
    return [(path, why_below_cost(terms.cost)) for path, price in prices if terms.loses(price)]


def read_link_file(
    data: bytes, networks: Sequence[str], skipped: list[str] | None = None
) -> list[LinkEntry]:
    """Read a file of links that were issued elsewhere; the first network is the default.

    Raises FileRefused with every error, or adds those of entries to `skipped`, and leaves these
    entries out.
    """
    schema = _Link.from_dict({"network": one_of(*networks)})()

    def read(index: int, value: Any) -> LinkEntry:
        said = schema.load(value)
        return LinkEntry(**{**said, "index": index, "network": said["network"] or networks[0]})

    entries = _read_entries(
        data, "links", LINKS_MAX, read, lambda index, _: label_of_link(index), skipped
    )
    problems = [*_repeated(entries, "iccid"), *_repeated(entries, "endpoint_id")]
    _refuse(lines_of("", problems), skipped)
    gone = {path[1] for path, _ in problems}
    return [each for each in entries if each.index not in gone]


def _refuse(lines: list[str], skipped: list[str] | None) -> None:
    """Raise FileRefused with these lines, unless what they are about may be skipped."""
    if skipped is not None:
        skipped += lines
    elif lines:
        raise FileRefused(lines)


LONGEST = "9" * 9  # Of the numbers of customers.


def _codes(rule: str, pattern: str) -> One:
    """Return a field for what a program calls our accounts; those below `ROOTS` may be absent."""
    matches = re.compile(pattern).fullmatch
    code = partial(checked, rule, matches)
    each = re.compile(r"[^*]*\*[^*]*").fullmatch
    providers = [f"{root}:{word_of(name)}" for root in PROVIDERS for name in (*LOOKUPS, *NETWORKS)]
    known: dict[str, fields.Field[Any]] = {name: code() for name in ROOTS}
    known |= {name: code(optional=True) for name in (*BELOW, *providers)}
    known[EACH] = checked(
        f"{rule}, with * for the 1 to 9 digits of a number",
        lambda value: each(value) and matches(value.replace("*", LONGEST)),
        optional=True,
    )
    return One(_given, Object.from_dict(known))


def _given(**codes: str | None) -> Mapping[str, str]:
    """Leave out what is absent. A posting, but of a rounding, has a liability on one side alone."""
    given = {name: code for name, code in codes.items() if code is not None}
    owed = {code for name, code in given.items() if name.startswith(OWED)}
    both = [name for name, code in given.items() if code in owed and not name.startswith(OWED)]
    if both:
        raise ValidationError({name: ["must not be that of a liability"] for name in both})
    return given


def _from_to(least: int, most: int) -> Value:
    rule = f"must be a whole number from {least} to {most}"
    return Value(rule, partial(_read_whole, least, most))


# A spreadsheet runs what begins with another sign.
NAME = "must be a name that begins with a letter or digit", r"[^\W_][^\0-\x1f\ud800-\udfff]{0,99}"


class _Datev(Object):
    consultant = _from_to(1001, 9_999_999)
    client = _from_to(1, 99_999)
    account_length = _from_to(4, 8)
    year_begins = _from_to(1, 12)
    accounts = _codes("must be 1 to 9 digits, and not all 0", r"(?!0+$)[0-9]{1,9}")

    @validates_schema
    def check_lengths(self, data: Mapping[str, Any], **_: object) -> None:
        """Refuse codes that are too long: a personal account has one digit more than others."""
        most = data["account_length"] + 1
        long = [name for name, code in data["accounts"].items() if len(code) > most]
        if long:
            rule = f"must have at most {most} digits: account_length, or one more"
            raise ValidationError({"accounts": {name: [rule] for name in long}})


class _AccountFile(Object):
    postings = one_of("daily", "single", optional=False)
    time_zone = checked(
        "must be the name of a time zone, such as Europe/Berlin",
        lambda name: name in (TIME_ZONES / "zones").read_text().split(),
        required=False,  # Absent it stays, as in the folders of an earlier release.
    )
    datev = One(dict, _Datev, optional=True)
    xero = of(
        dict,
        tax_rate=checked(NAME[0], re.compile(NAME[1]).fullmatch),
        accounts=_codes("must be 1 to 10 letters and digits", r"[A-Za-z0-9][A-Za-z0-9._-]{0,9}"),
        optional=True,
    )
    quickbooks = of(
        dict,
        date=one_of("MM/DD/YYYY", "DD/MM/YYYY", optional=False),
        accounts=_codes(*NAME),
        optional=True,
    )


def read_account_file(data: bytes) -> Accounts:
    """Read what bookkeeping calls our accounts; raises FileRefused with every error."""
    found = _load(_AccountFile(), _parse(data))
    if not any(found[name] for name in FORMS):
        raise FileRefused([f"names no program: {', '.join(FORMS)}"])
    return found


def _repeated(entries: Sequence[LinkEntry], name: str) -> list[Problem]:
    """Find values that two links of one network share but must not."""
    given = [(each.index, each.network, getattr(each, name)) for each in entries]
    return repeated((("links", i, name), (net, its)) for i, net, its in given if its is not None)


def _read_entries(  # noqa: PLR0913  # Each says what kind of file it is.
    data: bytes,
    name: str,
    most: int,
    read: Callable[[int, Any], T],
    where: Callable[[int, Any], str],
    skipped: list[str] | None = None,
) -> list[T]:
    """Read a file of one list; raises FileRefused with every mistake, or adds it to `skipped`."""
    entries: list[T] = []
    lines: list[str] = []
    for index, value in enumerate(_list_in(data, name, most)):
        try:
            entries.append(read(index, value))
        except ValidationError as error:
            lines += lines_of(where(index, value), _problems(error.messages))
        except Wrong as wrong:
            lines += lines_of(where(index, value), wrong.problems)
    _refuse(lines, skipped)
    return entries


def _list_in(data: bytes, name: str, most: int) -> list[Any]:
    if len(data) > FILE_BYTES_MAX:
        raise FileRefused([f"is larger than {FILE_BYTES_MAX} bytes"])
    fits = validate.Length(max=most, error=f"must be at most {{max}}: {DIVIDE}")
    schema = Object.from_dict({name: many(fields.Raw(allow_none=True), fits)})()
    found: list[Any] = _load(schema, _parse(data))[name]
    return found


def _load(schema: Schema, parsed: Any) -> dict[str, Any]:
    """Load a file as a whole; raises FileRefused with its problems."""
    try:
        found: dict[str, Any] = schema.load(parsed)
    except ValidationError as error:
        raise FileRefused(lines_of("", _problems(error.messages))) from None
    return found


def _parse(data: bytes) -> Any:
    """Parse RFC 8259 JSON in UTF-8, a byte order mark in front allowed."""
    try:
        return strict_json.parse(data.removeprefix(BOM_UTF8))
    except UnicodeDecodeError as error:
        why = f"is not UTF-8: see byte {error.start}"
    except JSONDecodeError as error:
        why = f"is not JSON: {error.msg} at line {error.lineno} column {error.colno}"
    except ValueError as error:
        why = f"is not JSON that can be read: {error}"
    raise FileRefused([why])


def _problems(messages: Any, path: Path = ()) -> Iterator[Problem]:
    """Flatten what marshmallow says."""
    if isinstance(messages, Mapping):
        for name, inner in messages.items():
            yield from _problems(inner, path if (name, inner) == WHOLE else (*path, name))
    else:
        yield from ((path, message) for message in messages)
