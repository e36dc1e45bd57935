"""A hundred sessions do not change the user's repository, although each agent commits, branches, stashes and rebases.

The repository has what is easily changed by mistake: uncommitted and staged changes, a stash, a linked worktree, its
own hooks and filters. Each file in it is compared by content, mode and time.
"""

import asyncio
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from bench.prove.figure import Figure, require
from bench.support import environment_backends
from bench.support.clients import Client, Event
from bench.support.cluster import Cluster, open_cluster
from footplate.testing import replies, text, tool
from footplate.testing.docker_image import DEFAULT_PROGRAMS

_SESSIONS: Final = 100
_SESSIONS_QUICK: Final = 4
_CONCURRENT_SESSIONS: Final = 4
_WORK: Final = """
set -e
git status --porcelain | wc -l
echo two >> file && git commit -qam second
git switch -q -c topic HEAD~1 && echo new > new && git add new && git commit -qm third
echo dirty >> other && git stash -q && git stash list | wc -l && git stash pop -q && git checkout -q other
git rebase -q main
git log --format=%s | tr '\\n' ' '
"""
_EXPECTED_LINES: Final = ["0", "1", "third second first"]
_LONG_LEASES: Final = {"FOOTPLATE_LEASE": "30", "FOOTPLATE_HEARTBEAT_TIMEOUT": "60"}
"""Long, so that no worker loses its lease however busy the machine is: other claims cover that."""
Fingerprint = dict[str, tuple[int, int, str]]


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    names = [environment_backends.default_backend()] if quick else environment_backends.available_backends()
    each = -(-(_SESSIONS_QUICK if quick else _SESSIONS) // len(names))
    root = await asyncio.to_thread(tempfile.mkdtemp, prefix="footplate-projects-")
    try:
        user = await asyncio.to_thread(_make_user_repository, Path(root, "app"))
        before = await asyncio.to_thread(_fingerprint, Path(root))
        for backend in names:
            async with (
                _backend_settings(backend) as settings,
                open_cluster(environment={**settings, **_LONG_LEASES, "FOOTPLATE_PROJECTS_ROOT": root}) as cluster,
            ):
                await _run_sessions(cluster, each)
        after = await asyncio.to_thread(_fingerprint, Path(root))
        changed = sorted(path for path in before | after if before.get(path) != after.get(path))
        stashes = await asyncio.to_thread(_git, user, "stash", "list")
    finally:
        await asyncio.to_thread(shutil.rmtree, root)
    require(holds=stashes.count("\n") == 0 and "stash@{0}" in stashes, otherwise=f"the user's stash: {stashes}")
    count = each * len(names)
    return Figure(
        headline=f"{count} sessions on one repository: {len(changed)} of the user's {len(before)} files changed",
        summary=f"{count} sessions on one repository ({' and '.join(names)}): in each the agent committed, branched, "
        f"stashed and rebased; of the user's {len(before)} files and directories, including .git, worktree and stash, "
        f"{len(changed)} changed",
        holds=not changed,
        details={"sessions": count, "files": len(before), "changed": [*changed]},
    )


@asynccontextmanager
async def _backend_settings(backend: str) -> AsyncIterator[dict[str, str]]:
    """Yields the settings of a backend; docker gets an image that has git."""
    if backend != "docker":
        yield {"FOOTPLATE_ENVIRONMENT": backend}
        return
    async with environment_backends.docker_engine([*DEFAULT_PROGRAMS, "git"]) as address:
        yield {
            "FOOTPLATE_ENVIRONMENT": backend,
            "FOOTPLATE_DOCKER_HOST": address,
            "FOOTPLATE_DOCKER_IMAGE": environment_backends.IMAGE,
        }


async def _run_sessions(cluster: Cluster, count: int) -> None:
    await cluster.model.install("work", replies([tool("bash", {"command": _WORK})], [text("Done.")]))
    limit = asyncio.Semaphore(_CONCURRENT_SESSIONS)
    async with Client(cluster) as client:
        made = await client.sdk.post("/v1/projects", body={"path": "app"}, cast_to=dict[str, Any])
        agent = await client.agent()
        await client.environment()

        async def one() -> None:
            async with limit:
                session_id = await client.session(agent, extra_body={"project_ids": [made["id"]]})
                _check_output(await client.run_turn(session_id, "[[script:work]]", patience=120))

        await asyncio.gather(*(one() for _ in range(count)))


def _check_output(received: list[Event]) -> None:
    results = [event for event in received if event["type"] == "agent.tool_result"]
    require(holds=len(results) == 1, otherwise=f"no result of the agent's work: {received[-2:]}")
    output = "".join(block.get("text", "") for block in results[0]["content"])
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    require(holds=lines == _EXPECTED_LINES, otherwise=f"the agent's commands failed: {output!r}")


def _make_user_repository(at: Path) -> Path:
    at.mkdir()
    _git(at, "init", "-q", "-b", "main")
    (at / "file").write_text("one\n")
    (at / "other").write_text("x\n")
    _git(at, "add", "-A")
    _git(at, "commit", "-qm", "first")
    _git(at, "branch", "side")
    _git(at, "tag", "-a", "v1", "-m", "v1")
    (at / "file").write_text("stashed\n")
    _git(at, "stash")
    _git(at, "worktree", "add", "-q", str(at.parent / "linked"), "side")
    hook = at / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {at}/hook-ran\n")
    hook.chmod(0o755)
    _git(at, "config", "core.fsmonitor", "true")
    (at / "file").write_text("not committed\n")
    (at / "other").write_text("staged\n")
    _git(at, "-c", "core.fsmonitor=false", "add", "other")
    (at / "untracked").write_text("mine\n")
    return at


def _git(at: Path, *argv: str) -> str:
    identity = ["-c", "user.name=User", "-c", "user.email=user@example.com"]
    command = ["git", "-C", str(at), *identity, *argv]
    environment = {"PATH": os.environ["PATH"], "HOME": str(at.parent), "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.strip()


def _fingerprint(root: Path) -> Fingerprint:
    found: Fingerprint = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        relative_path = str(path.relative_to(root))
        found[relative_path] = (status.st_mode, status.st_mtime_ns, hashlib.sha256(content).hexdigest())
    return found
