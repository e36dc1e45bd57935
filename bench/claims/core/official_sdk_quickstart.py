"""The official Python SDK works unmodified: agents, environments, sessions, streams, custom tools and interrupts.

The scenarios are in `bench.support.quickstart_scenarios`. At full size many sessions run them at the same time.
Everything that the server sends, in streams and responses, is strictly validated with the SDK's own models; one
mismatch fails the claim.
"""

import asyncio
from importlib.metadata import version
from typing import Final

from bench.prove.figure import Figure
from bench.support import quickstart_scenarios
from bench.support.clients import Client
from bench.support.cluster import open_cluster
from bench.support.response_validation import ValidationLedger

_ROUNDS: Final = 20
_AT_ONCE: Final = 4
_SDK: Final = "2.8.0"


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    rounds = 1 if quick else _ROUNDS
    ledger = ValidationLedger()
    async with open_cluster(workers=1 if quick else 2) as cluster:
        await quickstart_scenarios.install_scripts(cluster)
        limit = asyncio.Semaphore(len(quickstart_scenarios.SCENARIOS) if quick else _AT_ONCE)

        async def run_scenario(scenario: quickstart_scenarios.Scenario) -> None:
            async with limit, Client(cluster, ledger=ledger) as client:
                await scenario(client)

        async with asyncio.TaskGroup() as group:
            for story in [*quickstart_scenarios.SCENARIOS] * rounds:
                group.create_task(run_scenario(story))
    passed = rounds * len(quickstart_scenarios.SCENARIOS)
    sdk = version("anthropic")
    figures = (
        f"{passed} of {passed} scenarios passed, {ledger.validated:,} events validated, "
        f"{len(ledger.mismatches)} mismatches"
    )
    return Figure(
        headline=figures if sdk == _SDK else f"the SDK is version {sdk}, not {_SDK}",
        summary=f"anthropic {sdk}: {figures}",
        holds=sdk == _SDK and ledger.validated > 0 and not ledger.mismatches,
        details={"events": {**ledger.events}, "resources": {**ledger.resources}, "rounds": rounds},
    )
