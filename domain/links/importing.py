"""Imports links that were issued elsewhere from a file of operators, all or none.

Nothing is charged for them. A link that was imported before stays as it is.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn
from uuid import UUID

from msgspec.structs import replace

from domain.accounts.organization import Organization
from domain.catalogue.checked_json import (
    FILE,
    Check,
    FileRefused,
    Problem,
    Wrong,
    every,
    identifier,
    lines_of,
    members,
    moment,
    one_of,
    read_file,
    repeated,
    some,
    text,
)
from domain.catalogue.plan import SIMULATED, PlanTerms, SponsorProfile
from domain.catalogue.plan_file import PROFILE
from domain.cause import Cause
from domain.ids import derive_id
from domain.links.bought_plan import TakenOver
from domain.links.esim import ICCID, Esim, esim_id
from domain.links.link import Link
from domain.links.network import ActivationCode
from domain.links.networks import Networks
from domain.links.offers import buy
from domain.log.log import Log, retry_on_conflict
from domain.personal import Vault, open_text, seal_text

LINKS_MAX = 5_000  # One transaction writes them all, and other appends wait for its end.
# Short enough for a QR code of every error correction level.
CONFIRMATION = re.compile(r"[!-~]{1,64}", re.ASCII)
LPA = re.compile(r"(?=.{1,255}$)LPA:1\$[A-Za-z0-9.-]+\$[0-9A-Za-z-]+(\$[!-~]*)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class ImportedLinks:
    """How many links were taken over, and how many were here already."""

    created: int
    unchanged: int


@dataclass(frozen=True)
class LinkImport:
    """Takes links over; `terms` returns every plan of the catalogue by its id."""

    log: Log
    vault: Vault
    networks: Networks
    terms: Callable[[], Mapping[UUID, PlanTerms]]

    def run(self, data: bytes, cause: Cause, *, dry_run: bool) -> ImportedLinks:
        """Take over the links of a file, all or none; with `dry_run` only say how many.

        Raises FileRefused with every reason.
        """
        entries = _read(data, self.networks.names)
        return retry_on_conflict(lambda: self._run(entries, cause, dry_run=dry_run))

    def _run(
        self, entries: Sequence[Mapping[str, Any]], cause: Cause, *, dry_run: bool
    ) -> ImportedLinks:
        catalogue = self.terms()
        owners = {each["organization_id"] for each in entries}
        unknown = {each for each in owners if self.log.find(Organization, each) is None}
        made: list[tuple[Link, Esim]] = []
        lines: list[str] = []
        for index, entry in enumerate(entries):
            try:
                if entry["organization_id"] in unknown:
                    _refuse("organization_id", "is no organization")
                found = self._take(entry, catalogue, cause, sealed=not dry_run)
            except Wrong as wrong:
                lines += lines_of(_place(index), wrong.problems)
            else:
                made += [found] if found is not None else []
        if lines:
            raise FileRefused(lines)
        if made and not dry_run:
            self.log.append(*(each for pair in made for each in pair))
        return ImportedLinks(len(made), len(entries) - len(made))

    def _take(
        self,
        entry: Mapping[str, Any],
        terms: Mapping[UUID, PlanTerms],
        cause: Cause,
        *,
        sealed: bool,
    ) -> tuple[Link, Esim] | None:
        """Return the link of an entry with its eSIM; None if it was taken over already."""
        network, iccid = entry["network"], entry["iccid"]
        if entry["confirmation_code"] is not None and entry["lpa"] is None:
            _refuse("confirmation_code", "must not stand without an lpa")
        link_id = derive_id("imported_link", network, iccid)
        facts = {
            "organization_id": entry["organization_id"],
            "name": entry["name"],
            "endpoint_id": self._endpoint_of(entry),
            "sponsor_profile": entry["sponsor_profile"],
            "plans": [*_plans(link_id, entry, terms, cause.at)],
        }
        known = self.log.find(Link, link_id)
        if known is not None:
            _require_same(known, facts, self.vault)
            return None
        esim = self.log.find(Esim, esim_id(network, iccid))
        if esim is not None and esim.link_id is not None:
            _refuse("iccid", f"is the eSIM of link {esim.link_id}")
        esim = esim or Esim.register(network, iccid, cause)
        esim.reserve(link_id, cause)
        lpa = None
        if sealed:
            owner = entry["organization_id"]
            facts["name"] = seal_text(self.vault, owner, link_id, entry["name"], cause)
            lpa = seal_text(self.vault, owner, link_id, _code_of(entry), cause)
        return Link.take_over(link_id, cause, iccid=iccid, lpa=lpa, **facts), esim

    def _endpoint_of(self, entry: Mapping[str, Any]) -> str:
        """Return the endpoint id; on an order network that is the ICCID."""
        given: str | None = entry["endpoint_id"]
        if self.networks.of(entry["network"]).shape != "order":
            if given is None:
                _refuse("endpoint_id", "is missing: the network gives each link one")
            return given
        if given not in {None, entry["iccid"]}:
            _refuse("endpoint_id", "must be the ICCID on this network, or be left out")
        return str(entry["iccid"])


def _code_of(entry: Mapping[str, Any]) -> str | None:
    """Return the activation code to be sealed; None for the network to be asked."""
    lpa = entry["lpa"]
    return None if lpa is None else ActivationCode(lpa, entry["confirmation_code"]).as_text()


def _plans(
    link_id: UUID, entry: Mapping[str, Any], terms: Mapping[UUID, PlanTerms], now: datetime
) -> Iterator[TakenOver]:
    """Yield the plans of an entry in order of purchase."""
    problems: list[Problem] = []
    for index, each in enumerate(entry["plans"]):
        plan = terms.get(each["plan_id"])
        if plan is None or plan.provider_plan_id is None:
            message = "is no plan of the catalogue that a network has"
            problems.append((("plans", index, "plan_id"), message))
        elif (plan.network or SIMULATED) != entry["network"]:
            problems.append((("plans", index, "plan_id"), "is a plan of another network"))
        if each["bought_at"] > now:
            problems.append((("plans", index, "bought_at"), "must not be in the future"))
    if problems:
        raise Wrong(*problems)
    for index, each in enumerate(sorted(entry["plans"], key=lambda each: each["bought_at"])):
        bought = replace(buy(each["plan_id"], terms[each["plan_id"]]), price_micros=0, cost=None)
        activation_id = derive_id("activation", link_id, index)
        yield TakenOver(activation_id, bought, each["bought_at"], each["addon_id"])


def _require_same(link: Link, facts: Mapping[str, Any], vault: Vault) -> None:
    """Raise Wrong if a link was imported with other facts; later changes do not count.

    Nor does a name that was erased.
    """
    assert isinstance(link.requested, Link.Imported)
    named = link.requested.sealed_name or link.requested.name
    name = open_text(vault, link.organization_id, link.id, named)
    activations = [link.activations.get(each.activation_id) for each in facts["plans"]]
    had = [each for each in activations if each is not None]
    before = {
        "organization_id": link.organization_id,
        "name": facts["name"] if name is None and named is not None else name,
        "endpoint_id": link.endpoint_id,
        "sponsor_profile": link.requested.sponsor_profile,
        "plans": [(each.plan.plan_id, each.bought_at, each.addon_id) for each in had],
    }
    plans = [(each.plan.plan_id, each.bought_at, each.addon_id) for each in facts["plans"]]
    other = [name for name, value in {**facts, "plans": plans}.items() if value != before[name]]
    if other:
        message = f"differs from what link {link.id} was taken over with"
        raise Wrong(*(((name,), message) for name in other))


def _read(data: bytes, networks: Sequence[str]) -> list[Mapping[str, Any]]:
    """Read a file; raises FileRefused with every error."""
    found = read_file(data, members({"links": _list_of_links}))["links"]
    entries: list[Mapping[str, Any]] = []
    lines: list[str] = []
    check = _entry(networks)
    for index, each in enumerate(found):
        try:
            said = check(each)
        except Wrong as wrong:
            lines += lines_of(_place(index), wrong.problems)
        else:
            entries.append({**said, "network": said["network"] or networks[0]})
    if not lines:
        lines = lines_of(FILE, [*_repeated(entries, "iccid"), *_repeated(entries, "endpoint_id")])
    if lines:
        raise FileRefused(lines)
    return entries


def _repeated(entries: Sequence[Mapping[str, Any]], name: str) -> list[Problem]:
    """Find values that two links of one network share but must not."""
    given = [(index, each) for index, each in enumerate(entries) if each[name] is not None]
    return repeated(
        (("links", index, name), (each["network"], each[name])) for index, each in given
    )


def _list_of_links(value: Any) -> list[Any]:
    if not isinstance(value, list) or len(value) > LINKS_MAX:
        raise Wrong(((), f"must be a list of at most {LINKS_MAX}: divide the file"))
    return value


def _entry(networks: Sequence[str]) -> Check[dict[str, Any]]:
    plan = members({"plan_id": identifier, "bought_at": moment}, {"addon_id": text})
    return members(
        {
            "organization_id": identifier,
            "iccid": _like(ICCID, "18 to 22 digits"),
            "plans": some(every(plan), "plan"),
        },
        {
            "network": one_of(*networks),
            "endpoint_id": text,
            "name": text,
            "sponsor_profile": lambda value: SponsorProfile(**PROFILE(value)),
            "lpa": _like(LPA, "LPA:1$host$matching-id"),
            "confirmation_code": _like(CONFIRMATION, "1 to 64 visible ASCII characters"),
        },
    )


def _like(pattern: re.Pattern[str], form: str) -> Check[str]:
    def check(value: Any) -> str:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise Wrong(((), f"must be {form}"))
        return value

    return check


def _refuse(name: str, why: str) -> NoReturn:
    raise Wrong(((name,), why))


def _place(index: int) -> str:
    """Name an entry by its index alone, because no error may contain an ICCID."""
    return f"links[{index}]"
