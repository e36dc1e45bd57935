"""A separate package adds a harness to Footplate."""

from pathlib import Path

import pytest
from bench.support import out_of_tree
from bench.support.checking import ValidationLedger
from bench.support.cluster import open_cluster

from footplate.harness import registry
from footplate.stack import Stack


@pytest.mark.requirement("S1")
async def test_a_harness_of_another_package_runs_turns(stack: Stack, tmp_path: Path) -> None:
    target = tmp_path / "installed"
    await out_of_tree.install_package(target)
    assert out_of_tree.HARNESS not in registry.installed_harnesses()
    ledger = ValidationLedger()
    async with open_cluster(stack=stack, environment=out_of_tree.path_variables(target)) as cluster:
        await out_of_tree.run_turns(cluster, ledger)
    assert ledger.events["agent.message"] == 3
