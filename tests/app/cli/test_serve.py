"""`serve` beside another process that has its port."""

from tests.app.cli.serving import Serving
from tests.app.cli.shell import Shell
from tests.servers.running import free_port


def test_a_port_that_is_taken_is_named_and_the_demo_keeps_its_secret(nowhere: Shell) -> None:
    serving = Serving(nowhere.having(METRICS_PORT=str(free_port())))
    try:
        for _ in range(2):  # The second rotation would end the secret.
            status, out, errors = serving.shell.process("serve", "--demo", "--json")
            assert (status, out) == (1, "")
            assert f"PORT {serving.shell.changes['PORT']}" in errors.splitlines()[-1]
            assert "Traceback" not in errors
        serving.partner()
    finally:
        ended = serving.stop()
    assert ended == 0
