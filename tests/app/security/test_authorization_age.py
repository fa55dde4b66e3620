"""How old a read model may be when it decides who is let in."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from app.security.authorization import TRUSTED
from domain.errors import OrganizationNotFound, OrganizationSuspended, Unauthorized
from tests.app.house import House
from tests.projections.looking import after_reading


def test_a_projector_that_stands_still_is_not_believed(house: House) -> None:
    house.project()
    house.move_to("suspended")
    house.revoke(house.machine_id)
    assert house.authorize().lookup_enabled, "the row is no second old"
    house.clock.now += TRUSTED + timedelta(microseconds=1)
    with pytest.raises(OrganizationSuspended):
        house.authorize()
    with pytest.raises(Unauthorized):
        house.authorize_machine(str(house.organization_id))


def test_what_was_refused_by_the_log_is_not_let_in_by_an_older_row(house: House) -> None:
    house.project()
    house.move_to("suspended")
    began_at = house.clock.forward(seconds=2)
    with pytest.raises(OrganizationSuspended):
        house.authorize()
    caught_up_at(house, began_at)  # A projector that had looked before, and took long to say so.
    for _ in range(2):
        with pytest.raises(OrganizationSuspended):
            house.authorize()
    house.move_to("active")
    house.project()
    assert house.authorize().lookup_enabled


@pytest.mark.parametrize("young", ["organization", "client"])
def test_what_was_refused_before_there_was_a_row_is_not_let_in_by_its_first_state(
    house: House, young: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.project()
    if young == "organization":
        house.organization_id = house.process.organization("", "Brand New")
    house.client_id = house.process.client(house.organization_id)

    def halt() -> None:
        house.clock.forward(seconds=0.1)
        house.move_to("suspended")
        with pytest.raises(OrganizationSuspended):
            house.authorize()

    after_reading(monkeypatch, house.process.log, halt)
    house.process.projector.step()
    with pytest.raises(OrganizationSuspended):
        house.authorize()
    house.move_to("active")
    house.project()
    assert house.authorize().lookup_enabled


def test_a_machine_that_names_nobody_is_told_so_by_the_row_again(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.project()
    house.clock.forward(seconds=2)
    with pytest.raises(OrganizationNotFound):
        house.authorize_machine(None)  # By the log: the row is too old, and says the same.
    caught_up_at(house, house.clock())
    monkeypatch.setattr(house.process.log, "find", None)
    with pytest.raises(OrganizationNotFound):
        house.authorize_machine(None)


def caught_up_at(house: House, moment: datetime) -> None:
    with house.process.views.writing() as connection:
        for model in ("api_clients", "organizations"):
            place = house.process.positions.get(connection, model)
            house.process.positions.caught_up(connection, [place], moment)


def one_stands_still(house: House) -> None:
    house.clock.forward(seconds=10)
    with house.process.views.writing() as connection:
        place = house.process.positions.get(connection, "api_clients")
        house.process.positions.caught_up(connection, [place], house.clock())


def is_rebuilt(house: House) -> None:
    with house.process.views.writing() as connection:
        house.process.positions.start(connection, "organizations", 1, None)


def is_lost(house: House) -> None:
    is_rebuilt(house)
    rows = house.process.positions.rows
    with house.process.views.writing() as connection:
        connection.execute(rows.delete().where(rows.c.name == "organizations"))


def is_set_back(house: House) -> None:
    house.clock.forward(hours=-2)


@pytest.mark.parametrize("how", [one_stands_still, is_rebuilt, is_lost, is_set_back])
def test_no_row_whose_age_is_not_known_is_believed(
    house: House, how: Callable[[House], None]
) -> None:
    house.project()
    how(house)
    house.move_to("suspended")
    with pytest.raises(OrganizationSuspended):
        house.authorize()


def test_a_client_or_an_organization_that_is_not_projected_yet_is_let_in(house: House) -> None:
    house.project()
    organization_id = house.process.organization("", "Brand New")
    assert house.authorize_machine(str(organization_id)).organization_id == organization_id
    house.client_id = house.process.client(organization_id)
    assert house.authorize(claimed=organization_id).client_id == house.client_id
