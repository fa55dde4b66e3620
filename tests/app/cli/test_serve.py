"""`serve` beside another process that has its port."""

from tests.house.running import Served


def test_a_port_that_is_taken_is_named_and_the_demo_keeps_its_secret(serving: Served) -> None:
    for _ in range(2):  # The second rotation would end the secret.
        status, out, errors = serving.shell.process("serve", "--demo", "--json")
        assert (status, out) == (1, "")
        assert f"PORT {serving.shell.changes['PORT']}" in errors.splitlines()[-1]
        assert "Traceback" not in errors
    serving.partner()
