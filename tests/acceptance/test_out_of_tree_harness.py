"""A separate package adds a harness to Footplate."""

from pathlib import Path

import pytest
from bench.support import external_harness
from bench.support.cluster import open_cluster
from bench.support.response_validation import ValidationLedger

from footplate.harness import registry
from footplate.stack import Stack


@pytest.mark.requirement("S1")
async def test_a_harness_of_another_package_runs_turns(stack: Stack, tmp_path: Path) -> None:
    target = tmp_path / "installed"
    await external_harness.install_package(target)
    assert external_harness.HARNESS not in registry.installed_harnesses()
    ledger = ValidationLedger()
    async with open_cluster(stack=stack, environment=external_harness.path_variables(target)) as cluster:
        await external_harness.run_turns(cluster, ledger)
    assert ledger.events["agent.message"] == 3
