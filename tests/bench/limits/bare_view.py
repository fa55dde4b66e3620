"""The limit of HTTP: a Flask view that returns constant JSON, served like the service itself.

`python -m tests.bench.limits.bare_view PORT THREADS FILE` serves the bytes of a file.
"""

import sys
from pathlib import Path

from flask import Flask, Response
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


def main(port: int, threads: int, file: Path) -> None:
    """Serve until the process is ended."""
    app = bare_app(file.read_bytes())
    create_server(app, host="127.0.0.1", port=port, threads=threads, ident=None).run()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
