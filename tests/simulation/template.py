"""The installation that every run begins with: two organizations and a catalogue."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from types import ModuleType, SimpleNamespace
from uuid import UUID

import pytest

from app.bootstrap import container
from domain.money import parse_amount
from tests.installation import Installation, SetClock
from tests.plan_files import import_plans, plan
from tests.seeds import SqliteSeed, url_in

PLANS = {  # What can be bought, by `provider_plan_id`, and its price.
    "eu-1": "4.00",
    "eu-2": "1.50",
    "gift": "0.00",
    "sandbox-no-endpoint": "2.00",
    "sandbox-provider-error": "2.00",
    "sandbox-no-esim": "2.00",
    "sandbox-lost-reply": "2.00",
    "sandbox-slow": "2.00",
}
FEE = "0.25"
ROOMS = ("app.", "domain.", "projections.", "workers.")
SLICE_ITEMS = 60  # So few that the larger jobs are worked on by several workers at once.
SPENDING_LIMIT = "1000000"
DEPOSITS = {"Rich": "1000.00", "Poor": "6.00"}


@dataclass(frozen=True)
class Template:
    """Files to be copied, and the ids of what is in them."""

    files: SqliteSeed
    organizations: tuple[UUID, ...]
    plans: dict[UUID, str]


def make_template(directory: Path) -> Template:
    """Make the installation; the same one each time."""
    random = Random("template")
    files = SqliteSeed(directory)
    with _ids_from(lambda: UUID(int=random.getrandbits(128), version=4)):
        installation = Installation(directory, like=_Opened())
        process = installation.process(SetClock())
        organizations = []
        for name, amount in DEPOSITS.items():
            registered = process.accounts.register_organization(
                process.cause(),
                name=name,
                price_micros=None,
                monthly_link_fee_micros=parse_amount(FEE),
                with_wallet=True,
            )
            process.accounts.move(
                "deposit", registered.id, parse_amount(amount), "first", process.cause()
            )
            # Nobody gets there, but every entry counts, and the audit looks.
            limit_micros = parse_amount(SPENDING_LIMIT)
            process.accounts.set_spending_limit(registered.id, limit_micros, process.cause())
            organizations.append(registered.id)
        plans = {UUID(int=random.getrandbits(128), version=4): each for each in PLANS}
        import_plans(
            process,
            *(
                plan(called, id=str(plan_id), retail_price=PLANS[called], validity_days=3650)
                for plan_id, called in plans.items()
            ),
        )
        process.projector.catch_up()
        process.dispatcher.step()
        installation.close()
    return Template(files, tuple(organizations), plans)


def few(template: Template) -> Template:
    """Sell one plan only, so that customers often order the same at once."""
    plan_id, item = next(iter(template.plans.items()))
    return replace(template, plans={plan_id: item})


class _Opened:
    """The files of a directory as they are."""

    def copy(self, directory: Path) -> str:
        return url_in(directory)

    def drop(self, url: str) -> None:
        """They stay."""


@contextmanager
def under(monotonic: object, new_id: object) -> Iterator[None]:
    """Take ids and the monotonic clock from the simulation, and pause for no time."""
    simulated = SimpleNamespace(**{**vars(time), "monotonic": monotonic})
    with _ids_from(new_id), pytest.MonkeyPatch.context() as patch:
        for module in _timers():
            patch.setattr(module, "time", simulated)
        patch.setattr("domain.accounts.committer.PAUSE_S", 0.0)
        patch.setattr("domain.lookups.bulk_job.SLICE_ITEMS", SLICE_ITEMS)
        yield


def _timers() -> list[ModuleType]:
    """Return the modules of ours that tell the time.

    With one left out a seed would run in another way where the machine is slower.
    """
    ours = [module for name, module in sys.modules.items() if name.startswith(ROOMS)]
    return [module for module in ours if getattr(module, "time", None) is time]


@contextmanager
def _ids_from(new_id: object) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(container, "uuid4", new_id)
        yield
