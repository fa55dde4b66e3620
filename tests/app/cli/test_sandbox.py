"""`sandbox advance`: time passes at the simulated network, and nowhere else."""

import pytest

from tests.app.cli.shell import Shell


def test_hours_add_up_for_every_process_and_the_log_does_not_move(shell: Shell) -> None:
    sandbox = shell.having(SANDBOX="true")
    shell.new_organization()
    before = shell.container().log.head()
    assert sandbox.json("sandbox", "advance", "36") == {"hours": 36, "ahead_hours": 36}
    assert sandbox.json("sandbox", "advance", "1") == {"hours": 1, "ahead_hours": 37}
    assert shell.container().log.head() == before
    assert shell.container().simulated_clock.ahead().total_seconds() == 37 * 3600


def test_without_a_sandbox_no_time_is_moved(shell: Shell) -> None:
    status, out, err = shell.process("sandbox", "advance", "1")
    assert (status, out) == (1, "")
    assert "SANDBOX is off" in err
    assert not shell.container().simulated_clock.ahead()


@pytest.mark.parametrize("hours", ["0", "-1", "8761", "soon", "0.5", "nan"])
def test_hours_are_above_0_and_at_most_a_year(shell: Shell, hours: str) -> None:
    status, _, err = shell.having(SANDBOX="true").process("sandbox", "advance", "--", hours)
    assert status == 2
    assert "HOURS" in err


def test_it_is_never_more_than_ten_years_ahead(shell: Shell) -> None:
    sandbox = shell.having(SANDBOX="true")
    for _ in range(10):
        sandbox.run("sandbox", "advance", "8760")
    status, _, err = sandbox.process("sandbox", "advance", "1")
    assert status == 1
    assert "ten years" in err
