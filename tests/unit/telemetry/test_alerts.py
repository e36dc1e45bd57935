"""Every alert for Prometheus names series and labels that processes export, and says what to do."""

from pathlib import Path
from typing import Any

import yaml
from tests.unit.telemetry.exported_metrics import exported_series, named_labels, named_series

ALERTS = Path(__file__).resolve().parents[3] / "deploy" / "prometheus" / "alerts.yaml"
OF_PROMETHEUS = {"job", "instance"}


def _rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


def test_every_series_and_label_of_an_alert_is_exported() -> None:
    exported = exported_series()
    for rule in _rules():
        named = named_series(rule["expr"])
        assert named or "up{" in rule["expr"], rule
        assert named <= set(exported), rule
        known = OF_PROMETHEUS.union(*(exported[name] for name in named))
        assert named_labels(rule["expr"]) <= known, rule


def test_every_alert_has_a_severity_and_an_action() -> None:
    rules = _rules()
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert rule["labels"]["severity"] in {"page", "ticket"}, rule
        assert set(rule["annotations"]) == {"summary", "action"}, rule
