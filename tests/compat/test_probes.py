"""Runs each probe with the official SDK, against a running cell.

Every second probe uses the synchronous client, the others the asynchronous one. `just prove door-1` runs all with both.
"""

import itertools

import pytest
from bench.support.cluster import Cluster
from bench.support.sdk.sdk_client import SDK_KINDS, SdkClient, SdkKind
from tests.compat import probes


@pytest.mark.parametrize(("name", "kind"), zip(sorted(probes.load()), itertools.cycle(SDK_KINDS), strict=False))
async def test_probe(cluster: Cluster, name: str, kind: SdkKind) -> None:
    async with SdkClient(cluster, kind) as door:
        await probes.load()[name](door)
        assert door.tally.ledger.mismatches == []
