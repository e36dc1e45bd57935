"""The kinds of calls that a model makes, and how often each ran, counted by its effect and not by its result."""

import asyncio
import fcntl
import os
import struct
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from bench.support.clients import TOOLSET, Client
from bench.support.cluster import Cluster
from bench.support.crash import interrupted_turn
from bench.support.mcp_server.server_process import NAME, McpProcess
from footplate.domain.agents import mcp_servers
from footplate.domain.json import Json, JsonObject
from footplate.domain.sessions import threads
from footplate.testing import Replies, Step, replies, text, tool

HARNESSES: Final = ("native", "claude")
_ASKING: Final = {"type": "always_ask"}
_TOKEN: Final = "token"
_POLL: Final = 0.02


@dataclass(frozen=True, slots=True)
class CallScenario:
    harness: str
    kind: str
    """One of single, parallel, reads, mcp, subagent, question or questions."""

    @property
    def title(self) -> str:
        return f"{self.harness}, {self.kind}"

    @property
    def is_held(self) -> bool:
        """Whether a running process holds the approval."""
        return self.kind == "subagent"


SCENARIOS: Final = (
    *(CallScenario(harness, kind) for kind in ("single", "parallel", "reads", "mcp") for harness in HARNESSES),
    CallScenario("claude", "subagent"),
)


_QUESTION_TOOLS: Final = {"native": "ask_user", "claude": "AskUserQuestion"}
COLOURS: Final = ("Red", "Green (Recommended)")
QUESTION_TEXT: Final = "Which colour?"


def _question(header: str) -> JsonObject:
    """Returns an input that both harnesses accept."""
    options: list[Json] = [{"label": label, "description": "A colour."} for label in COLOURS]
    return {"questions": [{"question": QUESTION_TEXT, "header": header, "options": options}]}


QUESTIONS: Final = {"question": [_question("One")], "questions": [_question("One"), _question("Two")]}
QUESTION_SCENARIOS: Final = tuple(CallScenario(harness, kind) for kind in QUESTIONS for harness in HARNESSES)


def build_scripts(scenario: CallScenario, tag: str) -> dict[str, Replies]:
    """Returns model scripts by name. The first is the one that the session's prompt names."""
    done = [text("Done.")]
    if scenario.kind == "subagent":
        inside = {"description": "Leave a line", "prompt": f"Go. [[script:{tag}-inside]]", "subagent_type": "helper"}
        return {
            tag: replies([tool(threads.SUBAGENT_TOOL, inside)], done),
            f"{tag}-inside": replies([_echo(scenario, "a")], done),
        }
    if scenario.kind in QUESTIONS:
        asked = [tool(_QUESTION_TOOLS[scenario.harness], each) for each in QUESTIONS[scenario.kind]]
        return {tag: replies(asked, [_echo(scenario, "a")], done)}
    if scenario.kind == "mcp":
        return {tag: replies([tool(mcp_servers.model_tool_name(NAME, "note"), {"line": tag})], done)}
    if scenario.kind == "reads":
        return {tag: replies([_bash(scenario, f"head -n 1 {_TOKEN}")], done)}
    return {tag: replies([_echo(scenario, letter) for letter in ("abc" if scenario.kind == "parallel" else "a")], done)}


def _echo(scenario: CallScenario, letter: str) -> Step:
    return _bash(scenario, f"echo {letter} >> lines")


def _bash(scenario: CallScenario, command: str) -> Step:
    return tool("Bash" if scenario.harness == "claude" else "bash", {"command": command})


async def create_agents(client: Client, notes: McpProcess) -> dict[str, str]:
    """Creates one agent for each harness. Every command and every call of the MCP server's tools needs approval."""
    toolset = {**TOOLSET, "configs": [{"name": "bash", "permission_policy": _ASKING}]}
    server = {"type": "mcp_toolset", "mcp_server_name": NAME, "default_config": {"permission_policy": _ASKING}}
    helper = await client.agent(name="helper", tools=[toolset], description="Leaves a line.")
    more: dict[str, dict[str, Any]] = {
        "native": {},
        "claude": {"multiagent": {"type": "coordinator", "agents": [helper]}},
    }
    return {
        harness: await client.agent(
            tools=[toolset, server],
            mcp_servers=notes.agent_fields["mcp_servers"],
            extra_body={"harness": harness},
            **more[harness],
        )
        for harness in HARNESSES
    }


def effect_name(event: dict[str, Any]) -> str:
    """Returns the name of the call's effect."""
    given = event["input"]
    command = str(given.get("command", ""))
    return interrupted_turn.written_line(command) if command.startswith("echo ") else str(given.get("line") or _TOKEN)


def count_effects(cluster: Cluster, notes: McpProcess, session_id: str, name: str, reads: int) -> int:
    """Returns how often the effect happened. `taken`: how often the session read its pipe."""
    if name == _TOKEN:
        return reads
    return [*interrupted_turn.read_lines(cluster, session_id), *notes.read_notes()].count(name)


class ReadCountingPipe:
    """A named pipe that counts reads: each read empties it, is counted, and fills it again."""

    def __init__(self, file: int) -> None:
        self._file = file
        self.reads = 0

    def count_read(self) -> None:
        (unread,) = struct.unpack("i", fcntl.ioctl(self._file, termios.FIONREAD, b"\0\0\0\0"))
        if not unread:
            self.reads += 1
            self._fill()

    def _fill(self) -> None:
        os.write(self._file, b"a token\n")

    @classmethod
    @asynccontextmanager
    async def create(cls, cluster: Cluster, session_id: str) -> AsyncIterator["ReadCountingPipe"]:
        """Creates the pipe in the session's tree, which must exist."""
        path = interrupted_turn.workspace_path(cluster, session_id) / _TOKEN
        os.mkfifo(path)
        path.chmod(0o666)
        file = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        pipe = cls(file)
        pipe._fill()

        async def watch() -> None:
            while True:
                pipe.count_read()
                await asyncio.sleep(_POLL)

        watching = asyncio.create_task(watch())
        try:
            yield pipe
            pipe.count_read()
        finally:
            watching.cancel()
            os.close(file)
