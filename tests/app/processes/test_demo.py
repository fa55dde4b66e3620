"""The demo: what it makes, once, in whatever currency."""

import json
from functools import partial
from stat import S_IMODE
from uuid import UUID

import pytest

from app.processes.demo import DEMO_CLIENT_ID, PLANS, credentials_file
from app.settings import WrongSetting
from domain.accounts.organization import ApiClient
from domain.accounts.wallet import Wallet
from domain.catalogue.plan import Plan, PlanTerms
from domain.errors import NotPossible
from tests.installation import Installation, Process
from tests.operators import as_operator
from tests.plan_files import make_demo

# On PostgreSQL each scenario begins with a demo.
SAMPLES = json.loads(PLANS.read_bytes())["plans"]


def catalogue(process: Process) -> dict[UUID, PlanTerms]:
    return {row.id: row.terms for row in process.ask(process.plans.all)}


@pytest.mark.parametrize("currency", ["EUR", "JPY"])
def test_a_demo_in_another_currency_has_the_same_figures(
    installation: Installation, currency: str
) -> None:
    installation.environment |= {"CURRENCY": currency, "PRICE_PER_LOOKUP": ""}
    process = installation.process()
    assert (make_demo(process).currency, process.prices.of_lookup(None)) == (currency, 5_000)
    plans = catalogue(process).values()
    assert {each.currency for each in plans} == {currency}
    assert len(plans) == len(SAMPLES)


def is_good(process: Process, secret: str) -> bool:
    client = process.log.get(ApiClient, ApiClient.id_of(DEMO_CLIENT_ID))
    return process.secret_hasher.matches(secret, client.secret_hashes)


def test_the_secret_is_kept_for_the_owner_alone_and_made_anew_when_the_file_is_gone(
    process: Process,
) -> None:
    demo, file = make_demo(process), credentials_file(process.settings)
    assert S_IMODE(file.stat().st_mode) == 0o600
    kept = {"client_id": demo.client_id, "client_secret": demo.client_secret}
    assert json.loads(file.read_bytes()) == kept
    for secret_hash in ("0" * 64, "1" * 64):
        change = partial(ApiClient.rotate_secret, secret_hash=secret_hash, cause=process.cause())
        process.accounts.change_client(DEMO_CLIENT_ID, change)
    assert not is_good(process, demo.client_secret)
    assert make_demo(process).client_secret == demo.client_secret
    assert is_good(process, demo.client_secret)
    file.unlink()
    second = make_demo(process)
    assert second.client_secret != demo.client_secret
    assert is_good(process, second.client_secret)


def test_a_file_without_a_secret_is_named(process: Process) -> None:
    file = credentials_file(process.settings)
    for text in ("", "[]", "{}", '{"client_id": "cl_1"}'):
        file.write_text(text)
        with pytest.raises(WrongSetting, match=file.name):
            make_demo(process)


def test_a_second_start_is_the_same_and_switches_nothing_on_again(process: Process) -> None:
    demo = make_demo(process)
    plan_id = next(iter(catalogue(process)))
    process.catalogue.change(plan_id, lambda it: it.switch(process.cause(), enabled=False))
    assert make_demo(process) == demo
    assert not process.log.get(Plan, plan_id).enabled


def test_a_demo_gives_no_money_away_where_there_are_operators(process: Process) -> None:
    as_operator(process, "anna")
    with pytest.raises(NotPossible, match="use an installation of its own"):
        make_demo(process)
    assert process.log.first(Wallet.Opened) is None
