"""A `web` process on SQLite."""

import signal
from pathlib import Path

from app.bootstrap.container import Container
from tests.app.cli.shell import Shell
from tests.installation import wait_until
from tests.plan_files import make_demo
from tests.scenarios.partner import Partner
from tests.servers.running import free_port

COMES_UP_S = 40.0
END_S = 30.0


class Web:
    """A `web` process on SQLite behind one trusted proxy; no broker is there."""

    def __init__(self, home: Path, **more: str) -> None:
        self.port = free_port()
        self.shell = Shell(home).having(
            PORT=str(self.port),
            BROKER_URL=f"amqp://127.0.0.1:{free_port()}",
            TRUSTED_PROXIES="1",
            PRICE_PER_LOOKUP="0.005",
        )
        self.shell = self.shell.having(**more)
        self.shell.run("migrate")
        self._log = (home / "web.log").open("wb")
        self.process = self.shell.start("web", stdout=self._log, stderr=self._log)
        self.partner = Partner(f"http://127.0.0.1:{self.port}", *demo(self.shell.container()))
        wait_until(lambda: self.partner.authorize().status == 200, COMES_UP_S)

    def log(self) -> str:
        """Return what it has said."""
        return (self.shell.home / "web.log").read_text("utf-8")

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(END_S)
        self._log.close()
        return status

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._log.close()


def demo(container: Container) -> tuple[str, str]:
    """Make an organization with money and plans; return its credentials."""
    made = make_demo(container)
    container.projector.catch_up()
    container.close()
    return made.client_id, made.client_secret
