"""The limit of HTTP: a Flask view that returns constant JSON, served like the service itself.

`python -m tests.bench.limits.bare_view PORT THREADS FILE WORKERS` serves the bytes of a file by so
many workers of granian, or with 0 by waitress.
"""

import os
import sys
from pathlib import Path

from flask import Flask, Response
from granian import Granian
from granian.constants import HTTPModes, Interfaces
from waitress import create_server


def bare_app(body: bytes) -> Flask:
    """Return an app whose every lookup path answers with these bytes."""
    app = Flask(__name__)

    @app.route("/number-lookup", methods=["POST"])
    @app.route("/number-lookup/bulk/<job_id>")
    @app.route("/livez")
    def constant(job_id: str = "") -> Response:  # noqa: ARG001  # Flask passes it by name.
        return Response(body, mimetype="application/json")

    return app


def from_file() -> Flask:
    """Return the app of a worker of granian."""
    return bare_app(Path(os.environ["BARE_FILE"]).read_bytes())


def main(port: int, threads: int, file: Path, workers: int) -> None:
    """Serve until the process is ended."""
    if not workers:
        app = bare_app(file.read_bytes())
        create_server(app, host="127.0.0.1", port=port, threads=threads, ident=None).run()
        return
    os.environ["BARE_FILE"] = str(file)
    Granian(
        f"{__spec__.name}:from_file",
        factory=True,
        address="127.0.0.1",
        port=port,
        interface=Interfaces.WSGI,
        http=HTTPModes.http1,
        websockets=False,
        workers=workers,
        blocking_threads=threads,
        backpressure=2 * threads,
        log_enabled=False,
    ).serve()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
