"""Returns the series that processes export, and finds those that an expression of Prometheus names."""

import re

from prometheus_client import Histogram

from footplate.telemetry import metrics


def exported_series() -> dict[str, set[str]]:
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


def named_series(expression: str) -> set[str]:
    return set(re.findall(r"\b((?:footplate|process)_\w+)", expression))


def named_labels(expression: str) -> set[str]:
    """Returns the labels that the expression groups by or selects."""
    grouped = {label.strip() for by in re.findall(r"by \(([^)]*)\)", expression) for label in by.split(",")}
    return grouped | set(re.findall(r"(\w+)=~?\"", expression))
