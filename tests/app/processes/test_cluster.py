"""What ops/kubernetes runs agrees with the Procfile, the image, the settings and its own names."""

import os
import re
import stat
from collections.abc import Mapping
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.app.cli.shell import ROOT
from tests.app.processes.test_containers import (
    OF_THE_CONTAINER,
    SERVICES,
    SETTINGS,
    commands_of_the_procfile,
    instructions,
    made_roles,
)
from tests.house.running import Running
from tests.servers.postgres import PostgresServer
from tests.servers.running import free_port
from tests.support import warm

PLACE = ROOT / "ops/kubernetes"
KUSTOMIZATION = yaml.safe_load((PLACE / "kustomization.yaml").read_text("utf-8"))
PROCESSES = yaml.safe_load((PLACE / "processes.yaml").read_text("utf-8"))["items"]
CLUSTER = (PLACE / "cluster.env").read_text("utf-8")
AROUND = [*yaml.safe_load_all((PLACE / "around.yaml").read_text("utf-8"))]
KINDS = {each["metadata"]["name"]: each for each in PROCESSES}
NAMES = sorted(KINDS)


def pod(name: str) -> Any:
    return KINDS[name]["spec"]["template"]["spec"]


def container(name: str) -> Any:
    (found,) = pod(name)["containers"]
    return found


def around(kind: str) -> list[Any]:
    return [each for each in AROUND if each["kind"] == kind]


def test_it_runs_each_process_of_the_procfile_under_one_image() -> None:
    assert commands_of_the_procfile() == {*KINDS}
    assert {name: container(name)["args"] for name in NAMES} == {name: [name] for name in NAMES}
    assert {container(name)["image"] for name in NAMES} == {"carrier-links"}
    listed = {*KUSTOMIZATION["resources"], *KUSTOMIZATION["configMapGenerator"][0]["envs"]}
    assert {each.name for each in PLACE.iterdir()} == listed | {"kustomization.yaml"}


def keys(node: yaml.MappingNode, merges: int) -> set[str]:
    """Return the keys of a mapping, and of what it merges (`<<`) up to so many deep."""
    found = dict[str, yaml.Node]((key.value, value) for key, value in node.value)
    merged = found.pop("<<", None)
    deeper = keys(merged, merges - 1) if isinstance(merged, yaml.MappingNode) and merges else set()
    return {*found} | deeper


def test_kustomize_finds_what_an_overlay_changes() -> None:
    """It sets images and names of settings, but does not see them two merges deep."""
    whole = yaml.compose((PLACE / "processes.yaml").read_text("utf-8"))
    rest, found = [whole], 0
    while rest:
        node = rest.pop()
        if isinstance(node, yaml.MappingNode):
            if "args" in keys(node, 0):
                assert {"image", "envFrom"} <= keys(node, 1), node.start_mark
                found += 1
            rest += [value for _, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            rest += node.value
    assert found >= len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_process_is_guarded_limited_and_left_alone_by_the_cluster(name: str) -> None:
    guarded, outer = container(name)["securityContext"], pod(name)["securityContext"]
    assert guarded == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    user = f"{outer['runAsUser']}:{outer['runAsGroup']}"
    assert (user, outer["runAsNonRoot"]) == (instructions("USER")[0], True)
    assert pod(name)["enableServiceLinks"] is pod(name)["automountServiceAccountToken"] is False
    assert pod(name)["terminationGracePeriodSeconds"] > 30
    bound = container(name)["resources"]["limits"]["memory"]
    assert bound.removesuffix("i").lower() == SERVICES[name]["mem_limit"]


@pytest.mark.parametrize("name", NAMES)
def test_every_setting_reaches_every_process(name: str) -> None:
    told = {each["name"]: each["value"] for each in container(name)["env"]}
    assert {*told} == OF_THE_CONTAINER | {"SIGNING_KEYS"}
    assert container(name)["envFrom"] == [{"configMapRef": {"name": "settings"}}]
    given = re.findall(r"^([A-Z_]+)=", CLUSTER, re.MULTILINE)
    assert {*given} <= SETTINGS
    assert not {*given} & {*told}
    mounts = {each["name"]: each["mountPath"] for each in container(name)["volumeMounts"]}
    places = {each: told[each] for each in ("DATABASE_URL_FILE", "BROKER_URL_FILE")}
    assert {each.rpartition("/")[0] for each in places.values()} == {mounts["secrets"]}
    assert told["SIGNING_KEYS"].startswith(f"{mounts['keys']}/")  # A directory of its own.
    assert told["REDO_DIR"] == mounts["redo"]
    volumes = {each["name"]: each for each in pod(name)["volumes"]}
    assert {*volumes} == {*mounts}
    secret = volumes["secrets"]["secret"]["secretName"]
    assert secret == ("owner" if name == "migrate" else "service")
    claims = {each["metadata"]["name"] for each in around("PersistentVolumeClaim")}
    named = (each.get("persistentVolumeClaim") for each in volumes.values())
    assert {each["claimName"] for each in named if each} == claims


@pytest.mark.parametrize("name", sorted({*KINDS} - {"migrate"}))
def test_a_process_is_probed_twofold_and_found_by_its_name(name: str) -> None:
    ports = {each["name"]: str(each["containerPort"]) for each in container(name)["ports"]}
    exposed = dict(re.findall(r"(PORT|METRICS_PORT)=(\d+)", instructions("ENV")[0]))
    assert ports["metrics"] == exposed["METRICS_PORT"]
    assert ports.get("http", exposed["PORT"]) == exposed["PORT"]
    assert ("http" in ports) == (name == "web")
    probes = {part: container(name)[f"{part}Probe"]["httpGet"] for part in PROBES}
    assert probes == {part: {"path": path, "port": "metrics"} for part, path in PROBES.items()}
    found = KINDS[name]["spec"]["selector"]["matchLabels"]
    assert found == KINDS[name]["spec"]["template"]["metadata"]["labels"]
    assert found == {"app": "carrier-links", "process": name}
    assert KINDS[name]["spec"]["replicas"] == 2


PROBES = {"startup": "/livez", "liveness": "/livez", "readiness": "/readyz"}


def test_requests_reach_web_alone_and_a_drain_takes_one_process() -> None:
    (service,), (inward,), (budget,) = map(
        around, ("Service", "NetworkPolicy", "PodDisruptionBudget")
    )
    assert service["spec"]["selector"] == KINDS["web"]["spec"]["selector"]["matchLabels"]
    assert service["spec"]["ports"][0]["targetPort"] == "http"
    ports = {
        port["port"]: "from" in rule for rule in inward["spec"]["ingress"] for port in rule["ports"]
    }
    assert ports == {"http": False, "metrics": True}
    # A job cannot be counted, and a budget that selects one protects nothing.
    (kept_out,) = budget["spec"]["selector"]["matchExpressions"]
    assert (kept_out["operator"], kept_out["values"]) == ("NotIn", ["migrate"])
    assert budget["spec"]["maxUnavailable"] == 1
    # An upgrade applies by the label `process`, one after the other, and all else before.
    assert not [each for each in AROUND if "process" in each["metadata"].get("labels", {})]
    assert {each["metadata"]["labels"]["process"] for each in PROCESSES} == {*KINDS}
    (namespace,) = around("Namespace")
    assert namespace["metadata"]["name"] == KUSTOMIZATION["namespace"]


@pytest.mark.server
@pytest.mark.soak
def test_they_work_with_what_the_manifests_give_and_nothing_else(
    tmp_path: Path, postgres: PostgresServer, broker_url: str
) -> None:
    """The owner migrates, the other role runs; the keys' volume is not of their user."""
    with made_roles(tmp_path, postgres) as urls, ExitStack() as stack:
        for name in ("migrate", "projector", "dispatcher", "clock", "worker", "web"):
            secrets = tmp_path / pod(name)["volumes"][-1]["secret"]["secretName"]
            secrets.mkdir(exist_ok=True)
            (secrets / "database_url").write_text(urls["owner" if name == "migrate" else "service"])
            (secrets / "broker_url").write_text(broker_url)
            places = {"/run/secrets/carrier-links": secrets}
            for volume in ("keys", "redo"):
                places[f"/srv/{volume}"] = tmp_path / volume
                places[f"/srv/{volume}"].mkdir(exist_ok=True, mode=0o2770)
            process = stack.enter_context(closing(started(name, places, tmp_path)))
            if name == "migrate":
                assert process.ended() == 0, process.said()
            else:
                process.comes_up()
    assert stat.S_IMODE((tmp_path / "keys/carrier-links").stat().st_mode) == 0o700


def started(name: str, places: Mapping[str, Path], home: Path) -> Running:
    """Start what a pod runs; its ports are free ones, and its volumes are elsewhere."""
    given = dict(re.findall(r"^([A-Z_]+)=(.*)$", CLUSTER, re.MULTILINE))
    given |= {each["name"]: each["value"] for each in container(name)["env"]}
    for inside, place in places.items():
        given = {key: value.replace(inside, str(place)) for key, value in given.items()}
    given |= {"PORT": str(free_port()), "METRICS_PORT": str(free_port())}
    around = {key: value for key, value in os.environ.items() if key not in SETTINGS}
    command = (*container(name)["args"],)
    return Running(name, partial(warm.start, command), {**around, **given}, home / f"{name}.log")
