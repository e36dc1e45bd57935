"""The official TypeScript SDK works unmodified: the quickstart, custom tools, interrupts, pagination and errors.

The scenarios are in `sdk/typescript/stories.mts`; node runs the file as it is. The events and responses that it
received come back as JSON and are strictly validated with the Python SDK's models, which are the same.
"""

import json
from typing import Any, Final

from bench.prove.figure import Figure, require
from bench.support import quickstart
from bench.support.checking import Frame, Ledger
from bench.support.cluster import open_cluster
from bench.support.sdk import npm

_ROUNDS: Final = 5
_STORIES: Final = ("quickstart", "customTool", "toolRunner", "interrupt", "pagination", "errors")
_SECONDS: Final = 120


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    directory = await npm.installed()
    sdk = json.loads((npm.SOURCE / "package.json").read_text())["dependencies"]["@anthropic-ai/sdk"]
    found = json.loads((directory / "node_modules/@anthropic-ai/sdk/package.json").read_text())["version"]
    require(holds=found == sdk, otherwise=f"npm installed {found}, not {sdk}")
    rounds = 1 if quick else _ROUNDS
    ledger = Ledger()
    told = 0
    async with open_cluster() as cluster:
        await quickstart.install(cluster)
        # Next to node_modules, where node resolves imports.
        story = directory / f"stories-{cluster.id}.mts"
        story.write_bytes((npm.SOURCE / "stories.mts").read_bytes())
        try:
            for _ in range(rounds):
                output = await npm.run(
                    npm.node(),
                    story.name,
                    cluster.base_urls[0],
                    cluster.key,
                    directory=directory,
                    environment={"PATH": "/usr/bin:/bin", "HOME": str(cluster.directory), "TZ": "UTC"},
                    seconds=_SECONDS,
                )
                told += _checked(output, ledger)
        finally:
            story.unlink()
    wanted = rounds * len(_STORIES)
    mismatches = len(ledger.mismatches)
    return Figure(
        headline=f"{told} of {wanted} scenarios passed, {ledger.validated:,} events validated, {mismatches} mismatches",
        summary=f"@anthropic-ai/sdk {found}: {told} of {wanted} scenarios passed ({', '.join(_STORIES)}), "
        f"{ledger.validated} events and {ledger.resources.total()} responses strictly validated, "
        f"{mismatches} mismatches",
        holds=told == wanted and ledger.validated > 0 and not ledger.mismatches,
        details={"events": {**ledger.events}, "resources": {**ledger.resources}, "rounds": rounds},
    )


def _checked(output: str, ledger: Ledger) -> int:
    """Validates the events and responses that node received; returns the number of finished scenarios."""
    told = 0
    for line in output.splitlines():
        kind, value = json.loads(line)
        if kind == "event":
            event: dict[str, Any] = value
            ledger.check_frame(Frame("", event), event["type"])
        elif kind == "resource":
            ledger.check_body(value)
        else:
            require(holds=value in _STORIES, otherwise=f"there is no scenario {value!r}")
            told += 1
    return told
