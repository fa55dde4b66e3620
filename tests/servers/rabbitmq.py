"""A private RabbitMQ server with its own port mapper, so that it meets no other one."""

import signal
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tests.servers.guard import send, wait_for
from tests.servers.running import CannotStart, Home, Server, free_port, newest

PROGRAM = "usr/lib/rabbitmq/bin/rabbitmq-server"
START_S = 90.0
HELLO = b"AMQP\0\0\x09\x01"  # What every client says first.


class RabbitServer(Server):
    """A server with ports of its own; they stay the same when it is started again."""

    def __init__(self) -> None:
        self._programs = newest(PROGRAM).parent
        self._epmd, self._erl_call = newest("usr/bin/epmd"), newest("usr/lib/erlang/bin/erl_call")
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
        self.eval(f'rabbit_vhost:add(<<"{name}">>, <<"test">>)')
        told = ", ".join(f'<<"{each}">>' for each in ("guest", name, ".*", ".*", ".*", "test"))
        self.eval(f"rabbit_auth_backend_internal:set_permissions({told})")
        return self.url(name)

    def eval(self, expression: str) -> None:
        """Evaluate Erlang in the server: `rabbitmqctl` takes a second of a processor for that."""
        asks = f'echo "$1" | "$0" -e -address 127.0.0.1:{self._node_port} | grep "^{{ok, "'
        command = ["/bin/sh", "-c", asks, self._erl_call, f"{expression}."]
        if self._home.run(command, self._environment) != 0:
            raise CannotStart(self._last_words())

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
        """Tell whether it answers a client, which it does last of all when it starts."""
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 20) as client:
            client.sendall(HELLO)
            return bool(client.recv(1))
        return False

    def _end(self, number: int) -> None:
        assert send(self.pid, number), "the server did not end"

    def _last_words(self) -> str:
        return self._home.last_words(*self._logs())

    def _logs(self) -> list[Path]:
        return sorted((self._home.path / "log").glob("*.log"))
