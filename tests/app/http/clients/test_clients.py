"""Clients that generators make of the document walk through the API of a `serve` process.

Each is made anew of the document that is served, checked by the strict types of its language
together with the recipes of the guide, and then run by an organization of its own. The linters
that partners use find nothing in the document.
"""

import json
import re
import shutil
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

import pytest

from app.http.docs import GUIDES
from domain.cause import utc_now
from domain.webhooks.signatures import Generation, WebhookSigner
from tests.app.http.clients.packages import Node, run
from tests.app.http.conftest import MakeService
from tests.house.running import Served
from tests.servers.fixtures import missing

# Each reply of `make test` is held to the same document: DescribedClient.
pytestmark = pytest.mark.soak

HERE = Path(__file__).parent
MYPY_CACHE = HERE.parents[3] / ".mypy_cache" / "clients"
RECIPE = re.compile(r"^```(python|typescript)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
GENERATOR = "openapi_python_client"
# Hooks only format. It knows no images, of which it takes the first type that is told.
CONFIG = """
post_hooks: []
content_type_overrides:
  image/svg+xml: application/octet-stream
"""


@pytest.fixture
def partner(serving: Served) -> Mapping[str, str]:
    """Return the environment of a new organization that can pay."""
    shell = serving.shell
    organization = str(shell.new_organization("--price", "0.005"))
    shell.json("wallet", "deposit", organization, "100", "--reference", "first")
    client = shell.json("client", "create", "--org", organization)
    machine = shell.json("client", "create", "--m2m")
    return {
        "URL": serving.url,
        "ORGANIZATION": organization,
        "CLIENT_ID": client["client_id"],
        "CLIENT_SECRET": client["client_secret"],
        "MACHINE_ID": machine["client_id"],
        "MACHINE_SECRET": machine["client_secret"],
    }


def recipes(language: str) -> str:
    text = (GUIDES / "clients.md").read_text("utf-8")
    return "\n".join(code for found, code in RECIPE.findall(text) if found == language)


@pytest.mark.slow
def test_a_client_in_python_walks(partner: Mapping[str, str], tmp_path: Path) -> None:
    if find_spec(GENERATOR) is None:
        missing(f"{GENERATOR} is not installed")
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG)
    document = f"{partner['URL']}/openapi.json"
    generate = (sys.executable, "-m", GENERATOR, "generate", "--fail-on-warning")
    run(tmp_path, *generate, "--url", document, "--meta", "none", "--config", config)
    (tmp_path / "recipes.py").write_text(recipes("python"), "utf-8")
    shutil.copy(HERE / "walk.py", tmp_path)
    ours = ("recipes.py", "walk.py")
    # What it finds of the libraries is known from the last run.
    check = ("mypy", "--strict", "--follow-imports=silent", "--cache-dir", MYPY_CACHE)
    run(tmp_path, sys.executable, "-m", *check, *ours)
    assert run(tmp_path, sys.executable, "walk.py", **partner) == "walked\n"


@pytest.mark.slow
def test_a_client_in_typescript_walks(partner: Mapping[str, str], node: Node) -> None:
    programs = node.place / "node_modules"
    generate = programs / "openapi-typescript" / "bin" / "cli.js"
    node.run(generate, f"{partner['URL']}/openapi.json", "-o", "carrier-links.ts")
    shutil.copy(HERE / "walk.ts", node.place)  # The reference has put another one there.
    (node.place / "recipes.ts").write_text(recipes("typescript"), "utf-8")
    node.run(programs / "typescript" / "bin" / "tsc")
    assert node.run("walk.ts", **partner) == "walked\n"


@pytest.mark.slow
def test_the_linters_of_partners_find_nothing(make_service: MakeService, node: Node) -> None:
    service = make_service(PUBLIC_URL="https://api.acme.test", CONTACT_EMAIL="api@acme.test")
    ours = service.client.get("/openapi.json").json
    worse = {"openapi": ours["openapi"], "info": {"title": "A", "version": "1"}, "paths": {}}
    for name, document in (("ours.json", ours), ("worse.json", worse)):
        (node.place / name).write_text(json.dumps(document), "utf-8")
    found = json.loads(node.run("lint.mjs", "ours.json", "worse.json"))
    assert found["ours.json"] == []
    assert {each.split()[0] for each in found["worse.json"]} == {"spectral", "redocly"}


@pytest.mark.slow
def test_the_library_of_receivers_in_javascript_verifies_webhooks(node: Node) -> None:
    signer, endpoint = WebhookSigner({None: b"k" * 32}.get), uuid4()
    body, now = '{"type":"webhook.test","data":{"name":"Zoë"}}', int(utc_now().timestamp())

    def case(secret: int, *generations: int, said: str = body, at: int = now) -> dict[str, object]:
        """Sign with some generations; verify with the secret of one what is `said`."""
        of = [Generation(each) for each in generations]
        headers = {
            "webhook-id": "msg-1",
            "webhook-timestamp": str(at),
            "webhook-signature": signer.sign(endpoint, of, "msg-1", at, body.encode()),
        }
        return {
            "secret": signer.secret(endpoint, Generation(secret)),
            "headers": headers,
            "body": said,
        }

    right = [case(1, 1), case(1, 2, 1), case(2, 2, 1)]
    wrong = [case(1, 2), case(1, 1, said=body + " "), case(1, 1, at=now - 600)]
    (node.place / "cases.json").write_text(json.dumps([*right, *wrong]), "utf-8")
    told = json.loads(node.run("verify.mjs", "cases.json"))
    assert told == [json.loads(body)] * 3 + [None] * 3
