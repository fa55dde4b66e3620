"""`prices`: the price of a lookup is in the log; a setting is only the first one."""

from contextlib import closing
from threading import Event

import pytest

from app.processes.demo import prepare_demo
from app.processes.readiness import wait_until_ready
from app.settings import WrongSetting
from domain.accounts.prices import LookupPrice
from tests.app.cli.shell import Shell


def start(shell: Shell, *, sets_price: bool = True) -> None:
    """Start as every process does; `clock` and `serve` set the price."""
    with closing(shell.container()) as container:
        assert wait_until_ready(container, Event(), sets_price=sets_price)


def prices(shell: Shell) -> list[tuple[int, str, str | None]]:
    """Return every price that the log holds, with who has set it."""
    with closing(shell.container()) as container:
        history = container.log.history(LookupPrice.id_of())
    found = [event for event in history if isinstance(event, LookupPrice.Set)]
    return [(each.amount_micros, each.currency, each.actor) for each in found]


def test_the_setting_becomes_the_price_at_the_first_start_alone(shell: Shell) -> None:
    start(shell)  # It is not set, so there is none.
    start(shell.having(PRICE_PER_LOOKUP="0.005"), sets_price=False)  # Old followers may run.
    assert prices(shell) == []
    for _ in range(2):
        start(shell.having(PRICE_PER_LOOKUP="0.005"))
    assert prices(shell) == [(5_000, "USD", None)]


def test_a_process_with_another_price_does_not_start(shell: Shell) -> None:
    start(shell.having(PRICE_PER_LOOKUP="0.005"))
    shell.run("prices", "lookup", "0.02")
    for wrong in ("0.005", "0"):
        with pytest.raises(WrongSetting, match=r"PRICE_PER_LOOKUP is .* `prices lookup 0\.0") as it:
            start(shell.having(PRICE_PER_LOOKUP=wrong))
        assert "0.02 in the log" in str(it.value)
    start(shell.having(PRICE_PER_LOOKUP="0.02"))
    start(shell)
    found = shell.having(PRICE_PER_LOOKUP="0.005").run("doctor", status=1).output
    assert "no process starts again" in found


def test_a_held_copy_adds_no_price_to_its_log(shell: Shell) -> None:
    shell.run("installation", "hold")
    start(shell.having(PRICE_PER_LOOKUP="0.005"))
    assert prices(shell) == []


def test_the_price_of_an_operator_is_set_once_and_a_demo_keeps_it(shell: Shell) -> None:
    for _ in range(2):
        shell.run("prices", "lookup", "0.02")
    with closing(shell.container()) as container:
        prepare_demo(container, [])
    assert [micros for micros, *_ in prices(shell)] == [20_000]
