"""Creates sessions and forks whose every turn writes a unique token into prompt, response, files and file names."""

import asyncio
import random
import secrets
from dataclasses import dataclass, field
from typing import Any, Final

from bench.prove.figure import require
from bench.support.clients import Client, Event
from bench.support.cluster import Cluster
from footplate.domain.sessions import events as ev
from footplate.testing import replies, text, tool

LIST_SCRIPT: Final = "look"
_LIST_FILES: Final = (
    "echo All files:; find . -path ./.git -prune -o \\( -type f -o -type l \\) -print0 | sort -z | xargs -0r sha1sum"
)
_LARGE: Final = 70_000
_PATIENCE: Final = 300.0
_ASK: Final = {
    "type": "custom",
    "name": "ask_a_person",
    "description": "Asks.",
    "input_schema": {"type": "object", "properties": {}},
}


def new_token() -> str:
    return f"canary{secrets.token_hex(12)}"


@dataclass(slots=True, eq=False)
class TrackedSession:
    """A session, with the tokens that it inherited and those of its own turns."""

    id: str
    fields: dict[str, Any] = field(default_factory=dict)
    parent: "TrackedSession | None" = None
    inherited_tokens: list[str] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    turn_ends: list[str] = field(default_factory=list)
    """The id of the last event of each of its turns."""
    listed_files: str = ""
    """All of its files, as listed by its last turn."""
    log: list[Event] = field(default_factory=list)
    deleted: bool = False
    pending_call: str | None = None
    """The id of its pending call."""


class SessionWorkload:
    def __init__(self, cluster: Cluster, client: Client, project_id: str, seed: int) -> None:
        self._cluster = cluster
        self._client = client
        self._project = project_id
        self.random = random.Random(seed)
        self._limit = asyncio.Semaphore(4)
        self.made: list[TrackedSession] = []

    async def create_sessions(self, sessions: int, forks: int) -> None:
        bash = tool("bash", {"command": _LIST_FILES})
        await self._cluster.model.install(LIST_SCRIPT, replies([bash], [text("Seen.")]))
        agent = await self._client.agent()
        kinds: list[dict[str, Any]] = [{}, {"extra_body": {"project_ids": [self._project]}}]
        await asyncio.gather(*(self._session(agent, kinds[n % 2], 1 + n % 3) for n in range(sessions)))
        # Some are forks of forks.
        for part in (forks - forks // 3, forks // 3):
            await asyncio.gather(*(self._fork(self.random.choice(self.made)) for _ in range(part)))

    async def create_on_project(self, project_id: str) -> TrackedSession:
        """Creates one more session, on another project."""
        fields: dict[str, Any] = {"extra_body": {"project_ids": [project_id]}}
        made = TrackedSession(await self._client.session(await self._client.agent(), **fields), fields)
        await self.run_turn(made)
        self.made.append(made)
        return made

    async def create_waiting(self) -> TrackedSession:
        """Creates a session that waits for a custom tool result."""
        agent = await self._client.agent(tools=[{"type": "agent_toolset_20260401"}, _ASK])
        made = TrackedSession(await self._client.session(agent))
        await self.run_turn(made)
        name = new_token()
        await self._cluster.model.install(name, replies([tool("ask_a_person", {})], [text("Answered.")]))
        received = await self._client.run_turn(made.id, f"Ask. [[script:{name}]]", patience=_PATIENCE)
        made.pending_call = next(event["id"] for event in received if event["type"] == ev.AGENT_CUSTOM_TOOL_USE)
        made.tokens.append(name)
        self.made.append(made)
        return made

    async def send_tool_result(self, made: TrackedSession) -> list[Event]:
        assert made.pending_call is not None
        async with self._client.stream(made.id) as stream:
            await self._client.send_tool_result(made.id, made.pending_call, "Yes.")
            return await stream.until_idle(patience=_PATIENCE)

    async def _session(self, agent: str, fields: dict[str, Any], turns: int) -> None:
        async with self._limit:
            made = TrackedSession(await self._client.session(agent, **fields), fields)
            for _ in range(turns):
                await self.run_turn(made)
            self.made.append(made)

    async def _fork(self, parent: TrackedSession) -> None:
        async with self._limit:
            at = self.random.randrange(len(parent.turn_ends)) if parent.turn_ends else None
            path, body = f"/v1/sessions/{parent.id}/fork", {} if at is None else {"at_event_id": parent.turn_ends[at]}
            fork: Any = await self._client.sdk.post(path, cast_to=dict[str, Any], body=body)
            begins = [*parent.inherited_tokens, *(parent.tokens if at is None else parent.tokens[: at + 1])]
            made = TrackedSession(fork["id"], parent.fields, parent, begins)
            await self.run_turn(made)
            self.made.append(made)

    async def run_turn(self, made: TrackedSession) -> None:
        name = new_token()
        large = f"head -c {_LARGE} /dev/zero | tr '\\0' x; " if self.random.random() < 0.2 else ""
        command = f"echo {name} > file-{name}; echo {name} >> grows; {large}{_LIST_FILES}; cat grows"
        await self._cluster.model.install(name, replies([tool("bash", {"command": command})], [text(f"Done: {name}")]))
        received = await self._client.run_turn(made.id, f"Write {name}. [[script:{name}]]", patience=_PATIENCE)
        made.tokens.append(name)
        made.turn_ends.append(received[-1]["id"])

    async def list_files(self, made: TrackedSession) -> str:
        """Returns all files of the session, as listed by a turn of its own."""
        received = await self._client.run_turn(made.id, f"[[script:{LIST_SCRIPT}]]", patience=_PATIENCE)
        results = [event for event in received if event["type"] == ev.AGENT_TOOL_RESULT]
        require(holds=len(results) == 1, otherwise=f"{made.id}: no files were listed: {received[-2:]}")
        texts: list[str] = [block.get("text", "") for block in results[0]["content"]]
        return "".join(texts).strip()

    async def list_all_files(self, living: list[TrackedSession]) -> dict[str, str]:
        async def one(made: TrackedSession) -> tuple[str, str]:
            async with self._limit:
                return made.id, await self.list_files(made)

        return dict(await asyncio.gather(*(one(made) for made in living)))

    async def delete_session(self, made: TrackedSession) -> None:
        async with self._limit:
            await self._client.sdk.beta.sessions.delete(made.id)
            made.deleted = True
