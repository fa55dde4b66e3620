"""Alerts, dashboard and handbook name what a real process shows, and nothing else."""

import json
import re
from pathlib import Path

import pytest

from tests.ops.processes import ROOT, names_in, until_ready, watched
from tests.ops.rules import Rule, metrics_in, read_rules

RULES = read_rules(ROOT / "ops" / "alerts.yml")
DASHBOARD = json.loads((ROOT / "ops" / "dashboard.json").read_text("utf-8"))
HANDBOOK = (ROOT / "docs" / "operations.md").read_text("utf-8")
PROMETHEUS_OWN = {"up"}
ELSEWHERE = "amqp://127.0.0.1:1"  # `web` needs no broker, but will not run without one.


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names of all metrics of real processes: `serve`, and `web` beside it."""
    home = tmp_path_factory.mktemp("shown")
    with watched(home, "serve") as serve:
        until_ready(serve)
        with watched(home, "web", BROKER_URL=ELSEWHERE, WEB_WORKERS="1") as web:
            until_ready(web)
            assert web.get("/livez", web.port)[0] == 200
            return names_in(serve.get("/metrics")[1]) | names_in(web.get("/metrics")[1])


def test_an_expression_is_understood() -> None:
    quantile = 'histogram_quantile(0.5, sum by (le) (rate(x_bucket{a="b"}[5m]))) / y > 1'
    assert metrics_in(quantile) == {"x_bucket", "y"}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_an_alert_says_how_bad_it_is_and_what_to_do(rule: Rule) -> None:
    assert rule.fields.keys() == {"expr", "for"}
    name, labels, annotations = rule.name, rule.labels, rule.annotations
    assert labels["severity"] in {"critical", "warning"}
    assert len(annotations["summary"]) > 10
    assert annotations["runbook"] == f"docs/operations.md#{name.lower()}"
    paragraph = HANDBOOK.partition(f"\n### {name}\n")[2].partition("\n#")[0]
    assert len(paragraph.split()) > 20, f"docs/operations.md does not tell what to do on {name}"


def test_the_handbook_tells_of_no_alert_that_is_gone() -> None:
    assert re.findall(r"^### (\w+)$", HANDBOOK, re.MULTILINE) == [rule.name for rule in RULES]


def test_alerts_name_only_metrics_that_exist(shown: set[str]) -> None:
    named = set().union(*(metrics_in(rule.fields["expr"]) for rule in RULES))
    assert named - PROMETHEUS_OWN - shown == set()


def test_the_dashboard_names_only_metrics_that_exist(shown: set[str]) -> None:
    targets = [target for panel in DASHBOARD["panels"] for target in panel["targets"]]
    assert len(targets) > len(DASHBOARD["panels"])
    named = set().union(*(metrics_in(target["expr"]) for target in targets))
    assert named - shown == set()


def test_the_dashboard_can_be_imported_anywhere() -> None:
    (variable,) = DASHBOARD["templating"]["list"]
    assert (variable["name"], variable["type"]) == ("datasource", "datasource")
    panels = DASHBOARD["panels"]
    assert {panel["datasource"]["uid"] for panel in panels} == {"${datasource}"}
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}
    assert len(places) == len(panels)


def test_the_handbook_lists_every_metric_and_no_other(shown: set[str]) -> None:
    table = HANDBOOK.partition("## Metrics")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in shown}
    assert listed == families


def test_every_metric_is_looked_at_by_an_alert_or_a_panel(shown: set[str]) -> None:
    text = json.dumps(DASHBOARD) + Path(ROOT / "ops" / "alerts.yml").read_text("utf-8")
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in shown}
    of_every_process = {name for name in families if name.startswith("process_")}
    assert {name for name in families - of_every_process if name not in text} == set()
