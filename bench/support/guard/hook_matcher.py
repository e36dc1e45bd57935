"""The matcher of one member's hook blocks the worker, so that another organisation's turn waits."""

import asyncio
import time

from anthropic import BadRequestError

from bench.support.clients import Client
from bench.support.cluster import open_cluster
from footplate.testing import replies, text, tool

_MATCHER = "(.?.?.?.?.?){24}!"
_TOO_LONG = 5.0


async def attack() -> str | None:
    async with open_cluster() as cluster:
        await cluster.model.install("call", replies([tool("bash", {"command": "true"})], [text("Done.")]))
        async with Client(cluster) as victim, Client(cluster, key=await cluster.create_key("attackers")) as attacker:
            hook = {"type": "command", "command": "true"}
            hooks = {"PreToolUse": [{"matcher": _MATCHER, "hooks": [hook]}]}
            try:
                agent = await attacker.agent(extra_body={"permissions": {"hooks": hooks}})
            except BadRequestError:
                return None
            theirs, ours = await attacker.session(agent), await victim.session()
            await victim.run_turn(ours, "Hello")
            await attacker.send_text(theirs, "[[script:call]]")
            await asyncio.sleep(1)
            began = time.monotonic()
            try:
                await victim.run_turn(ours, "Hello again", patience=_TOO_LONG)
            except TimeoutError:
                seconds = time.monotonic() - began
                return f"another organisation's turn did not end within {seconds:.0f} s"
            return None
