"""One installation per test, the process that the test looks from, and organizations that buy."""

from collections.abc import Iterator

import pytest

from tests.domain.commands.buying import Buyer, NewBuyer, Patience
from tests.installation import Installation, SetClock, installation, migrated, process

__all__ = ["buyer", "installation", "migrated", "new_buyer", "patience", "process"]


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> Patience:
    """How long requests go on waiting."""
    made = Patience()
    for command in ("link_create", "link_plans", "link_readings", "waiting"):
        monkeypatch.setattr(f"domain.commands.{command}.time", made)
    return made


@pytest.fixture
def new_buyer(installation: Installation) -> Iterator[NewBuyer]:
    """Make organizations for which nobody works yet."""
    made: list[Buyer] = []

    def make(amount: str = "10.00", **more: object) -> Buyer:
        made.append(Buyer(installation, amount, **more))  # type: ignore[arg-type]  # as they come
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def buyer(new_buyer: NewBuyer) -> Buyer:
    """An organization with 10.00 for which nobody works yet."""
    return new_buyer()


@pytest.fixture
def clock() -> SetClock:
    """What a test moves that has a `clocked_buyer`."""
    return SetClock()


@pytest.fixture
def clocked_buyer(new_buyer: NewBuyer, clock: SetClock) -> Buyer:
    """An organization with 10.00 and with workers, all of them at the time of the clock."""
    buyer = new_buyer(clock=clock)
    buyer.hire()
    return buyer
