"""LangGraph's development server as a peer: `langgraph dev` with LangChain's agent and one tool that runs bash."""

import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import httpx2
import orjson

from bench.compare.installation import install_python
from bench.compare.peer import MODEL, CallRecord, PeerServer, call_bash, read_events
from bench.prove.figure import NotHeld
from footplate.stack.free_ports import LOOPBACK
from footplate.testing.reply_steps import Tool

_VERSION: Final = "0.4.40"
_LIBRARY: Final = "1.2.22"
_PACKAGES: Final = (f"langgraph=={_LIBRARY}", "langgraph-api==0.16.7", "langchain==1.4.7", "langchain-anthropic==1.7.7")
_JOBS: Final = 10
"""The number of concurrent runs. The measurement needs eight."""
_AGENT: Final = '''
import asyncio
import os

from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.tools import tool


@tool
async def bash(command: str, description: str = "") -> str:
    """Runs a shell command."""
    process = await asyncio.create_subprocess_exec(
        "bash", "-c", command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    return output.decode()


model = ChatAnthropic(model=os.environ["MODEL"], base_url=os.environ["MODEL_URL"], api_key="scripted")
graph = create_agent(model, [bash])
'''


class LangGraph(PeerServer):
    version = f"{_VERSION} (langgraph {_LIBRARY})"

    def __init__(self) -> None:
        super().__init__("langgraph dev", "/ok")
        self._bin = Path()

    async def install(self) -> None:
        self._bin = await install_python("langgraph", f"langgraph-cli[inmem]=={_VERSION}", *_PACKAGES)

    @property
    def program(self) -> Path:
        return self._bin / "langgraph"

    def arguments(self) -> Sequence[str]:
        options = ["--no-browser", "--no-reload", "--n-jobs-per-worker", str(_JOBS)]
        return ["dev", *options, "--host", LOOPBACK, "--port", str(self.port)]

    def environment(self) -> Mapping[str, str]:
        return {
            **super().environment(),
            "LANGGRAPH_CLI_NO_ANALYTICS": "1",
            "LANGSMITH_TRACING": "false",
            "LOG_LEVEL": "WARNING",
            "MODEL": MODEL,
            "MODEL_URL": self.model.url,
        }

    def write_configuration(self) -> None:
        (self.directory / "agent.py").write_text(_AGENT)
        configuration = {"dependencies": ["."], "graphs": {"agent": "./agent.py:graph"}}
        (self.directory / "langgraph.json").write_bytes(orjson.dumps(configuration))

    def call_shell(self, command: str) -> Tool:
        return call_bash(command)

    async def create_session(self) -> str:
        return str((await self.post("/threads", {}))["thread_id"])

    async def run_turn(self, session: str, prompt: str) -> float:
        first: float | None = None
        body = {**_run(prompt), "stream_mode": ["messages-tuple"]}
        sent = time.monotonic()
        async with self.client.stream("POST", f"/threads/{session}/runs/stream", json=body) as response:
            async for event, data in read_events(response):
                if event == "error":
                    raise NotHeld(f"langgraph: {data}")
                if event == "messages" and first is None and _has_text(data[0]):
                    first = time.monotonic() - sent
        if first is None:
            raise NotHeld("langgraph: a turn without text")
        return first

    async def send_message(self, session: str, prompt: str) -> None:
        await self.post(f"/threads/{session}/runs", _run(prompt))

    async def describe_call(self, session: str) -> CallRecord:
        try:
            thread = await self.get(f"/threads/{session}")
            state = await self.get(f"/threads/{session}/state")
        except httpx2.HTTPStatusError as error:
            if error.response.status_code != HTTPStatus.NOT_FOUND:
                raise
            return CallRecord("lost", "the thread is gone")
        messages = (state["values"] or {}).get("messages") or []
        if not any(message.get("tool_calls") for message in messages):
            return CallRecord("lost", f"the thread is `{thread['status']}` and has no call")
        if messages[-1]["type"] == "tool":
            return CallRecord("settled", f"the call has a result; the thread is `{thread['status']}`")
        return CallRecord("open", f"a call without a result; the thread is `{thread['status']}`")


def _run(prompt: str) -> dict[str, object]:
    return {"assistant_id": "agent", "input": {"messages": [{"role": "user", "content": prompt}]}}


def _has_text(message: dict[str, Any]) -> bool:
    content = message["content"]
    return message["type"] == "AIMessageChunk" and (
        bool(content) if isinstance(content, str) else any(block.get("text") for block in content)
    )
