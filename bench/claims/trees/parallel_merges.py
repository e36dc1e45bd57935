"""Sixteen sessions merge into one branch at the same time, some while their process is killed: no commit is lost.

Ten times, each session commits in its tree and leaves a change uncommitted. Every merge reports the branch's commit
before and after it: in the order of the lease these form one chain without a fork. Then a process that holds the lease
is killed before it sets the branch, or after, or is stopped and woken too late.
"""

import asyncio
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from anthropic import APIError

from bench.prove.figure import Figure, require
from bench.support.clients import Client, Event
from bench.support.cluster import Cluster, open_cluster
from bench.support.host_loss.trial import make_git_project
from footplate.testing import replies, text, tool

_SESSIONS: Final = 16
_SESSIONS_QUICK: Final = 4
_BRANCH: Final = "next"
_LEASE: Final = 5.0
_LEASE_QUICK: Final = 3.0
_TIMEOUT_SECONDS: Final = 300.0
_SLACK_SECONDS: Final = 10.0
"""Seconds for the merge itself, on a busy machine."""
_LONG_LEASES: Final = {"FOOTPLATE_LEASE": "30", "FOOTPLATE_HEARTBEAT_TIMEOUT": "60", "FOOTPLATE_SLOTS": "0"}
_WORK: Final = """
set -e
i=$(ls -d made-{n}-* 2>/dev/null | wc -l)
echo $i > made-{n}-$i && git add made-{n}-$i && git commit -qm "commit {n} $i"
echo $i >> loose-{n}
git status --porcelain | wc -l
"""
_FAILURES: Final = (("before_ref", "kill"), ("after_ref", "kill"), ("before_ref", "stop"))
MergeResponse = dict[str, Any]


@dataclass
class MergeFindings:
    faults: list[str] = field(default_factory=list)
    merges: list[MergeResponse] = field(default_factory=list)
    commits: Counter[str] = field(default_factory=Counter)
    """The number of commits of each session."""
    takeover_seconds: list[float] = field(default_factory=list)
    """Seconds from the end of a lease holder to the next merge."""


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    count, rounds, deaths = (_SESSIONS_QUICK, 1, 1) if quick else (_SESSIONS, 10, 5)
    lease = _LEASE_QUICK if quick else _LEASE
    root = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="footplate-projects-"))
    found = MergeFindings()
    try:
        await asyncio.to_thread(make_git_project, root)
        user = root / "app"
        _git(user, "branch", _BRANCH)
        checked_out = _git(user, "rev-parse", "main")
        environment = {**_LONG_LEASES, "FOOTPLATE_PROJECTS_ROOT": str(root), "FOOTPLATE_BRANCH_LEASE": str(lease)}
        async with open_cluster(apis=2, environment=environment) as cluster:
            await _run_sessions(cluster, found, count, rounds, deaths)
        _check_branch(user, found)
        require(holds=_git(user, "rev-parse", "main") == checked_out, otherwise="the user's own branch moved")
        require(holds=not _git(user, "status", "--porcelain"), otherwise="the user's files changed")
    finally:
        await asyncio.to_thread(shutil.rmtree, root)
    for fault in found.faults:
        print(f"  FAULT {fault}", flush=True)
    made = sum(found.commits.values())
    headline = f"{made} commits merged by {count} sessions at once: {len(found.faults)} lost or doubled"
    if max(found.takeover_seconds) > lease + _SLACK_SECONDS:
        headline = (
            f"after a kill, the next merge took {max(found.takeover_seconds):.1f} s (limit "
            f"{lease + _SLACK_SECONDS:.0f})"
        )
    return Figure(
        headline=headline,
        summary=f"{count} sessions at once on one repository, {rounds} rounds: {made} commits in {len(found.merges)} "
        f"merges, one after the other; {len(found.faults)} lost, doubled, out of order or failed by a lock; "
        f"{len(found.takeover_seconds)} lease holders were killed or stopped, and the next merge was done at most "
        f"{max(found.takeover_seconds):.1f} s later (a lease lasts {lease:.0f} s)"
        + (f"; the first fault: {found.faults[0]}" if found.faults else ""),
        holds=not found.faults
        and len(found.merges) >= count * rounds
        and max(found.takeover_seconds) <= lease + _SLACK_SECONDS,
        details={"faults": [*found.faults], "merges": len(found.merges), "freed": [*found.takeover_seconds]},
    )


async def _run_sessions(cluster: Cluster, found: MergeFindings, count: int, rounds: int, deaths: int) -> None:
    for number in range(count):
        script = replies([tool("bash", {"command": _WORK.replace("{n}", f"{number}")})], [text("Done.")])
        await cluster.model.install(f"work-{number}", script)
    async with Client(cluster) as one, Client(cluster, api=1) as other:
        made: Any = await one.sdk.post("/v1/projects", body={"path": "app"}, cast_to=dict[str, Any])
        agent = await one.agent()
        await one.environment()
        sessions = [await one.session(agent, extra_body={"project_ids": [made["id"]]}) for _ in range(count)]

        async def turn(number: int) -> None:
            received = await one.run_turn(sessions[number], f"[[script:work-{number}]]", patience=_TIMEOUT_SECONDS)
            found.faults += _find_git_failures(received)
            found.commits[f"{number}"] += 1

        async def turn_and_merge(number: int) -> None:
            await turn(number)
            found.merges.append(await _merge((one, other)[number % 2], sessions[number]))

        for _ in range(rounds):
            await asyncio.gather(*(turn_and_merge(number) for number in range(count)))
        for death in range(deaths * len(_FAILURES)):
            pair = death % count, (death + 1) % count
            await asyncio.gather(*(turn(number) for number in pair))
            point, action = _FAILURES[death % len(_FAILURES)]
            await _fail_lease_holder(cluster, found, (one, other), [sessions[number] for number in pair], point, action)


async def _fail_lease_holder(
    cluster: Cluster, found: MergeFindings, clients: tuple[Client, Client], sessions: list[str], point: str, action: str
) -> None:
    """Kills or stops the first API process while it holds the branch's lease; the second merges meanwhile."""
    one, other = clients
    armed = cluster.failpoints / point
    (cluster.failpoints / f"{point}.hit").unlink(missing_ok=True)
    armed.write_text(action)
    first = asyncio.create_task(_merge(one, sessions[0]))
    while armed.exists():  # noqa: ASYNC110 - another process removes it
        await asyncio.sleep(0.02)
    ended = time.monotonic()
    following = await _merge(other, sessions[1])
    found.takeover_seconds.append(time.monotonic() - ended)
    if action == "stop":
        await cluster.kill_api(0, signal.SIGCONT)
    else:
        await cluster.restart_api(0)
    responses = [following]
    try:
        responses.append(await first)
    except APIError:  # its server was gone for too long: the client has to retry
        responses.append(await _merge(one, sessions[0]))
    if (again := await _merge(one, sessions[0]))["status"] != "unchanged":
        found.faults.append(f"a merge was done twice after {action} at {point}: {again}")
    found.merges += responses


async def _merge(client: Client, session_id: str) -> MergeResponse:
    response: Any = await client.sdk.post(
        f"/v1/sessions/{session_id}/merge", body={"into": _BRANCH, "wait_seconds": 300}, cast_to=dict[str, Any]
    )
    return dict(response)


def _find_git_failures(received: list[Event]) -> list[str]:
    results = [event for event in received if event["type"] == "agent.tool_result"]
    outputs = ["".join(block.get("text", "") for block in event["content"]) for event in results]
    if len(outputs) == 1 and outputs[0].split()[:1] == ["1"] and not results[0].get("is_error"):
        return []
    return [f"the agent's git failed: {outputs}"]


def _check_branch(user: Path, found: MergeFindings) -> None:
    """Checks that the branch has each commit once, and that the merges form one chain."""
    subjects = Counter(_git(user, "log", "--format=%s", _BRANCH).splitlines())
    for number, count in found.commits.items():
        for index in range(count):
            if subjects[f"commit {number} {index}"] != 1:
                times = subjects[f"commit {number} {index}"]
                found.faults.append(f"commit {index} of session {number} is in the branch {times} times")
        loose = _git(user, "show", f"{_BRANCH}:loose-{number}").split()
        if loose != [f"{place}" for place in range(count)]:
            found.faults.append(f"the uncommitted file of session {number} is {loose}")
    found.faults += _find_disorder(_git(user, "rev-list", "--first-parent", _BRANCH).split(), found.merges)


def _find_disorder(first_parents: list[str], merges: list[MergeResponse]) -> list[str]:
    """Returns the merges that are not in the branch, and those whose ranges of commits overlap."""
    positions = {commit: number for number, commit in enumerate(reversed(first_parents))}
    done = [(merge["before"], merge["commit"]) for merge in merges if merge["status"] != "unchanged"]
    lost = [f"a merge to {after} is not in the branch" for before, after in done if not {before, after} <= {*positions}]
    pieces = sorted((positions[before], positions[after]) for before, after in done if {before, after} <= {*positions})
    overlaps = [f"merges overlap at {later}" for (_, end), (later, _) in pairwise(pieces) if later < end]
    return lost + overlaps


def _git(at: Path, *argv: str) -> str:
    done = subprocess.run(["git", "-C", str(at), *argv], check=True, capture_output=True, text=True)
    return done.stdout.strip()
