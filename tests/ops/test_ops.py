"""Alerts, dashboard and handbook name what a real process shows, and nothing else."""

import json
import re
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from app.processes.background import CLOCK_OFFSET
from app.watch import gauges
from app.watch.gauges import PREFIX
from tests.app.cli.shell import ROOT
from tests.installation import PATIENCE_S, Installation
from tests.ops.rules import SELECTOR, Rule, metrics_in, read_rules
from tests.seeds import sqlite_seed
from tests.servers.fixtures import started
from tests.servers.install import PROMTOOL
from tests.servers.running import newest

RULES = read_rules(ROOT / "ops" / "alerts.yml")
DASHBOARD = json.loads((ROOT / "ops" / "dashboard.json").read_text("utf-8"))
HANDBOOK = (ROOT / "docs" / "operations.md").read_text("utf-8")
PROCFILE = (ROOT / "Procfile").read_text("utf-8")
PROMETHEUS_OWN = {"up"}


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names of all metrics of a process, of `serve` and of `web`, on the metrics port."""
    with (
        closing(Installation(tmp_path_factory.mktemp("shown"), like=sqlite_seed())) as made,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(gauges, "ANSWER_S", PATIENCE_S)
        metrics = made.process().metrics
        texts = [generate_latest(metrics.registry(role)).decode() for role in ("serve", "web")]
    return {f"{PREFIX}{CLOCK_OFFSET}"}.union(*map(names_in, texts))


def names_in(text: str) -> set[str]:
    """Return the names of all series and families of a scrape."""
    names: set[str] = set()
    for family in text_string_to_metric_families(text):
        suffixes = {
            "counter": ["_total"],
            "histogram": ["_bucket", "_sum", "_count"],
        }.get(family.type, [""])
        names |= {f"{family.name}{suffix}" for suffix in suffixes}
    return names


def test_an_expression_is_understood() -> None:
    quantile = 'histogram_quantile(0.5, sum by (le) (rate(x_bucket{a="b"}[5m]))) / y > 1'
    assert metrics_in(quantile) == {"x_bucket", "y"}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_an_alert_says_how_bad_it_is_and_what_to_do(rule: Rule) -> None:
    assert rule.fields.keys() == {"expr", "for"}
    name, labels, annotations = rule.name, rule.labels, rule.annotations
    assert labels["severity"] in {"critical", "warning"}
    assert len(annotations["summary"]) > 10
    book = f"https://{{{{ $externalLabels.runbooks }}}}#{name.lower()}"
    assert annotations["runbook_url"] == book
    paragraph = HANDBOOK.partition(f"\n### {name}\n")[2].partition("\n#")[0]
    assert len(paragraph.split()) > 20, f"docs/operations.md does not tell what to do on {name}"


def test_the_handbook_tells_of_no_alert_that_is_gone() -> None:
    assert re.findall(r"^### (\w+)$", HANDBOOK, re.MULTILINE) == [rule.name for rule in RULES]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_an_alert_looks_at_no_metric_of_anybody_else(rule: Rule) -> None:
    selectors = SELECTOR.findall(rule.fields["expr"])
    assert {name for name, _ in selectors} == metrics_in(rule.fields["expr"])
    assert all(matchers.startswith('{job="carrier-links"') for _, matchers in selectors)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_an_alert_keeps_the_labels_that_name_what_it_is_about(rule: Rule) -> None:
    """The installation always; the process, if the summary names it."""
    grouped = re.findall(r"\b(?:sum|max|min|count)\b(?: by \(([^)]*)\))?", rule.fields["expr"])
    assert all(labels.split(", ")[0] == "job" for labels in grouped)
    if "$labels.instance" in rule.annotations["summary"]:
        assert all("instance" in labels for labels in grouped)


def test_the_scrape_configuration_names_each_process_and_the_job_of_the_alerts() -> None:
    prometheus = yaml.safe_load((ROOT / "ops" / "prometheus.yml").read_text("utf-8"))
    assert set(prometheus["global"]["external_labels"]) == {"runbooks"}
    (job,) = prometheus["scrape_configs"]
    processes = re.findall(r"-m app (?!migrate)(\w+)$", PROCFILE, re.MULTILINE)
    assert (job["job_name"], set(job["dns_sd_configs"][0]["names"])) == (
        "carrier-links",
        set(processes),
    )


@pytest.mark.parametrize(
    "arguments",
    [("check", "config", "ops/prometheus.yml"), ("test", "rules", "tests/ops/alerts.test.yml")],
    ids=" ".join,
)
def test_prometheus_takes_them_and_fires_when_it_must(arguments: tuple[str, ...]) -> None:
    """The file of the tests holds series, and what fires on them: all of it."""
    promtool = started(lambda: newest(PROMTOOL), "promtool")
    told = subprocess.run(
        [promtool, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stdout + told.stderr


def test_alerts_name_only_metrics_that_exist(shown: set[str]) -> None:
    named = set().union(*(metrics_in(rule.fields["expr"]) for rule in RULES))
    assert named - PROMETHEUS_OWN - shown == set()


def test_the_dashboard_names_only_metrics_that_exist(shown: set[str]) -> None:
    targets = [target for panel in DASHBOARD["panels"] for target in panel["targets"]]
    assert len(targets) > len(DASHBOARD["panels"])
    named = set().union(*(metrics_in(target["expr"]) for target in targets))
    assert named - shown == set()


def test_the_dashboard_shows_one_installation_of_those_under_one_prometheus() -> None:
    texts = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    for text in texts:
        selectors = SELECTOR.findall(text)
        assert {name for name, _ in selectors} == metrics_in(text)
        assert all(matchers.startswith('{job="$job"') for _, matchers in selectors)


def test_the_dashboard_can_be_imported_anywhere() -> None:
    source, job = DASHBOARD["templating"]["list"]
    assert (source["name"], source["type"]) == ("datasource", "datasource")
    assert job["query"] == f"label_values({PREFIX}build_info, job)"
    panels = DASHBOARD["panels"]
    assert {panel["datasource"]["uid"] for panel in panels} == {"${datasource}"}
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        references = [target["refId"] for target in panel["targets"]]
        assert len(set(references)) == len(references), panel["title"]
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}
    assert len(places) == len(panels)


def test_the_handbook_explains_only_metrics_that_exist(shown: set[str]) -> None:
    table = HANDBOOK.partition("## Metrics")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in shown}
    assert listed - {name.removeprefix(PREFIX) for name in families} == set()


def test_every_metric_is_looked_at_by_an_alert_or_a_panel(shown: set[str]) -> None:
    text = json.dumps(DASHBOARD) + Path(ROOT / "ops" / "alerts.yml").read_text("utf-8")
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in shown}
    ours = {name for name in families if name.startswith(PREFIX)}
    assert {name for name in ours if name not in text} == set()
