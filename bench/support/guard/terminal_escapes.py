"""Names and files that an agent chose write escape sequences to the terminal of the user who views them."""

import asyncio
import os
import pty
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.support.clients import Client
from bench.support.cluster import Cluster, open_cluster
from footplate.testing import replies, text, tool

EVIL = "\x1b]0;EVIL\x07"
WRITE = "printf 'content \\033]0;EVIL\\007\\n' > \"$(printf 'name\\033]0;EVIL\\007')\""


async def attack() -> str | None:
    with tempfile.TemporaryDirectory() as root:
        repository = Path(root, "project")
        await asyncio.to_thread(make_repository, repository)
        async with open_cluster(environment={"FOOTPLATE_PROJECTS_ROOT": root}) as cluster, Client(cluster) as client:
            await cluster.model.install("evil", replies([tool("bash", {"command": WRITE})], [text(f"Said {EVIL}")]))
            made = await client.http.post(
                f"{cluster.base_urls[0]}/v1/projects",
                headers={"x-api-key": cluster.key},
                json={"path": str(repository)},
            )
            agent = await client.agent(name=f"agent {EVIL}", extra_body={"harness": "native"})
            session_id = await client.session(agent, extra_body={"project_ids": [made.json()["id"]]})
            await client.run_turn(session_id, "Go. [[script:evil]]")
            commands = {
                "agents ls": ["agents", "ls"],
                "diff --stat": ["diff", "--stat", session_id],
                "diff": ["diff", session_id],
            }
            shown = {name: await asyncio.to_thread(show, cluster, command) for name, command in commands.items()}
    reached = [name for name, screen in shown.items() if "\x1b]0;EVIL" in screen]
    return f"An escape sequence reached the terminal through {', '.join(reached)}." if reached else None


def make_repository(at: Path) -> None:
    at.mkdir()
    at.joinpath("file").write_text("one\n")
    settings = ["-c", "user.name=User", "-c", "user.email=user@example.com"]
    for arguments in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run(["git", *settings, *arguments], cwd=at, check=True)


def show(cluster: Cluster, arguments: list[str]) -> str:
    """Returns everything that a command writes to a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "footplate", *arguments],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(cluster.directory),
            "LANG": "C.UTF-8",
            "TERM": "xterm",
            "FOOTPLATE_BASE_URL": cluster.base_urls[0],
            "FOOTPLATE_API_KEY": cluster.key,
        },
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 65536):
            shown += piece
    except OSError:  # the program has ended
        pass
    process.wait(30)
    os.close(ours)
    return shown.decode()
