"""`sandbox advance`: time passes at the simulated network, and nowhere else."""

import pytest

from tests.app.cli.shell import Shell


@pytest.mark.parametrize("hours", ["0", "-1", "8761", "soon", "0.5", "nan"])
def test_hours_are_above_0_and_at_most_a_year(shell: Shell, hours: str) -> None:
    sandbox = shell.having(SANDBOX="true")
    assert "HOURS" in sandbox.refusal("sandbox", "advance", "--", hours, status=2)


def test_it_is_never_more_than_ten_years_ahead(shell: Shell) -> None:
    sandbox = shell.having(SANDBOX="true")
    for _ in range(10):
        sandbox.run("sandbox", "advance", "8760")
    assert "ten years" in sandbox.refusal("sandbox", "advance", "1")
