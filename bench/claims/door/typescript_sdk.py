"""The official TypeScript SDK works unmodified: the quickstart, a custom tool, an interrupt, lists to their end.

The stories are in `sdk/typescript/stories.mts`; node runs them as they stand. What its streams and answers held comes
back as JSON and is held strictly against the Python SDK's models, which are the same.
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


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every proof has this shape
    directory = await npm.installed()
    sdk = json.loads((npm.SOURCE / "package.json").read_text())["dependencies"]["@anthropic-ai/sdk"]
    found = json.loads((directory / "node_modules/@anthropic-ai/sdk/package.json").read_text())["version"]
    require(holds=found == sdk, otherwise=f"npm installed {found}, not {sdk}")
    rounds = 1 if quick else _ROUNDS
    ledger = Ledger()
    told = 0
    async with open_cluster() as cluster:
        await quickstart.install(cluster)
        # Beside node_modules, where node looks for what a module imports.
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
    return Figure(
        text=f"@anthropic-ai/sdk {found}: {told} of {wanted} stories told ({', '.join(_STORIES)}), "
        f"{ledger.validated} events and {ledger.resources.total()} answers validated strictly, "
        f"{len(ledger.mismatches)} mismatches",
        holds=told == wanted and ledger.validated > 0 and not ledger.mismatches,
        details={"events": {**ledger.events}, "resources": {**ledger.resources}, "rounds": rounds},
    )


def _checked(output: str, ledger: Ledger) -> int:
    """Hold what node received against the models; how many stories it told."""
    told = 0
    for line in output.splitlines():
        kind, value = json.loads(line)
        if kind == "event":
            event: dict[str, Any] = value
            ledger.check_frame(Frame("", event), event["type"])
        elif kind == "resource":
            ledger.check_body(value)
        else:
            require(holds=value in _STORIES, otherwise=f"nobody knows the story {value!r}")
            told += 1
    return told
