"""The official TypeScript SDK works unmodified: the quickstart, custom tools, interrupts, pagination and errors.

The scenarios are in `sdk/typescript/scenarios.mts`; node runs the file as it is. The events and responses that it
received come back as JSON and are strictly validated with the Python SDK's models, which are the same.
"""

import json
from typing import Any, Final

from bench.prove.figure import Figure, require
from bench.support import quickstart_scenarios
from bench.support.cluster import open_cluster
from bench.support.response_validation import Frame, ValidationLedger
from bench.support.sdk import npm

_ROUNDS: Final = 5
_SCENARIOS: Final = ("quickstart", "customTool", "toolRunner", "interrupt", "pagination", "errors")
_TIMEOUT_SECONDS: Final = 120


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    directory = await npm.install_sdk()
    sdk = json.loads((npm.SOURCE / "package.json").read_text())["dependencies"]["@anthropic-ai/sdk"]
    found = json.loads((directory / "node_modules/@anthropic-ai/sdk/package.json").read_text())["version"]
    require(holds=found == sdk, otherwise=f"npm installed {found}, not {sdk}")
    rounds = 1 if quick else _ROUNDS
    ledger = ValidationLedger()
    passed = 0
    async with open_cluster() as cluster:
        await quickstart_scenarios.install_scripts(cluster)
        # Next to node_modules, where node resolves imports.
        script = directory / f"scenarios-{cluster.id}.mts"
        script.write_bytes((npm.SOURCE / "scenarios.mts").read_bytes())
        try:
            for _ in range(rounds):
                output = await npm.run_program(
                    npm.node(),
                    script.name,
                    cluster.base_urls[0],
                    cluster.key,
                    directory=directory,
                    environment={"PATH": "/usr/bin:/bin", "HOME": str(cluster.directory), "TZ": "UTC"},
                    seconds=_TIMEOUT_SECONDS,
                )
                passed += _validate_output(output, ledger)
        finally:
            script.unlink()
    wanted = rounds * len(_SCENARIOS)
    mismatches = len(ledger.mismatches)
    return Figure(
        headline=f"{passed} of {wanted} scenarios passed, {ledger.validated:,} events validated, "
        f"{mismatches} mismatches",
        summary=f"@anthropic-ai/sdk {found}: {passed} of {wanted} scenarios passed ({', '.join(_SCENARIOS)}), "
        f"{ledger.validated} events and {ledger.resources.total()} responses strictly validated, "
        f"{mismatches} mismatches",
        holds=passed == wanted and ledger.validated > 0 and not ledger.mismatches,
        details={"events": {**ledger.events}, "resources": {**ledger.resources}, "rounds": rounds},
    )


def _validate_output(output: str, ledger: ValidationLedger) -> int:
    """Validates the events and responses that node received; returns the number of finished scenarios."""
    passed = 0
    for line in output.splitlines():
        kind, value = json.loads(line)
        if kind == "event":
            event: dict[str, Any] = value
            ledger.check_frame(Frame("", event), event["type"])
        elif kind == "resource":
            ledger.check_body(value)
        else:
            require(holds=value in _SCENARIOS, otherwise=f"there is no scenario {value!r}")
            passed += 1
    return passed
