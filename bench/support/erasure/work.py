"""Creates sessions and forks whose every turn writes a unique token into prompt, response, files and file names."""

import asyncio
import random
import secrets
from dataclasses import dataclass, field
from typing import Any, Final

from bench.prove.figure import require
from bench.support.clients import Client, Event
from bench.support.cluster import Cluster
from footplate.domain import events as ev
from footplate.testing import replies, text, tool

LOOK: Final = "look"
_TELL: Final = (
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


def word() -> str:
    return f"canary{secrets.token_hex(12)}"


@dataclass(slots=True, eq=False)
class Made:
    """A session, with the tokens that it inherited and those of its own turns."""

    id: str
    fields: dict[str, Any] = field(default_factory=dict)
    parent: "Made | None" = None
    inherited: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)
    """The id of the last event of each of its turns."""
    listed: str = ""
    """All of its files, as listed by its last turn."""
    log: list[Event] = field(default_factory=list)
    deleted: bool = False
    asks: str | None = None
    """The id of its pending call."""


class Work:
    def __init__(self, cluster: Cluster, client: Client, project_id: str, seed: int) -> None:
        self._cluster = cluster
        self._client = client
        self._project = project_id
        self.random = random.Random(seed)
        self._limit = asyncio.Semaphore(4)
        self.made: list[Made] = []

    async def begin(self, sessions: int, forks: int) -> None:
        bash = tool("bash", {"command": _TELL})
        await self._cluster.model.install(LOOK, replies([bash], [text("Seen.")]))
        agent = await self._client.agent()
        kinds: list[dict[str, Any]] = [{}, {"extra_body": {"project_ids": [self._project]}}]
        await asyncio.gather(*(self._session(agent, kinds[n % 2], 1 + n % 3) for n in range(sessions)))
        # Some are forks of forks.
        for part in (forks - forks // 3, forks // 3):
            await asyncio.gather(*(self._fork(self.random.choice(self.made)) for _ in range(part)))

    async def on(self, project_id: str) -> Made:
        """Creates one more session, on another project."""
        fields: dict[str, Any] = {"extra_body": {"project_ids": [project_id]}}
        made = Made(await self._client.session(await self._client.agent(), **fields), fields)
        await self.turn(made)
        self.made.append(made)
        return made

    async def ask(self) -> Made:
        """Creates a session that waits for a custom tool result."""
        agent = await self._client.agent(tools=[{"type": "agent_toolset_20260401"}, _ASK])
        made = Made(await self._client.session(agent))
        await self.turn(made)
        name = word()
        await self._cluster.model.install(name, replies([tool("ask_a_person", {})], [text("Answered.")]))
        received = await self._client.run_turn(made.id, f"Ask. [[script:{name}]]", patience=_PATIENCE)
        made.asks = next(event["id"] for event in received if event["type"] == ev.AGENT_CUSTOM_TOOL_USE)
        made.words.append(name)
        self.made.append(made)
        return made

    async def answer(self, made: Made) -> list[Event]:
        assert made.asks is not None
        async with self._client.stream(made.id) as stream:
            await self._client.answer_tool(made.id, made.asks, "Yes.")
            return await stream.until_idle(patience=_PATIENCE)

    async def _session(self, agent: str, fields: dict[str, Any], turns: int) -> None:
        async with self._limit:
            made = Made(await self._client.session(agent, **fields), fields)
            for _ in range(turns):
                await self.turn(made)
            self.made.append(made)

    async def _fork(self, parent: Made) -> None:
        async with self._limit:
            at = self.random.randrange(len(parent.ends)) if parent.ends else None
            path, body = f"/v1/sessions/{parent.id}/fork", {} if at is None else {"at_event_id": parent.ends[at]}
            fork: Any = await self._client.sdk.post(path, cast_to=dict[str, Any], body=body)
            begins = [*parent.inherited, *(parent.words if at is None else parent.words[: at + 1])]
            made = Made(fork["id"], parent.fields, parent, begins)
            await self.turn(made)
            self.made.append(made)

    async def turn(self, made: Made) -> None:
        name = word()
        large = f"head -c {_LARGE} /dev/zero | tr '\\0' x; " if self.random.random() < 0.2 else ""
        command = f"echo {name} > file-{name}; echo {name} >> grows; {large}{_TELL}; cat grows"
        await self._cluster.model.install(name, replies([tool("bash", {"command": command})], [text(f"Done: {name}")]))
        received = await self._client.run_turn(made.id, f"Write {name}. [[script:{name}]]", patience=_PATIENCE)
        made.words.append(name)
        made.ends.append(received[-1]["id"])

    async def look(self, made: Made) -> str:
        """Returns all files of the session, as listed by a turn of its own."""
        received = await self._client.run_turn(made.id, f"[[script:{LOOK}]]", patience=_PATIENCE)
        results = [event for event in received if event["type"] == ev.AGENT_TOOL_RESULT]
        require(holds=len(results) == 1, otherwise=f"{made.id}: no files were listed: {received[-2:]}")
        return "".join(block.get("text", "") for block in results[0]["content"]).strip()

    async def look_at_all(self, living: list[Made]) -> dict[str, str]:
        async def one(made: Made) -> tuple[str, str]:
            async with self._limit:
                return made.id, await self.look(made)

        return dict(await asyncio.gather(*(one(made) for made in living)))

    async def delete(self, made: Made) -> None:
        async with self._limit:
            await self._client.sdk.beta.sessions.delete(made.id)
            made.deleted = True
