"""A private RabbitMQ server with its own port mapper, so that it meets no other one."""

import signal
from collections.abc import Mapping
from pathlib import Path

from tests.servers.guard import send, wait_for
from tests.servers.running import CannotStart, Home, Server, free_port, newest

PROGRAM = "usr/lib/rabbitmq/bin/rabbitmq-server"
START_S = 90.0
AWAIT_S = "60"


class RabbitServer(Server):
    """A server with ports of its own; they stay the same when it is started again."""

    def __init__(self) -> None:
        self._programs = newest(PROGRAM).parent
        self._epmd = newest("usr/bin/epmd")
        self.port, self._map_port, self._node_port = free_port(), free_port(), free_port()
        super().__init__(Home("rabbitmq", ["SIGKILL=server.pid", "SIGKILL=epmd.pid"]), "server.pid")
        self._vhosts = 0
        try:
            self._map()
            self.start()
        except BaseException:
            self.close()
            raise

    def url(self, vhost: str = "%2F") -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}/{vhost}"

    def new_vhost(self) -> str:
        """Make a virtual host that holds nothing; return its URL."""
        self._vhosts += 1
        name = f"test-{self._vhosts}"
        self._control("add_vhost", name)
        self._control("set_permissions", "-p", name, "guest", ".*", ".*", ".*")
        return self.url(name)

    def start(self) -> None:
        self._pid_file.unlink(missing_ok=True)
        server = self._programs / "rabbitmq-server"
        if self._home.run([server, "-detached"], self._environment) != 0:
            raise CannotStart(self._last_words())
        if not wait_for(self._is_up, START_S):
            raise CannotStart(self._last_words())

    def stop(self) -> None:
        """Close connections and stop in good order."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it with `kill -9`."""
        self._end(signal.SIGKILL)

    @property
    def _environment(self) -> Mapping[str, str]:
        home = self._home.path
        return {
            "RABBITMQ_NODENAME": f"test{self.port}@localhost",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_DIST_PORT": str(self._node_port),
            "ERL_EPMD_PORT": str(self._map_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_MNESIA_BASE": str(home / "data"),
            "RABBITMQ_LOG_BASE": str(home / "log"),
            "RABBITMQ_PID_FILE": str(self._pid_file),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "plugins"),
            "RABBITMQ_CONFIG_FILE": str(home / "rabbitmq"),
            "RABBITMQ_CONF_ENV_FILE": str(home / "environment"),
        }

    def _map(self) -> None:
        """Start the port mapper; the first node would start one that nobody ends."""
        command = [self._epmd, "-port", str(self._map_port), "-address", "127.0.0.1"]
        pid = self._home.spawn(command, self._environment)
        (self._home.path / "epmd.pid").write_text(str(pid))

    def _is_up(self) -> bool:
        command = ["-q", "await_startup", "--timeout", AWAIT_S]
        return self._run(*command) == 0

    def _end(self, number: int) -> None:
        assert send(self.pid, number), "the server did not end"

    def _run(self, *arguments: str) -> int:
        return self._home.run([self._programs / "rabbitmqctl", *arguments], self._environment)

    def _control(self, *arguments: str) -> None:
        if self._run("-q", *arguments) != 0:
            raise CannotStart(self._last_words())

    def _last_words(self) -> str:
        return self._home.last_words(*self._logs())

    def _logs(self) -> list[Path]:
        return sorted((self._home.path / "log").glob("*.log"))
