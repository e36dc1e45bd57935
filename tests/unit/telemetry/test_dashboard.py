"""Every metric on the dashboard is exported, and every metric of Footplate is on the dashboard."""

import json
import re
from pathlib import Path
from typing import Any

from prometheus_client import Histogram

from footplate.telemetry import metrics

DASHBOARD = Path(__file__).resolve().parents[3] / "deploy" / "grafana" / "footplate.json"


def _expressions() -> list[str]:
    dashboard: dict[str, Any] = json.loads(DASHBOARD.read_text())
    return [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]


def _exported() -> dict[str, set[str]]:
    """Returns the names of the exported series with their labels."""
    found: dict[str, set[str]] = {}
    for family in metrics.REGISTRY.collect():
        collector = metrics.REGISTRY._names_to_collectors.get(family.name)
        labels = set(getattr(collector, "_labelnames", ()))
        if isinstance(collector, Histogram):
            found |= {f"{family.name}_{part}": labels | {"le"} for part in ("bucket", "count", "sum")}
        else:
            found[f"{family.name}_total" if family.type == "counter" else family.name] = labels
    return found


def _named(expression: str) -> set[str]:
    return set(re.findall(r"\b((?:footplate|process)_\w+)", expression))


def test_every_metric_of_the_dashboard_is_exported() -> None:
    named = set().union(*map(_named, _expressions()))
    assert len(named) > 15
    assert named - set(_exported()) == set()


def test_every_label_that_the_dashboard_groups_by_exists() -> None:
    exported = _exported()
    for expression in _expressions():
        known = set().union(*(exported[name] for name in _named(expression)))
        grouped = {label.strip() for by in re.findall(r"by \(([^)]*)\)", expression) for label in by.split(",")}
        chosen = set(re.findall(r"(\w+)=\"", expression))
        assert grouped | chosen <= known, expression


def test_every_footplate_metric_is_on_the_dashboard() -> None:
    named = " ".join(_expressions())
    ours = {family.name for family in metrics.REGISTRY.collect() if family.name.startswith("footplate_")}
    assert {name for name in ours if name not in named} == set()
