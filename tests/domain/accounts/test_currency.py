"""One log has one currency: whoever is set to another one writes no money into it."""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest

import domain.log.log
from domain.accounts.organization import Organization
from domain.accounts.wallet import Wallet
from domain.errors import ConfigError, WrongCurrency
from domain.links.create import LinkRequest
from projections.audit.auditor import check_log
from projections.engine.positions import belongs
from tests.installation import CountingProvider, Installation, Process
from tests.plan_files import import_plans, plan
from tests.workers.fees import customer

MICROS = 5_000
Ask = Callable[[Process, UUID], object]


@pytest.fixture
def euros(installation: Installation) -> Process:
    """A process of the same installation that is set to another currency; no wallet exists yet."""
    settings = {**installation.environment, "CURRENCY": "EUR"}
    installation.environment, ours = settings, installation.environment
    process = installation.process(provider=CountingProvider())
    installation.environment = ours
    process.currency.check()
    return process


def events(process: Process) -> Counter[str]:
    return Counter(type(each.event).__qualname__ for each in process.log.read(0, 1_000))


def look_up(process: Process, organization_id: UUID) -> object:
    return process.look_up(organization_id, price_micros=MICROS)


def create_job(process: Process, organization_id: UUID) -> object:
    return process.create_job(organization_id, ["+14155552671"], MICROS)


def create_link(
    process: Process, organization_id: UUID, importing: Process | None = None
) -> object:
    euro = plan(id=str(uuid4()), currency="EUR")
    import_plans(importing or process, euro)
    process.projector.catch_up()
    request = LinkRequest(organization_id, UUID(euro["id"]), None, None)
    return process.link_create.run(request, process.cause())


@pytest.mark.parametrize("ask", [look_up, create_job, create_link])
def test_a_process_set_to_another_currency_takes_no_money(
    process: Process, euros: Process, ask: Ask
) -> None:
    organization_id = process.organization("1.00")
    with pytest.raises(ConfigError):
        ask(euros, organization_id)
    assert process.accounts.wallet(organization_id).balance_micros == 1_000_000
    assert events(process)["Wallet.Charged"] == 0
    assert check_log(process.log).ok


def test_a_plan_of_another_currency_is_not_sold_at_its_figure(
    process: Process, euros: Process
) -> None:
    organization_id = process.organization("100.00")
    with pytest.raises(ConfigError):
        create_link(process, organization_id, importing=euros)


def test_a_fee_is_not_frozen_in_another_currency(process: Process, euros: Process) -> None:
    organization_id = customer(process)
    history = process.log.history(organization_id)
    month = (process.clock() + timedelta(days=40)).strftime("%Y-%m")
    active = lambda _: [uuid4()]  # noqa: E731 - one line says it.
    with pytest.raises(WrongCurrency, match="CURRENCY must stay USD"):
        euros.monthly_fees.billing.freeze(history, month, active, euros.cause())
    assert events(process)["MonthlyFee.Due"] == 0


def test_of_two_currencies_that_open_the_first_wallet_at_once_one_wins(
    process: Process, euros: Process
) -> None:
    registered = Organization.register(uuid4(), process.cause(), name="Acme")
    process.log.append(registered)
    late = Wallet.open(uuid4(), "EUR", euros.cause())
    first: list[UUID] = []

    def make() -> list[Wallet]:
        if not first:  # The other one is here after our look and before our commit.
            first.append(process.organization())
        return [late]

    with pytest.raises(WrongCurrency):
        euros.currency.append(make, euros.cause())
    assert process.log.find(Wallet, late.id) is None
    assert events(process)["Ledger.Opened"] == 1
    assert check_log(process.log).ok


def test_a_log_of_an_older_release_has_the_currency_of_its_first_wallet(
    process: Process, euros: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(domain.log.log, "SCAN_EVENTS", 2)
    for _ in range(5):
        process.log.append(Organization.register(uuid4(), process.cause(), name="Acme"))
    process.log.append(Wallet.open(uuid4(), "USD", process.cause()))
    with pytest.raises(WrongCurrency):
        euros.currency.check()
    process.currency.check()
    assert events(process)["Ledger.Opened"] == 0
    process.organization("1.00")
    process.organization("1.00")
    assert events(process)["Ledger.Opened"] == 1


def test_the_first_wallet_of_one_log_is_not_taken_for_that_of_another(tmp_path: Path) -> None:
    one, other = (Installation(tmp_path / each) for each in ("one", "other"))
    for each in (one, other):
        each.process().organization("0")
    followed = one.process()
    followed.projector.catch_up()
    seen = followed.positions.all(followed.views)["wallets"].ref
    assert belongs(followed.log, seen)
    assert not belongs(other.process().log, seen)
    one.close()
    other.close()
