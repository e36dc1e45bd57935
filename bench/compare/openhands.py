"""OpenHands' agent-server as a peer: one process, conversations as files, commands in tmux panes."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson
from websockets.asyncio.client import connect

from bench.compare.installation import install_python
from bench.compare.peer import MODEL, TURN_TIMEOUT, CallRecord, PeerServer
from bench.prove.figure import NotHeld
from footplate.stack.free_ports import LOOPBACK
from footplate.testing.reply_steps import Tool, tool

_VERSION: Final = "1.58.0"
_SHELL_TOOL: Final = "terminal"
_PACKAGES: Final = ("agent-server", "sdk", "tools")


class OpenHands(PeerServer):
    version = _VERSION

    def __init__(self) -> None:
        super().__init__("OpenHands agent-server", "/ready")
        self._bin = Path()

    async def install(self) -> None:
        self._bin = await install_python("openhands", *(f"openhands-{name}=={_VERSION}" for name in _PACKAGES))

    @property
    def program(self) -> Path:
        return self._bin / "agent-server"

    def arguments(self) -> Sequence[str]:
        return ["--host", LOOPBACK, "--port", str(self.port)]

    def environment(self) -> Mapping[str, str]:
        return {
            **super().environment(),
            "OPENHANDS_SUPPRESS_BANNER": "1",
            "OH_ENABLE_VSCODE": "false",
            "OH_PRELOAD_TOOLS": "false",  # It would start a browser.
            "OH_SECRET_KEY": "scripted",
            "OH_CONVERSATIONS_PATH": str(self.root / "conversations"),
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "LOG_LEVEL": "WARNING",
        }

    def call_shell(self, command: str) -> Tool:
        return tool(_SHELL_TOOL, {"command": command})

    async def create_session(self) -> str:
        llm = {"model": f"anthropic/{MODEL}", "base_url": self.model.url, "api_key": "scripted", "stream": True}
        body = {
            "agent": {"kind": "Agent", "llm": {**llm, "usage_id": "agent"}, "tools": [{"name": _SHELL_TOOL}]},
            "workspace": {"kind": "LocalWorkspace", "working_dir": str(self.directory)},
        }
        return str((await self.post("/api/conversations", body))["id"])

    async def run_turn(self, session: str, prompt: str) -> float:
        first: float | None = None
        address = f"ws://{self.address}/sockets/session/{session}"
        async with asyncio.timeout(TURN_TIMEOUT), connect(address, proxy=None, max_size=None) as socket:
            await socket.recv()
            sent = time.monotonic()
            await self.send_message(session, prompt)
            async for frame in socket:
                read = orjson.loads(frame)
                if read["type"] == "delta" and first is None:
                    first = time.monotonic() - sent
                status = _read_status(read.get("event") or {})
                if status == "finished":
                    break
                if status in {"error", "stuck"}:
                    raise NotHeld(f"OpenHands: the conversation is {status}")
        if first is None:
            raise NotHeld("OpenHands: a turn without text")
        return first

    async def send_message(self, session: str, prompt: str) -> None:
        content = [{"type": "text", "text": prompt}]
        await self.post(f"/api/conversations/{session}/events", {"role": "user", "content": content, "run": True})

    async def describe_call(self, session: str) -> CallRecord:
        events = (await self.get(f"/api/conversations/{session}/events/search"))["items"]
        status = (await self.get(f"/api/conversations/{session}"))["execution_status"]
        calls = [event["tool_call_id"] for event in events if event["kind"] == "ActionEvent"]
        if not calls:
            return CallRecord("lost", "the call is not in the conversation")
        for event in events:
            if event.get("tool_call_id") == calls[-1] and event["kind"] != "ActionEvent":
                text = str(event.get("error") or event["kind"]).partition(". ")[0]
                return CallRecord("settled", f"“{text}”; the conversation is `{status}`")
        return CallRecord("open", f"a call without a result; the conversation is `{status}`")


def _read_status(event: dict[str, Any]) -> str:
    return str(event.get("value")) if event.get("key") == "execution_status" else ""
