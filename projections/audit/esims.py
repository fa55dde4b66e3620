"""Checks that one link at a time holds an eSIM, in the streams of the eSIM and of the links."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

from domain.links.esim import Esim
from projections.audit.promises import Promises

EsimEvent = Esim.Registered | Esim.Reserved | Esim.Quarantined | Esim.Released


@dataclass(slots=True)
class _Esim:
    iccid: str
    link_id: UUID | None = None


@dataclass
class EsimInvariants:
    """Every eSIM and the link that holds it; failures never name an ICCID."""

    _promises: Promises
    _esims: dict[UUID, _Esim] = field(default_factory=dict)
    _known: set[tuple[str, str]] = field(default_factory=set)

    def check(self, event: EsimEvent) -> Iterator[str]:
        if isinstance(event, Esim.Registered):
            if (event.network, event.iccid) in self._known:
                yield f"eSIM {event.originator_id} has another stream already"
            self._known.add((event.network, event.iccid))
            self._esims[event.originator_id] = _Esim(event.iccid)
            return
        esim = self._esims.get(event.originator_id)
        if esim is None:
            yield f"eSIM {event.originator_id} moves before it was registered"
        elif isinstance(event, Esim.Reserved):
            yield from self._reserve(event, esim)
        elif event.link_id != esim.link_id:
            yield f"eSIM {event.originator_id} is not held by link {event.link_id}"
        elif isinstance(event, Esim.Released):
            yield from self._release(event, esim)

    def _reserve(self, event: Esim.Reserved, esim: _Esim) -> Iterator[str]:
        if esim.link_id is not None:
            yield f"eSIM {event.originator_id} is reserved while link {esim.link_id} holds it"
        esim.link_id = event.link_id
        if not self._promises.keep((Esim.Reserved, event.link_id), esim.iccid):
            yield f"eSIM {event.originator_id} is reserved for a link that did not take it"

    def _release(self, event: Esim.Released, esim: _Esim) -> Iterator[str]:
        esim.link_id = None
        if not self._promises.keep((Esim.Released, event.link_id), esim.iccid):
            yield f"eSIM {event.originator_id} is released without its link {event.link_id}"
