"""The parts of the OpenAPI document, of which the recording has the digests.

python -m tests.net.document COMMIT  what has changed since: part, member, before, after
"""

import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.request import urlopen

from tests.installation import wait_until
from tests.servers.running import accepts, free_port
from tests.tidy.source import PACKAGES, ROOT

Document = Mapping[str, Any]


def parts(document: Document) -> Iterator[tuple[str, Any]]:
    """Yield each operation and schema by its name, and what else there is by its kind."""
    rest = {**document, **document["components"]}
    groups = {"schemas": rest.pop("schemas"), **rest.pop("paths"), **rest.pop("webhooks")}
    for group, members in groups.items():
        yield from ((f"{group} {name}", part) for name, part in members.items())
    del rest["components"]
    yield from rest.items()


def digests(document: Document) -> str:
    """Return a line for each part; a release changes the version alone."""
    same = {**document, "info": {**document["info"], "version": ""}}
    texts = ((name, json.dumps(part, sort_keys=True)) for name, part in sorted(parts(same)))
    return "\n".join(f"{sha256(text.encode()).hexdigest()[:12]} {name}" for name, text in texts)


def differences(before: Any, after: Any, where: str = "") -> Iterator[str]:
    """Yield each member that is not the same in both."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted(before.keys() | after.keys()):
            pair = (each.get(name, "absent") for each in (before, after))
            yield from differences(*pair, f"{where} > {name}" if where else name)
    elif before != after:
        yield f"{where}\n  before: {before}\n  after:  {after}"


def served(root: Path, port: int) -> Document:
    """Return the document of the demo, served by the service that stands in a folder."""
    given = {"PATH": os.environ["PATH"], "PORT": str(port), "PYTHONPATH": str(root)}
    command = [sys.executable, "-m", "app", "serve", "--demo"]
    with (
        TemporaryDirectory() as home,
        subprocess.Popen(
            command, cwd=home, env=given, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process,
    ):
        try:
            wait_until(lambda: accepts(port), timeout_s=60)
            with urlopen(f"http://127.0.0.1:{port}/openapi.json") as reply:
                found: Document = json.load(reply)
                return found
        finally:
            process.terminate()


def main(commit: str) -> None:
    port, command = free_port(), ["git", "archive", commit, *PACKAGES]
    archive = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    with TemporaryDirectory() as old, tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(old, filter="data")
        pair = (dict(parts(served(root, port))) for root in (Path(old), ROOT))
        told = "\n".join(differences(*pair)) or "the same"
        sys.stdout.write(f"{told}\n")


if __name__ == "__main__":
    main(sys.argv[1])
