"""Who may do what: every refusal in its order, and no trust in a read model that stands still."""

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from app.authorization import TRUSTED, Caller
from domain.errors import (
    InsufficientScope,
    OrganizationInactive,
    OrganizationNotFound,
    OrganizationSuspended,
    Unauthorized,
)
from domain.organization import SCOPES, Status
from tests.installation import Installation, Process, SetClock

ALL = frozenset(SCOPES)


class House:
    """One organization with a client, one machine-to-machine client, and the projector's pace."""

    def __init__(self, process: Process, clock: SetClock) -> None:
        self.process = process
        self.clock = clock
        self.organization_id = process.organization("")
        self.client_id = process.client(self.organization_id)
        self.machine_id = process.client(None)

    def project(self) -> None:
        """Let the projector catch up, and say so."""
        self.process.projector.catch_up()
        self.clock.forward(seconds=0.3)
        self.process.projector.step()

    def authorize(
        self, claimed: UUID | None = None, scope: str = "lookup", granted: frozenset[str] = ALL
    ) -> Caller:
        """Let the client of the organization in; its token claims that one unless told."""
        return self.process.authorizer.authorize(
            self.client_id, claimed or self.organization_id, [], granted, scope
        )

    def authorize_machine(self, named: Sequence[str], scope: str = "lookup") -> Caller:
        return self.process.authorizer.authorize(self.machine_id, None, named, ALL, scope)

    def move_to(self, status: Status) -> None:
        cause = self.process.cause()
        self.process.accounts.change_organization(
            self.organization_id, lambda each: each.change_status(status, cause)
        )

    def revoke(self, client_id: str) -> None:
        self.process.accounts.change_client(
            client_id, lambda each: each.revoke(self.process.cause())
        )


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    installation, clock = Installation(tmp_path), SetClock()
    yield House(installation.process(clock), clock)
    installation.close()


Pace = Callable[[House], None]


def at_once(house: House) -> None:
    """Nothing was projected: the aggregates answer."""
    assert house.process.log.head()


def projected(house: House) -> None:
    """All was projected: the row answers."""
    house.project()


paces = pytest.mark.parametrize("pace", [at_once, projected])


@paces
def test_a_client_of_an_active_organization_is_let_in(house: House, pace: Pace) -> None:
    cause = house.process.cause()
    house.process.accounts.change_organization(
        house.organization_id, lambda each: each.change_price(7_000, cause)
    )
    house.process.accounts.change_organization(
        house.organization_id, lambda each: each.switch_lookup(cause, enabled=False)
    )
    pace(house)
    who = (house.client_id, house.organization_id)
    assert house.authorize() == Caller(*who, price_micros=7_000, lookup_enabled=False)


@paces
def test_an_organization_has_no_price_of_its_own_and_lookups_on(house: House, pace: Pace) -> None:
    pace(house)
    who = (house.client_id, house.organization_id)
    assert house.authorize() == Caller(*who, price_micros=None, lookup_enabled=True)


@paces
def test_an_unknown_client_is_refused(house: House, pace: Pace) -> None:
    pace(house)
    house.client_id = "cl_nobody"
    with pytest.raises(Unauthorized):
        house.authorize()


@paces
def test_an_unknown_organization_is_refused(house: House, pace: Pace) -> None:
    pace(house)
    with pytest.raises(OrganizationNotFound):
        house.authorize(claimed=uuid4())
    with pytest.raises(OrganizationNotFound):
        house.authorize_machine([str(uuid4())])


@paces
def test_an_id_of_something_else_is_no_organization(house: House, pace: Pace) -> None:
    pace(house)
    stream = house.process.log.read(house.process.log.head() - 1, 1)[0].event.originator_id
    with pytest.raises(OrganizationNotFound):
        house.authorize(claimed=stream)


@paces
@pytest.mark.parametrize(
    ("status", "refusal"),
    [("suspended", OrganizationSuspended), ("inactive", OrganizationInactive)],
)
def test_an_organization_that_is_not_active_is_refused(
    house: House, pace: Pace, status: Status, refusal: type[Exception]
) -> None:
    house.move_to(status)
    pace(house)
    with pytest.raises(refusal):
        house.authorize()
    with pytest.raises(refusal):
        house.authorize_machine([str(house.organization_id)])
    house.move_to("active")
    pace(house)
    assert house.authorize().client_id == house.client_id


@paces
def test_a_missing_scope_is_refused(house: House, pace: Pace) -> None:
    pace(house)
    for scope in SCOPES:
        caller = house.authorize(scope=scope, granted=frozenset({scope}))
        assert caller.client_id == house.client_id
        with pytest.raises(InsufficientScope):
            house.authorize(scope=scope, granted=ALL - {scope})


@paces
def test_the_client_counts_before_the_organization_and_that_before_the_scope(
    house: House, pace: Pace
) -> None:
    nothing: frozenset[str] = frozenset()
    with pytest.raises(OrganizationNotFound):
        house.authorize(claimed=uuid4(), granted=nothing)
    house.move_to("suspended")
    pace(house)
    with pytest.raises(OrganizationSuspended):
        house.authorize(granted=nothing)
    house.revoke(house.client_id)
    pace(house)
    with pytest.raises(Unauthorized):
        house.authorize(granted=nothing)
    house.revoke(house.machine_id)
    pace(house)
    with pytest.raises(Unauthorized):
        house.authorize_machine([])


@paces
def test_a_machine_names_its_organization(house: House, pace: Pace) -> None:
    pace(house)
    for named in (str(house.organization_id), f" {str(house.organization_id).upper()}\t"):
        assert house.authorize_machine([named]).organization_id == house.organization_id


@paces
def test_a_machine_that_names_none_or_two_or_nonsense_is_refused(house: House, pace: Pace) -> None:
    pace(house)
    right = str(house.organization_id)
    for named in (
        [],
        [""],
        [" "],
        [right, right],
        [right, ""],
        [f"{right},{right}"],
        [right[:-1]],
        [f"{{{right}}}"],
        [right.replace("-", "")],
        [f"urn:uuid:{right}"],
        ["nonsense"],
        [right.replace("-", "‑")],  # noqa: RUF001  # Hyphens of another kind are the point.
    ):
        with pytest.raises(OrganizationNotFound):
            house.authorize_machine(named)


@paces
def test_a_client_of_an_organization_cannot_name_another_one(house: House, pace: Pace) -> None:
    other = house.process.organization("", "Somebody Else")
    pace(house)
    authorize = house.process.authorizer.authorize
    for named in (other, house.organization_id):
        with pytest.raises(OrganizationNotFound):
            authorize(house.client_id, None, [str(named)], ALL, "lookup")
    caller = authorize(house.client_id, house.organization_id, [str(other)], ALL, "lookup")
    assert caller.organization_id == house.organization_id


def test_a_projector_that_stands_still_is_not_believed(house: House) -> None:
    house.project()
    house.move_to("suspended")
    house.revoke(house.machine_id)
    assert house.authorize().lookup_enabled, "the row is no second old"
    house.clock.now += TRUSTED + timedelta(microseconds=1)
    with pytest.raises(OrganizationSuspended):
        house.authorize()
    with pytest.raises(Unauthorized):
        house.authorize_machine([str(house.organization_id)])


def test_one_model_that_stands_still_is_not_believed(house: House) -> None:
    house.project()
    house.move_to("suspended")
    house.clock.forward(seconds=10)
    with house.process.views.writing() as connection:
        house.process.positions.caught_up(connection, ["api_clients"], 3, house.clock())
    with pytest.raises(OrganizationSuspended):
        house.authorize()


def test_models_that_were_rebuilt_and_never_caught_up_are_not_believed(house: House) -> None:
    house.project()
    with house.process.views.writing() as connection:
        house.process.positions.begin(connection, "organizations", 1, None)
    house.move_to("suspended")
    with pytest.raises(OrganizationSuspended):
        house.authorize()


def test_a_model_without_a_position_is_not_believed(house: House) -> None:
    house.project()
    rows = house.process.positions.rows
    with house.process.views.writing() as connection:
        connection.execute(rows.delete().where(rows.c.name == "organizations"))
    house.move_to("suspended")
    with pytest.raises(OrganizationSuspended):
        house.authorize()


def test_a_clock_that_was_set_back_does_not_make_an_old_row_fresh(house: House) -> None:
    house.project()
    house.move_to("suspended")
    house.clock.forward(hours=-2)
    with pytest.raises(OrganizationSuspended):
        house.authorize()


def test_a_client_or_an_organization_that_is_not_projected_yet_is_let_in(house: House) -> None:
    house.project()
    organization_id = house.process.organization("", "Brand New")
    assert house.authorize(claimed=organization_id).organization_id == organization_id
    assert house.authorize_machine([str(organization_id)]).organization_id == organization_id
    house.client_id = house.process.client(organization_id)
    assert house.authorize(claimed=organization_id).client_id == house.client_id
