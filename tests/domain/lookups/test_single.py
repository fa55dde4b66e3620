"""A single lookup: the answer and its charge together, or neither."""

from dataclasses import replace

import pytest

from domain.blocking import WouldBlock
from domain.errors import ConfigError, InsufficientBalance, RateLimited, Refused
from domain.lookups.single import LookupRequest
from tests.domain.asking import NUMBER, Asker
from tests.installation import PRICE_MICROS, CountingProvider, Installation


@pytest.fixture
def asker(installation: Installation, provider: CountingProvider) -> Asker:
    return Asker(installation, provider)


@pytest.mark.parametrize("provider", [CountingProvider(), CountingProvider(remote=True)])
def test_an_answer_says_where_it_came_from_and_is_charged_every_time(
    installation: Installation, provider: CountingProvider
) -> None:
    asker, remote = Asker(installation, provider), provider.remote
    provider.asked.clear()  # It is that of both databases.
    first, second = asker.look_up().lookup.answer, asker.look_up().lookup.answer
    assert (first.source, second.source) == ("live", "cache" if remote else "live")
    assert (second.as_of == first.as_of) is remote
    assert (first.provider, second.provider) == ("counting", "counting")
    assert provider.asked == [NUMBER] * (1 if remote else 2)
    assert asker.balance_micros == 1_000_000 - 2 * PRICE_MICROS
    asker.check()


@pytest.mark.each_database
@pytest.mark.parametrize("price_micros", [0, 20_000])
def test_what_is_free_or_cannot_be_paid_needs_a_thread(
    installation: Installation, price_micros: int
) -> None:
    process = installation.process(provider=CountingProvider())
    wanted = LookupRequest(process.organization("0.01"), "+14150000009", price_micros, "USD", None)
    with pytest.raises(WouldBlock):
        replace(process.single_lookup, leases=None).prepare(wanted, process.cause())


@pytest.mark.each_database
@pytest.mark.parametrize(
    ("price_micros", "currency", "refusal"),
    [(20_000, "USD", InsufficientBalance), (5_000, "EUR", ConfigError)],
)
def test_what_the_wallet_cannot_pay_asks_no_provider(
    asker: Asker,
    provider: CountingProvider,
    price_micros: int,
    currency: str,
    refusal: type[Refused],
) -> None:
    process = asker.process
    payer = process.organization("0.01")
    with pytest.raises(refusal):
        process.single_lookup.run(
            LookupRequest(payer, NUMBER, price_micros, currency, None), process.cause()
        )
    assert provider.asked == []


@pytest.mark.each_database
def test_a_balance_that_goes_while_the_provider_is_asked_gives_no_answer(
    asker: Asker, provider: CountingProvider
) -> None:
    def spend() -> None:
        process, organization_id = asker.other, asker.organization_id
        process.adjust(organization_id, -999_000)

    provider.meanwhile = spend
    with pytest.raises(InsufficientBalance):
        asker.look_up()
    assert provider.asked == [NUMBER]
    assert "number_lookup.answered" not in asker.events()
    assert asker.balance_micros == 1_000
    asker.check()


@pytest.mark.each_database
def test_money_that_was_paid_in_elsewhere_counts_though_the_held_wallet_does_not_know(
    installation: Installation, provider: CountingProvider
) -> None:
    asker = Asker(installation, provider, "0.005")
    asker.look_up()
    process = asker.other
    process.accounts.move("deposit", asker.organization_id, 5_000, "bank-2", process.cause())
    assert asker.look_up().facts.phone_number == NUMBER
    assert asker.balance_micros == 0


def test_paid_lookups_under_way_are_bounded(
    installation: Installation, provider: CountingProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    asker = Asker(installation, provider)
    bound = asker.process.single_lookup.in_flight
    monkeypatch.setattr(bound, "share", 1)
    monkeypatch.setattr(bound, "wait_s", 0.01)
    refusals: list[RateLimited] = []

    def ask_again() -> None:
        with pytest.raises(RateLimited) as refused:
            asker.look_up("+14155550101")
        refusals.append(refused.value)

    provider.on_call(1, ask_again)
    asker.look_up()
    assert [each.retryable for each in refusals] == [True]
    assert provider.asked == [NUMBER]
    asker.look_up("+14155550101")
    asker.check()
