"""Existing Claude Code settings files have the same effect as in Claude Code or a stricter one, never a looser one.

First the real CLI makes the calls in a repository that has the file; then sessions of both harnesses make the same
calls in the same repository with the imported file. The effects of the calls are compared, not their messages.
"""

import asyncio
import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

from bench.prove.figure import Figure
from bench.support import environment_backends
from bench.support.claude_settings import claude_cli, footplate_session
from bench.support.claude_settings.settings_cases import SettingsCase, create_repository, load_cases
from bench.support.clients import Client
from bench.support.cluster import Cluster, open_cluster
from bench.support.mcp_server.server_process import McpProcess
from footplate.domain.json import Json
from footplate.domain.policy.permissions import PermissionOutcome, stricter

_QUICK: Final = ("ask_list", "hooks_that_refuse")
_MIN_FILES: Final = 6
_SETTINGS: Final = {"FOOTPLATE_MCP_ALLOW": "127.0.0.1"}
STRICTER_REASONS: Final = {
    "wrappers": "a program that runs another requires approval unless the rule names both; Claude Code unwraps some",
    "options": "an option that writes or runs is not covered by a rule for the program",
    "hidden": "a deny rule also matches commands inside a shell, xargs or a variable, or asks if they are unknown",
    "reading": "a rule that asks about reading a file also applies to commands that read it",
    "failing": "a hook that fails, or prints invalid output, denies the call",
    "modes": "`defaultMode` is not imported: a call that no rule allows requires approval",
    "directories": "`additionalDirectories` is not imported: directories belong to a session's workspace",
    "searching": "a search that could show a forbidden file is refused as a whole, not only without that file",
}
"""Every way in which Footplate is stricter. Calls name theirs; a stricter call without one of these is a fault."""


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    start = time.monotonic()
    chosen = [shape for shape in load_cases() if not quick or shape.name in _QUICK]
    root = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="footplate-projects-"))
    faults: list[str] = []
    count: Counter[str] = Counter()
    made: Counter[str] = Counter()
    try:
        async with (
            environment_backends.backend_settings(environment_backends.default_backend()) as settings,
            open_cluster(environment={**_SETTINGS, **settings, "FOOTPLATE_PROJECTS_ROOT": str(root)}) as cluster,
            Client(cluster) as client,
            McpProcess(root / "notes") as mcp,
        ):
            for shape in chosen:
                trial = _Trial(cluster, client, mcp, root, shape)
                faults += await trial.run(count, made)
    finally:
        await asyncio.to_thread(shutil.rmtree, root)
    print(f"  {time.monotonic() - start:.0f} s", flush=True)
    for fault in faults:
        print(f"  FAULT {fault}", flush=True)
    return _figure(chosen, faults, count, made, enough=quick or len(chosen) >= _MIN_FILES)


class _Trial:
    def __init__(self, cluster: Cluster, client: Client, mcp: McpProcess, root: Path, shape: SettingsCase) -> None:
        self._cluster = cluster
        self._client = client
        self._mcp = mcp
        self._root = root
        self._shape = shape

    async def run(self, count: Counter[str], made: Counter[str]) -> list[str]:
        shape = self._shape
        path = f"{shape.name}/app"
        one = await asyncio.to_thread(create_repository, self._root / path, shape)
        body = {"path": path, "name": shape.name.replace("_", "-")}
        project: Any = await self._client.sdk.post("/v1/projects", body=body, cast_to=dict[str, Any])
        cli_outcomes = await claude_cli.make_calls(self._cluster.model, shape, one, self._mcp.url)
        faults: list[str] = []
        for harness in footplate_session.HARNESSES:
            try:
                found = await footplate_session.make_calls(
                    self._cluster, self._client, shape, harness, project["id"], self._mcp
                )
            except AssertionError as error:
                faults.append(f"{shape.name}, {harness}: {error}")
                continue
            made[harness] += len(found)
            for call, (cli_outcome, _), (footplate_outcome, why) in zip(shape.calls, cli_outcomes, found, strict=True):
                kind, fault = _compare_outcomes(cli_outcome, footplate_outcome, call.stricter)
                count[kind] += 1
                if fault:
                    faults.append(
                        f"{shape.name}, {harness}: {call.title}: {fault} ({cli_outcome}, here "
                        f"{footplate_outcome}: {why[:200]})"
                    )
        return faults


def _compare_outcomes(
    cli_outcome: PermissionOutcome, footplate_outcome: PermissionOutcome, reason: str
) -> tuple[str, str]:
    """Returns how the outcomes compare, and the fault if there is one."""
    if cli_outcome is footplate_outcome:
        return "same", f"is the same, although {reason!r} expects it to be stricter" if reason else ""
    if stricter(cli_outcome, footplate_outcome) is cli_outcome:
        return "looser", "LOOSER"
    return "stricter", "" if reason in STRICTER_REASONS else "stricter without a documented reason"


def _figure(
    chosen: list[SettingsCase], faults: list[str], count: Counter[str], made: Counter[str], *, enough: bool
) -> Figure:
    reasons = sorted({call.stricter for shape in chosen for call in shape.calls if call.stricter})
    calls = sum(made.values())
    headline = (
        f"{calls} calls compared with the CLI: {count['same']} the same, {count['stricter']} stricter, "
        f"{count['looser']} looser"
    )
    summary = (
        f"{len(chosen)} settings files of different shapes, {calls} calls in `native` and `claude` compared with the "
        f"CLI itself: {count['same']} the same, {count['stricter']} stricter for {len(reasons)} documented reasons, "
        f"{count['looser']} looser"
    )
    if faults:
        summary = f"{len(faults)} faults, the first: {faults[0]}"
        headline += f"; {len(faults)} faults"
    details: dict[str, Json] = {
        "harnesses": dict(made),
        "shapes": [shape.name for shape in chosen],
        "stricter because": {name: STRICTER_REASONS[name] for name in reasons if name in STRICTER_REASONS},
        "faults": [*faults],
    }
    complete = made["native"] == made["claude"] == sum(len(shape.calls) for shape in chosen)
    if not (complete and enough):
        headline = f"only {calls} calls in {len(chosen)} settings files were compared"
    return Figure(headline=headline, summary=summary, holds=not faults and complete and enough, details=details)
