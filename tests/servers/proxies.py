"""Private HTTP proxies before a server, with kept connections to it, as Debian ships them."""

from collections.abc import Mapping
from typing import NamedTuple

from tests.servers.guard import wait_for
from tests.servers.running import CannotStart, Home, accepts, free_port, newest

START_S = 10.0


class Kind(NamedTuple):
    """A program: where it is, its Debian user, its settings, and how it starts."""

    program: str
    user: str
    settings: str
    options: tuple[str, ...]


KINDS: Mapping[str, Kind] = {
    "nginx": Kind(
        "usr/sbin/nginx",
        "www-data",
        """
pid {home}/pid; error_log {home}/log; worker_processes 1;
events {{}}
http {{
    access_log off;
    client_body_temp_path {home}/body; proxy_temp_path {home}/proxy;
    fastcgi_temp_path {home}/f; uwsgi_temp_path {home}/u; scgi_temp_path {home}/s;
    upstream service {{ server 127.0.0.1:{behind}; keepalive 4; }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://service;
            proxy_http_version 1.1; proxy_request_buffering off;
            proxy_set_header Connection ""; proxy_set_header Host $http_host;
        }}
    }}
}}
""",
        ("-p", "{home}", "-e", "{home}/log", "-c"),
    ),
    "haproxy": Kind(
        "usr/sbin/haproxy",
        "haproxy",
        """
global
    pidfile {home}/pid
defaults
    mode http
    timeout client 2s
    timeout server 5s
    timeout connect 5s
frontend all
    bind 127.0.0.1:{port}
    default_backend service
backend service
    http-reuse always
    server one 127.0.0.1:{behind}
""",
        ("-D", "-p", "{home}/pid", "-f"),
    ),
}


class Proxy:
    """A proxy of a kind on a port of its own, before the server at a port."""

    def __init__(self, kind: Kind, behind: int) -> None:
        self.port = free_port()
        self._home = Home(kind.user, ["SIGTERM=pid"])
        self.close = self._home.close  # It stops the server, and removes all files.
        facts = {"home": self._home.path, "port": self.port, "behind": behind}
        settings = self._home.path / "settings"
        settings.write_text(kind.settings.format(**facts))
        options = [each.format(**facts) for each in kind.options]
        self._home.run([newest(kind.program), *options, settings], {})
        if not wait_for(lambda: accepts(self.port), START_S):
            said = self._home.last_words(self._home.path / "log")
            self.close()
            raise CannotStart(said)
