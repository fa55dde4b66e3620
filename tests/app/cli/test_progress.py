"""Progress is for a person at a terminal, and never in the way of a program."""

import os
import pty

from tests.app.cli.shell import TIMEOUT_S, Shell


def test_a_terminal_sees_how_far_it_is_and_programs_see_one_object(shell: Shell) -> None:
    shell.new_organization()
    ours, theirs = pty.openpty()
    with shell.start("projections", "rebuild", "wallets", "--json", stderr=theirs) as process:
        out, _ = process.communicate(timeout=TIMEOUT_S)
    os.close(theirs)
    drawn = os.read(ours, 4_096).decode()
    os.close(ours)
    assert "Building wallets: 3 of 3" in drawn
    assert drawn.endswith("\r\033[K")
    assert out == '{"data": [{"name": "wallets", "position": 3}]}\n'
    assert process.returncode == 0
