"""Imports links that were issued elsewhere from a file of operators, all or none.

Nothing is charged for them. A link that was imported before stays as it is.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn
from uuid import UUID

from msgspec.structs import replace

from domain.accounts.organization import Organization
from domain.catalogue.file_errors import FileRefused, Problem, Wrong, lines_of
from domain.catalogue.plan import SIMULATED, PlanTerms, SponsorProfile
from domain.cause import Cause
from domain.ids import derive_id
from domain.links.bought_plan import TakenOver
from domain.links.buying import buy
from domain.links.esim import Esim
from domain.links.link import Link, named
from domain.links.network import ActivationCode
from domain.links.networks import Networks
from domain.log.log import Log, retried
from domain.personal import Vault, open_text, seal_text

LINKS_MAX = 5_000  # One transaction writes them all, and other appends wait for its end.

Terms = Mapping[UUID, PlanTerms]  # Every plan of the catalogue by its id.
Endpoints = Mapping[tuple[str, str], UUID]  # The newest link by network and endpoint id.


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanBought:
    """A plan as it was bought elsewhere."""

    plan_id: UUID
    bought_at: datetime
    addon_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkEntry:
    """What a file says about one link, at this index of its list."""

    index: int
    organization_id: UUID
    network: str
    iccid: str
    plans: Sequence[PlanBought]
    endpoint_id: str | None
    name: str | None
    sponsor_profile: SponsorProfile | None
    lpa: str | None
    confirmation_code: str | None


@dataclass(frozen=True, slots=True)
class ImportedLinks:
    """How many links were taken over, how many were here already, and why others were left out."""

    created: int
    unchanged: int
    skipped: Sequence[str] = ()


@dataclass(frozen=True)
class LinkImport:
    """Takes links over; `terms` returns the whole catalogue, `endpoints` the link of each."""

    log: Log
    vault: Vault
    networks: Networks
    terms: Callable[[], Terms]
    endpoints: Callable[[], Endpoints]

    @retried
    def run(
        self, entries: Sequence[LinkEntry], cause: Cause, *, dry_run: bool, skip: bool = False
    ) -> ImportedLinks:
        """Take over the links of a file, all or none; with `dry_run` only say how many.

        Raises FileRefused with every reason; with `skip` it leaves out what cannot be taken over.
        """
        known = self.terms(), self.endpoints()
        owners = {each.organization_id for each in entries}
        unknown = {each for each in owners if self.log.find(Organization, each) is None}
        made: list[tuple[Link, Esim]] = []
        lines: list[str] = []
        unchanged = 0
        for entry in entries:
            try:
                if entry.organization_id in unknown:
                    _refuse("organization_id", "is no organization")
                found = self._import(entry, *known, cause, sealed=not dry_run)
            except Wrong as wrong:
                lines += lines_of(label_of(entry.index), wrong.problems)
            else:
                made += [found] if found is not None else []
                unchanged += found is None
        if lines and not skip:
            raise FileRefused(lines)
        if made and not dry_run:
            self.log.append(*(each for pair in made for each in pair))
        return ImportedLinks(len(made), unchanged, tuple(lines))

    def _import(
        self, entry: LinkEntry, terms: Terms, endpoints: Endpoints, cause: Cause, *, sealed: bool
    ) -> tuple[Link, Esim] | None:
        """Return the link of an entry with its eSIM; None if it was taken over already."""
        network, iccid = entry.network, entry.iccid
        if entry.confirmation_code is not None and entry.lpa is None:
            _refuse("confirmation_code", "must not stand without an lpa")
        link_id = derive_id("imported_link", network, iccid)
        facts: dict[str, Any] = {
            "organization_id": entry.organization_id,
            "name": entry.name,
            "endpoint_id": self._endpoint_of(entry),
            "sponsor_profile": entry.sponsor_profile,
            "lpa": entry.lpa and ActivationCode(entry.lpa, entry.confirmation_code).as_text(),
            "plans": [*_plans(link_id, entry, terms, cause.at)],
        }
        known = self.log.find(Link, link_id)
        if known is not None:
            _require_same(known, facts, self.vault)
            return None
        esim = self.log.find(Esim, Esim.id_of(network, iccid))
        if esim is not None and esim.link_id is not None:
            _refuse("iccid", f"is the eSIM of link {esim.link_id}")
        holder = endpoints.get((network, facts["endpoint_id"]))
        if holder is not None and self.log.get(Link, holder).is_live:
            _refuse("endpoint_id", f"is that of link {holder}")
        esim = esim or Esim.register(network, iccid, cause)
        esim.reserve(link_id, cause)
        if sealed:
            whose = self.vault, entry.organization_id, link_id
            facts |= {each: seal_text(*whose, facts[each], cause) for each in ("name", "lpa")}
        return Link.take_over(link_id, cause, iccid=iccid, **facts), esim

    def _endpoint_of(self, entry: LinkEntry) -> str:
        """Return the endpoint id; on an order network that is the ICCID."""
        given = entry.endpoint_id
        if self.networks.of(entry.network).shape != "order":
            if given is None:
                _refuse("endpoint_id", "is missing: the network gives each link one")
            return given
        if given not in {None, entry.iccid}:
            _refuse("endpoint_id", "must be the ICCID on this network, or be left out")
        return entry.iccid


def _plans(link_id: UUID, entry: LinkEntry, terms: Terms, now: datetime) -> Iterator[TakenOver]:
    """Yield the plans of an entry in order of purchase."""
    problems: list[Problem] = []
    for index, each in enumerate(entry.plans):
        plan = terms.get(each.plan_id)
        if plan is None or plan.provider_plan_id is None:
            message = "is no plan of the catalogue that a network has"
            problems.append((("plans", index, "plan_id"), message))
        elif (plan.network or SIMULATED) != entry.network:
            problems.append((("plans", index, "plan_id"), "is a plan of another network"))
        if each.bought_at > now:
            problems.append((("plans", index, "bought_at"), "must not be in the future"))
    if problems:
        raise Wrong(*problems)
    for index, each in enumerate(sorted(entry.plans, key=lambda each: each.bought_at)):
        bought = replace(buy(each.plan_id, terms[each.plan_id]), price_micros=0, cost=None)
        activation_id = derive_id("activation", link_id, index)
        yield TakenOver(activation_id, bought, each.bought_at, each.addon_id)


def _require_same(link: Link, facts: Mapping[str, Any], vault: Vault) -> None:
    """Raise Wrong if a link was imported with other facts; later changes do not count.

    Nor does what was erased, or an activation code that the file leaves out.
    """
    assert isinstance(link.requested, Link.Imported)
    sealed = {"name": named(link.requested), "lpa": facts["lpa"] and link.lpa}
    texts = {
        name: open_text(vault, link.organization_id, link.id, it) for name, it in sealed.items()
    }
    texts |= {name: facts[name] for name, it in sealed.items() if it and texts[name] is None}
    activations = [link.activations.get(each.activation_id) for each in facts["plans"]]
    had = [each for each in activations if each is not None]
    before = {
        "organization_id": link.organization_id,
        **texts,
        "endpoint_id": link.endpoint_id,
        "sponsor_profile": link.requested.sponsor_profile,
        "plans": [(each.plan.plan_id, each.bought_at, each.addon_id) for each in had],
    }
    plans = [(each.plan.plan_id, each.bought_at, each.addon_id) for each in facts["plans"]]
    other = [name for name, value in {**facts, "plans": plans}.items() if value != before[name]]
    if other:
        message = f"differs from what link {link.id} was taken over with"
        raise Wrong(*(((name,), message) for name in other))


def _refuse(name: str, why: str) -> NoReturn:
    raise Wrong(((name,), why))


def label_of(index: int) -> str:
    """Name an entry by its index alone, because no error may contain an ICCID."""
    return f"links[{index}]"
