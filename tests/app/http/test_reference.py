"""The samples of the reference run as they stand, one program for each language.

Only what is an example in them is put in its place: ids, keys, tokens and the URL.
"""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

import pytest

from app.http.docs import DOCUMENT
from app.http.edge.input import in_path
from app.http.reference import Reference
from projections.engine.shape import id_of
from tests.app.http.buying import FREE
from tests.app.http.clients.packages import Node, node_home, run
from tests.app.http.edge.test_isolation import Case, case_of, operations, payments_of, shop_of
from tests.app.http.over_http import HOST, serving
from tests.app.http.service import Service, Tenant

pytestmark = pytest.mark.slow

BLOCK = re.compile(r"^```(bash|python|typescript)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RESET = "reset_sandbox"  # It ends all links before.
HERE = "https://api.example"
IMPORTED = re.compile(r"^import type .*$\n", re.MULTILINE)
FILES = {"bash": "samples.sh", "python": "samples.py", "typescript": "samples.mts"}
# How a language gives a program a token, and keeps the names of one sample from the next.
IN_LANGUAGE = {
    "bash": "export TOKEN={token} CLIENT_ID={client_id} CLIENT_SECRET={secret}\n{code}echo\n",
    "python": "import os\nos.environ.update(TOKEN='{token}', CLIENT_ID='{client_id}', "
    "CLIENT_SECRET='{secret}')\n{code}",
    "typescript": "Object.assign(process.env, {{ TOKEN: '{token}', CLIENT_ID: '{client_id}', "
    "CLIENT_SECRET: '{secret}' }});\n{{\n{code}}}\n",
}


@pytest.fixture(scope="module")
def samples(service: Service) -> Mapping[str, Mapping[str, str]]:
    """The samples of each operation, by its line and then by language."""
    reference = Reference(service.app.extensions[DOCUMENT][""], HERE)
    found = {}
    for name in reference.groups:
        for part in reference.text(name).split("\n## `")[1:]:
            found[part.partition("`")[0]] = dict(BLOCK.findall(part))
    return found


def real(case: Case, tenant: Tenant) -> Mapping[str, str]:
    """Return what stands in a sample as an example, and what is there in its place."""
    ids = {in_path(name)["schema"]["examples"][0]: it for name, it in case.ids.items()}
    if case.operation.name == "change_link_plans":
        link = tenant.get(f"/v1/links/{case.ids['identifier']}").json["data"]
        ids[id_of("activation")] = link["activations"][0]["id"]
    plan = shop_of(tenant).plans[FREE]
    key = {"order-4711": str(uuid4()), "payment-4711": str(uuid4())}
    return {id_of("plan"): plan, id_of("organization"): str(tenant.id), **key, **ids}


def program(
    service: Service, samples: Mapping[str, Mapping[str, str]], language: str, url: str
) -> str:
    """Return the samples of all operations in a language, for an organization of their own."""
    one, parts = service.tenant(), []
    for each in operations(service):
        tenant = service.tenant() if each.name == RESET else one
        case = case_of(each, tenant)
        code = samples[re.sub("<(.*?)>", r"{\1}", each.line)][language].replace(HERE, url)
        for example, it in real(case, tenant).items():
            code = code.replace(example, it)
        headers = payments_of(tenant) if each.group.scope == "deposits" else tenant.headers
        facts = {"client_id": tenant.client_id, "secret": f"s-{tenant.client_id}"}
        facts["token"] = headers["Authorization"].removeprefix("Bearer ")
        parts.append(IN_LANGUAGE[language].format(code=code, **facts))
    return "".join(parts)


@pytest.mark.parametrize("language", IN_LANGUAGE)
def test_the_samples_run(
    service: Service,
    samples: Mapping[str, Mapping[str, str]],
    tmp_path: Path,
    language: str,
) -> None:
    command: list[str | Path] = (
        [sys.executable] if language == "python" else ["bash", "-euo", "pipefail"]
    )
    if language == "typescript":
        command = [node_home() / "bin" / "node"]
    with serving(service.container) as port:
        code = program(service, samples, language, f"http://{HOST}:{port}")
        file = tmp_path / FILES[language]
        file.write_text(IMPORTED.sub("", code), "utf-8")
        run(tmp_path, *command, file)


@pytest.mark.soak
def test_the_types_of_a_sample_are_those_of_the_document(
    service: Service, samples: Mapping[str, Mapping[str, str]], node: Node
) -> None:
    imports, body = [], []
    for each in samples.values():
        imports += IMPORTED.findall(each["typescript"])
        body.append(f"{{\n{IMPORTED.sub('', each['typescript'])}}}\n")
    head = "declare const process: { env: Record<string, string> };\n"
    (node.place / "walk.ts").write_text(
        "".join([*{*imports}, head, *body, "export {};\n"]), "utf-8"
    )
    document = node.place / "openapi.json"
    document.write_bytes(service.app.extensions[DOCUMENT][""])
    programs = node.place / "node_modules"
    generate = programs / "openapi-typescript" / "bin" / "cli.js"
    node.run(generate, document, "-o", "carrier-links.ts")
    node.run(programs / "typescript" / "bin" / "tsc")
