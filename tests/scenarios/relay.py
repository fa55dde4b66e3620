"""A relay to a server that can stop passing anything on, like a machine that hangs."""

import socket
from contextlib import suppress
from threading import Thread
from typing import Self
from urllib.parse import urlsplit

PIECE = 65_536


class Relay:
    """Passes on what is sent to a server of a URL, until it falls silent; nobody is told."""

    def __init__(self, url: str, default_port: int) -> None:
        parts = urlsplit(url)
        self._target = (parts.hostname or "127.0.0.1", parts.port or default_port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._deaf: set[socket.socket] = set()
        self._silent = False
        port = self._listener.getsockname()[1]
        user = parts.netloc.rpartition("@")[0]
        netloc = f"{user}@127.0.0.1:{port}" if user else f"127.0.0.1:{port}"
        self.url = parts._replace(netloc=netloc).geturl()
        Thread(target=self._accept, daemon=True).start()

    def fall_silent(self) -> None:
        """Take what comes and pass nothing on, either way; connections stay open."""
        self._silent = True

    def deafen(self) -> None:
        """Pass nothing on for the connections that are open; new ones are as good as ever."""
        self._deaf.update(self._open)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self._listener, *self._open):
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                here, _ = self._listener.accept()
                there = socket.create_connection(self._target)
                self._open += [here, there]
                for ways in ((here, there), (there, here)):
                    Thread(target=self._pass_on, args=ways, daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(PIECE):
                if not self._silent and source not in self._deaf:
                    target.sendall(piece)
            if not self._silent and source not in self._deaf:
                target.shutdown(socket.SHUT_WR)
