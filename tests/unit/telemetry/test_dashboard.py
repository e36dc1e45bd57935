"""Every metric on the dashboard is exported, and every metric of Footplate is on the dashboard."""

import json
from pathlib import Path
from typing import Any

from tests.unit.telemetry.exported_metrics import exported_series, named_labels, named_series

from footplate.telemetry import metrics

DASHBOARD = Path(__file__).resolve().parents[3] / "deploy" / "grafana" / "footplate.json"


def _expressions() -> list[str]:
    dashboard: dict[str, Any] = json.loads(DASHBOARD.read_text())
    return [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]


def test_every_metric_of_the_dashboard_isexported_series() -> None:
    named = set().union(*map(named_series, _expressions()))
    assert len(named) > 15
    assert named - set(exported_series()) == set()


def test_every_label_that_the_dashboard_groups_by_exists() -> None:
    exported = exported_series()
    for expression in _expressions():
        known = set().union(*(exported[name] for name in named_series(expression)))
        assert named_labels(expression) <= known, expression


def test_every_footplate_metric_is_on_the_dashboard() -> None:
    named = " ".join(_expressions())
    ours = {family.name for family in metrics.REGISTRY.collect() if family.name.startswith("footplate_")}
    assert {name for name in ours if name not in named} == set()
