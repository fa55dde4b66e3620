"""No worker of `web` outlives the process that made it, however early that one dies."""

from pathlib import Path

import pytest

from tests.app.cli.shell import Shell
from tests.installation import wait_until
from tests.scenarios.partner import Partner
from tests.scenarios.system import descendants, find
from tests.servers.guard import is_running
from tests.servers.running import free_port

COMES_UP_S = 40.0
ENDS_S = 30.0
WORKER = r"(-\S+ )*-c from multiprocessing\.spawn .*"


@pytest.mark.parametrize(
    "moment", [pytest.param("as soon as there is one", marks=pytest.mark.soak), "once it serves"]
)
def test_the_workers_of_a_web_that_is_killed_end_too(tmp_path: Path, moment: str) -> None:
    port = free_port()
    shell = Shell(tmp_path).having(PORT=str(port), BROKER_URL="amqp://127.0.0.1:1", WEB_WORKERS="1")
    shell.run("migrate")
    with (
        (tmp_path / "web.log").open("wb") as log,
        shell.start("web", stdout=log, stderr=log) as web,
    ):
        try:
            wait_until(lambda: find(web.pid, WORKER), COMES_UP_S)
            if moment == "once it serves":
                anyone = Partner(f"http://127.0.0.1:{port}", "", "")
                wait_until(lambda: anyone.ask("GET", "/livez").status == 200, COMES_UP_S)
            below = [*descendants(web.pid)]
        finally:
            web.kill()
    wait_until(lambda: not any(map(is_running, below)), ENDS_S)
