"""The limit of HTTP: a Flask view that returns constant JSON, served like the service itself.

`python -m tests.bench.limits.bare_view PORT FILE WORKERS` serves the bytes of a file by so
many processes.
"""

import multiprocessing
import signal
import socket
import sys
from pathlib import Path

from flask import Flask, Response

from app.http.edge.front import Front
from app.http.edge.listening import bind, listen
from app.http.edge.own_replies import OwnReplies
from app.http.edge.request_threads import RequestThreads
from domain.cause import utc_now

FINISH_S = 1.0
READ_S = 10.0


def bare_app(body: bytes) -> Flask:
    """Return an app whose every lookup path answers with these bytes."""
    app = Flask(__name__)

    @app.route("/number-lookup", methods=["POST"])
    @app.route("/number-lookup/bulk/<job_id>")
    @app.route("/livez")
    def constant(job_id: str = "") -> Response:  # noqa: ARG001  # Flask passes it by name.
        return Response(body, mimetype="application/json")

    return app


def serve(listeners: list[socket.socket], file: Path) -> None:
    """Serve until the process is ended."""
    threads = RequestThreads(bare_app(file.read_bytes()), listeners[0].getsockname(), many=True)
    Front(listeners, threads, OwnReplies(utc_now), READ_S, FINISH_S).run()


def main(port: int, file: Path, workers: int) -> None:
    """Serve in this process and so many more; they end with it."""
    listeners = bind("127.0.0.1", port)
    listen(listeners, "127.0.0.1", port)
    context = multiprocessing.get_context("fork")
    for _ in range(workers - 1):
        context.Process(target=serve, args=(listeners, file), daemon=True).start()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    serve(listeners, file)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
