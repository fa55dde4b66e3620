"""Reads `ops/alerts.yml`, and the metrics that an expression of PromQL names."""

import re
from pathlib import Path
from typing import NamedTuple

import yaml

# In PromQL: what stands in quotes or braces, and after by and without, is no metric.
LABELS = re.compile(r'"[^"]*"|\{[^}]*\}|\b(?:by|without|on|ignoring) ?\([^)]*\)|\[[^]]*\]')
# A metric and the matchers behind it.
SELECTOR = re.compile(r"\b([a-z_]+)(\{[^}]*\})")
WORD = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
FUNCTIONS = {
    "abs",
    "sum",
    "max",
    "min",
    "count",
    "delta",
    "max_over_time",
    "scalar",
    "rate",
    "absent",
    "histogram_quantile",
    "increase",
    "group_left",
    "label_replace",
    "predict_linear",
}
LANGUAGE = FUNCTIONS | {"or", "and", "by", "on", "unless"}


class Rule(NamedTuple):
    """One alert."""

    name: str
    fields: dict[str, str]
    labels: dict[str, str]
    annotations: dict[str, str]


def read_rules(path: Path) -> list[Rule]:
    """Return all alerts of a file."""
    (group,) = yaml.safe_load(path.read_text("utf-8"))["groups"]
    return [
        Rule(each.pop("alert"), each, each.pop("labels"), each.pop("annotations"))
        for each in group["rules"]
    ]


def metrics_in(expression: str) -> set[str]:
    """Return the metrics that an expression of PromQL names."""
    return set(WORD.findall(LABELS.sub(" ", expression))) - LANGUAGE
