"""Probes, one module per resource. The name of a probe says what it shows."""

import importlib
import pkgutil

from bench.support.cluster import Cluster
from tests.compat.probes.scripts import SCRIPTS
from tests.compat.registry import PROBES, Probe


def load() -> dict[str, Probe]:
    """Returns all probes by name."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return PROBES


async def install(cluster: Cluster) -> None:
    """Installs the scripted model replies of the probes."""
    for name, script in SCRIPTS.items():
        await cluster.model.install(name, script)
