"""opencode as a peer: `opencode serve` in one repository, which all sessions share, without snapshots of its own."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import httpx2
import orjson

from bench.compare.installation import install_node
from bench.compare.peer import MODEL, TURN_TIMEOUT, CallRecord, PeerServer, call_bash, read_events
from bench.prove.figure import NotHeld
from footplate.testing.reply_steps import Tool

_VERSION: Final = "1.18.33"


class OpenCode(PeerServer):
    version = _VERSION

    def __init__(self) -> None:
        super().__init__("opencode", "/global/health")
        self._bin = Path()
        self._events: dict[str, asyncio.Queue[dict[str, Any]]] = {}
        self._reader: asyncio.Task[None] | None = None
        self._connected = asyncio.Event()

    async def install(self) -> None:
        self._bin = await install_node("opencode", f"opencode-ai@{_VERSION}")

    @property
    def program(self) -> Path:
        return self._bin / "opencode"

    def arguments(self) -> Sequence[str]:
        return ["serve", "--port", str(self.port)]

    def environment(self) -> Mapping[str, str]:
        switches = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "SHARE", "DEFAULT_PLUGINS")
        return {
            **super().environment(),
            **{f"OPENCODE_DISABLE_{switch}": "1" for switch in switches},
            "OPENCODE_CONFIG": str(self.root / "opencode.json"),
        }

    def write_configuration(self) -> None:
        provider = {"options": {"baseURL": f"{self.model.url}/v1", "apiKey": "scripted"}}
        configuration = {
            "provider": {"anthropic": provider},
            "model": f"anthropic/{MODEL}",
            "small_model": f"anthropic/{MODEL}",
            "share": "disabled",
            "autoupdate": False,
            "permission": "allow",
            "snapshot": False,  # By default on; off is faster, and the claim is about opencode at its fastest.
        }
        (self.root / "opencode.json").write_bytes(orjson.dumps(configuration))

    async def start(self) -> None:
        await super().start()
        self._connected.clear()
        self._reader = asyncio.create_task(self._read_all_events())
        await asyncio.wait_for(self._connected.wait(), TURN_TIMEOUT)

    async def kill(self) -> None:
        await super().kill()
        await self._stop_reader()

    async def aclose(self) -> None:
        await self._stop_reader()
        await super().aclose()

    def call_shell(self, command: str) -> Tool:
        return call_bash(command)

    async def create_session(self) -> str:
        # With a title of its own, no second model request is made to invent one.
        return str((await self.post("/session", {"title": "compared"}))["id"])

    async def run_turn(self, session: str, prompt: str) -> float:
        events = self._events[session] = asyncio.Queue()
        first: float | None = None
        sent = time.monotonic()
        await self.send_message(session, prompt)
        async with asyncio.timeout(TURN_TIMEOUT):
            while (event := await events.get())["type"] != "session.idle":
                if event["type"] == "session.error":
                    raise NotHeld(f"opencode: {event['properties']}")
                if event["type"] == "message.part.delta" and first is None:
                    first = time.monotonic() - sent
        del self._events[session]
        if first is None:
            raise NotHeld("opencode: a turn without text")
        return first

    async def send_message(self, session: str, prompt: str) -> None:
        await self.post(f"/session/{session}/prompt_async", {"parts": [{"type": "text", "text": prompt}]})

    async def describe_call(self, session: str) -> CallRecord:
        messages = await self.get(f"/session/{session}/message")
        parts = [part for message in messages for part in message["parts"] if part["type"] == "tool"]
        if not parts:
            return CallRecord("lost", "the call is not in the session")
        status = parts[-1]["state"]["status"]
        return CallRecord("open" if status in {"running", "pending"} else "settled", f"the call is `{status}`")

    async def _read_all_events(self) -> None:
        """Reads the one stream that the server has for all sessions, as its own clients do."""
        with suppress(httpx2.HTTPError):
            async with self.client.stream("GET", "/event", timeout=None) as response:
                async for _, event in read_events(response):
                    self._connected.set()
                    queue = self._events.get(event["properties"].get("sessionID", ""))
                    if queue is not None:
                        queue.put_nowait(event)

    async def _stop_reader(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
