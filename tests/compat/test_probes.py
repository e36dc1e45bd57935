"""Runs each probe with the synchronous and with the asynchronous SDK, against a running cell."""

import pytest
from bench.support.cluster import Cluster
from bench.support.sdk.sdk_client import SDK_KINDS, SdkClient, SdkKind
from tests.compat import probes


@pytest.mark.parametrize("kind", SDK_KINDS)
@pytest.mark.parametrize("name", sorted(probes.load()))
async def test_probe(cluster: Cluster, name: str, kind: SdkKind) -> None:
    async with SdkClient(cluster, kind) as door:
        await probes.load()[name](door)
        assert door.tally.ledger.mismatches == []
