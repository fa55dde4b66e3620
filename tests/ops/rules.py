"""Reads `ops/alerts.yml`: the one layout of YAML that it is written in, and nothing else.

No parser of YAML is among our dependencies. A line that is not understood is an error.
"""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

HEAD = ["groups:", "  - name: carrier-links", "    rules:"]
ALERT = re.compile(r"      - alert: ([A-Z][A-Za-z]+)")
FIELD = re.compile(r"        (expr|for): (.+)")
SECTION = re.compile(r"        (labels|annotations):")
ENTRY = re.compile(r"          ([a-z_]+): (.+)")
PLAIN = re.compile(r"[A-Za-z0-9./#_-]+")

# In PromQL: what stands in quotes or braces, and after by and without, is no metric.
LABELS = re.compile(r'"[^"]*"|\{[^}]*\}|\b(?:by|without|on|ignoring) ?\([^)]*\)|\[[^]]*\]')
WORD = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
FUNCTIONS = {
    "abs",
    "sum",
    "max",
    "min",
    "count",
    "delta",
    "rate",
    "absent",
    "histogram_quantile",
    "label_replace",
    "predict_linear",
}
LANGUAGE = FUNCTIONS | {"or", "and", "by", "unless"}


@dataclass
class Rule:
    """One alert."""

    name: str
    fields: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


def read_rules(path: Path) -> list[Rule]:
    """Return all alerts of a file."""
    lines = [line for line in path.read_text("utf-8").splitlines() if not line.startswith("#")]
    assert lines[:3] == HEAD, lines[:3]
    rules: list[Rule] = []
    section: dict[str, str] = {}
    for line in lines[3:]:
        if found := ALERT.fullmatch(line):
            rules.append(Rule(found[1]))
        elif found := FIELD.fullmatch(line):
            rules[-1].fields[found[1]] = _scalar(found[2])
        elif found := SECTION.fullmatch(line):
            section = getattr(rules[-1], found[1])
        else:
            found = ENTRY.fullmatch(line)
            assert found, line
            section[found[1]] = _scalar(found[2])
    return rules


def metrics_in(expression: str) -> set[str]:
    """Return the metrics that an expression of PromQL names."""
    return set(WORD.findall(LABELS.sub(" ", expression))) - LANGUAGE


def _scalar(text: str) -> str:
    if text.startswith('"'):  # A string of JSON is one of YAML.
        return str(json.loads(text))
    assert PLAIN.fullmatch(text), text
    return text
