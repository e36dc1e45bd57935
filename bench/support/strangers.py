"""Two organisations on one server, and what a stranger may not learn: the parts of `core-9`.

A stranger asks for what belongs to the owner; the answer must be, byte for byte but for the ids, the answer for
something that does not exist. The owner then asks the same and gets it, which shows that the question was a good one.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import httpx2
import orjson

from bench.prove.figure import NotHeld, require
from bench.support.clients import TOOLSET, Client, raw_client
from bench.support.cluster import Cluster
from bench.support.openapi import Document, Operation, is_supported
from footplate.domain import events, ids
from footplate.domain.json import JsonObject
from footplate.testing import replies, tool

PREFIXES: Final = {
    "agent_id": ids.AGENT,
    "environment_id": ids.ENVIRONMENT,
    "session_id": ids.SESSION,
    "turn_id": ids.TURN,
    "thread_id": ids.THREAD,
    "project_id": ids.PROJECT,
    "workspace_id": ids.WORKSPACE,
    "file_id": ids.FILE,
    "resource_id": ids.RESOURCE,
    "scope_id": ids.SESSION,
    "approval_id": ids.EVENT,
}
BODY_IDS: Final = {
    "agent": "agent_id",
    "environment_id": "environment_id",
    "project_ids": "project_id",
    "workspace_id": "workspace_id",
    "file_id": "file_id",
    "session_id": "session_id",
}
"""Fields of request bodies that name something else, and what they name."""
INSTEAD: Final = ("project_ids", "workspace_id")
"""Of these a body has one or the other."""
ASKED_APART: Final = frozenset({"custom_tool_use_id", "tool_use_id", "at_event_id", "project_id"})
"""Fields that name a part of the session itself; see `core_9`."""
INSIDE: Final = frozenset({"file_id"})
"""Fields that some bodies have further inside; see `compare_files`."""
_ASKING: Final = "asks-a-person"
_VARIES: Final = frozenset({"request-id", "date"})


@dataclass(frozen=True, slots=True)
class Organisation:
    client: Client
    http: httpx2.AsyncClient

    @classmethod
    async def found(cls, cluster: Cluster, name: str) -> Self:
        key = await cluster.create_key(name)
        await cluster.model.install(_ASKING, replies([tool("bash", {"command": each}) for each in ("id", "ls")]))
        return cls(Client(cluster, key=key), raw_client(cluster, key=key))

    async def aclose(self) -> None:
        await self.http.aclose()
        await self.client.sdk.close()

    async def settle(self, *, turns: int, harness: str = "native") -> "Ids":
        """An agent of two versions, an environment, and a session with so many turns."""
        sdk = self.client.sdk
        agent_id = await self.client.agent(extra_body={"harness": harness})
        await sdk.beta.agents.update(agent_id, version=1, name="renamed")
        environment_id = await self.client.environment()
        session_id = await self.client.session(agent_id, environment_id)
        for _ in range(turns):
            await self.client.run_turn(session_id, "Hello")
        listed = (await self.http.get(f"/v1/sessions/{session_id}/turns")).json()["data"]
        turn_id = listed[0]["id"] if listed else missing("turn_id")
        project = await self.http.post("/v1/projects", json={"url": f"https://git.example.com/{ids.new_id('name')}"})
        project_id = project.json()["id"]
        wanted = {"name": ids.new_id("name"), "project_ids": [project_id]}
        workspace = await self.http.post("/v1/workspaces", json=wanted)
        files = [(await self.http.post("/v1/files", files={"file": ("a", b"x")})).json()["id"] for _ in range(2)]
        mounted = [{"type": "file", "file_id": file_id} for file_id in files]
        where = f"/v1/sessions/{session_id}/resources"
        resources = [(await self.http.post(where, json=body)).json()["id"] for body in mounted]
        return {
            "agent_id": agent_id,
            "environment_id": environment_id,
            "session_id": session_id,
            "turn_id": turn_id,
            "project_id": project_id,
            "workspace_id": workspace.json()["id"],
            "file_id": (await self.http.post("/v1/files", files={"file": ("b", b"y")})).json()["id"],
            "resource_id": resources[0],
            "scope_id": session_id,
            "approval_id": await self._asked(),
            "thread_id": (await self.http.get(f"/v1/sessions/{session_id}/threads")).json()["data"][0]["id"],
        }

    async def _asked(self) -> str:
        """One of two calls that wait for a person's word."""
        asking = {**TOOLSET, "default_config": {"permission_policy": {"type": "always_ask"}}}
        agent_id = await self.client.agent(tools=[asking], extra_body={"harness": "native"})
        session_id = await self.client.session(agent_id)
        await self.client.run_turn(session_id, f"Go. [[script:{_ASKING}]]")
        waiting = await self.http.get("/v1/approvals", params={"session_id": session_id})
        return str(waiting.json()["data"][0]["id"])


Ids = dict[str, str]
"""By the name of the path's parameter."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a stranger can see of an answer, ids and the request's own id apart."""

    status: int
    headers: Mapping[str, str]
    body: str


@dataclass(frozen=True, slots=True)
class Question:
    """One request that names things by id, in its path or in its body."""

    operation: Operation
    ids: Mapping[str, str]
    """By path parameter or by field of the body."""
    body: Any = None
    query: tuple[tuple[str, str], ...] = ()

    def with_ids(self, others: Mapping[str, str]) -> "Question":
        return replace(self, ids={**self.ids, **others})

    async def ask(self, http: httpx2.AsyncClient) -> Reply:
        method, url, body = self.request()
        async with http.stream(method, url, json=body, params=self.query) as response:
            streamed = response.headers["content-type"].startswith("text/event-stream")
            text = "" if streamed else (await response.aread()).decode()
        text = text.replace(response.headers["request-id"], "REQUEST")
        for name, value in self.ids.items():
            text = text.replace(value, name)
        headers = {name: value for name, value in response.headers.items() if name not in _VARIES}
        return Reply(response.status_code, headers, text)

    def request(self) -> tuple[str, str, Any]:
        body = self.body
        if body is not None:
            body = {name: _value(name, self.ids[name]) if name in self.ids else value for name, value in body.items()}
        return self.operation.method, self.operation.url(self.ids), body


def _value(name: str, item_id: str) -> Any:
    return [item_id] if name.endswith("_ids") else item_id


def missing(name: str) -> str:
    """An id that nothing has, of the same length and look."""
    return ids.new_id(PREFIXES[BODY_IDS.get(name, name)])


def named(operation: Operation, document: Document) -> Sequence[str]:
    """What a request of this operation names by id. A name that nobody has an id for fails the proof."""
    names = list(operation.path_parameters)
    if operation.body is not None:
        outer = document.outer(operation.body)
        for name, schema in document.properties(operation.body).items():
            if name in INSIDE and name not in outer:
                continue
            if not is_reference(name) or not is_supported(schema) or not document.takes_text(schema):
                continue
            if name in BODY_IDS:
                names.append(name)
            elif name not in ASKED_APART:
                raise NotHeld(f"{operation} takes {name!r} in its body, and the proof does not know what that names")
    unknown = [name for name in names if name not in PREFIXES and name not in BODY_IDS]
    require(holds=not unknown, otherwise=f"{operation}: the proof has no ids for {unknown}")
    return names


def questions(operation: Operation, document: Document, own: Ids) -> Iterator[tuple[Question, Sequence[str]]]:
    """The asker's own question, and each choice of names in it that could be somebody else's."""
    names = named(operation, document)
    if not names:
        return
    in_body = [name for name in names if name not in operation.path_parameters]
    if not set(INSTEAD) <= set(in_body):
        yield from _choices(operation, document, own, names)
        return
    for left_out in INSTEAD:
        yield from _choices(operation, document, own, [name for name in names if name != left_out])


def _choices(
    operation: Operation, document: Document, own: Ids, names: Sequence[str]
) -> Iterator[tuple[Question, Sequence[str]]]:
    mine = {name: own[BODY_IDS.get(name, name)] for name in names}
    body = None
    if operation.body is not None:
        least = document.minimal(operation.body, {**mine, "name": ids.new_id("name")})
        # Also what may be left out.
        body = least | {name: mine[name] for name in names if name not in operation.path_parameters}
    question = Question(operation, mine, body)
    for count in range(1, len(names) + 1):
        for chosen in itertools.combinations(names, count):
            yield question, chosen


async def compare(question: Question, chosen: Sequence[str], foreign: Ids, stranger: Organisation) -> None:
    """A stranger's answer for the owner's ids is the answer for ids that nothing has."""
    theirs = question.with_ids({name: foreign[BODY_IDS.get(name, name)] for name in chosen})
    nothing = question.with_ids({name: missing(name) for name in chosen})
    found, expected = await theirs.ask(stranger.http), await nothing.ask(stranger.http)
    where = f"{question.operation} with another organisation's {' and '.join(chosen)}"
    require(holds=found.status == 404, otherwise=f"{where}: {found}")
    require(holds=found == expected, otherwise=f"{where}: {found} instead of {expected}")


async def snapshot(owner: Organisation, targets: Sequence[Ids]) -> list[Any]:
    """All that a stranger might have changed."""
    seen = []
    for target in targets:
        session = f"/v1/sessions/{target['session_id']}"
        for path in (
            f"/v1/agents/{target['agent_id']}/versions",
            f"/v1/environments/{target['environment_id']}",
            f"/v1/projects/{target['project_id']}",
            f"/v1/workspaces/{target['workspace_id']}",
            f"/v1/files/{target['file_id']}",
            session,
            f"{session}/events",
            f"{session}/turns",
        ):
            body = (await owner.http.get(path)).json()
            body.pop("stats", None)  # how long it exists by now
            seen.append(body)
    return seen


async def compare_choices(operation: Operation, foreign: Ids, stranger: Organisation, own: Ids) -> int:
    """The other ways to name an agent: by id and version, and with changes of one's own."""
    agent_id, nothing = foreign["agent_id"], missing("agent_id")
    forms: list[JsonObject] = [
        {"type": "agent"},
        {"type": "agent", "version": 1},
        {"type": "agent_with_overrides", "system": "Whose are you?"},
    ]
    for form in forms:
        bodies = [
            {"agent": {**form, "id": chosen}, "environment_id": own["environment_id"]} for chosen in (agent_id, nothing)
        ]
        found = await Question(operation, {**own, "agent_id": agent_id}, bodies[0]).ask(stranger.http)
        expected = await Question(operation, {**own, "agent_id": nothing}, bodies[1]).ask(stranger.http)
        require(holds=found.status == httpx2.codes.NOT_FOUND, otherwise=f"{operation} with {form}: {found}")
        require(holds=found == expected, otherwise=f"{operation} with {form}: {found} instead of {expected}")
    return len(forms)


async def compare_files(foreign: Ids, stranger: Organisation, own: Ids) -> int:
    """A file that a message or a new session names, of another organisation."""
    session = f"/v1/sessions/{own['session_id']}"

    def asked(file_id: str) -> list[tuple[str, JsonObject]]:
        block: JsonObject = {"type": "document", "source": {"type": "file", "file_id": file_id}}
        message: JsonObject = {"type": "user.message", "content": [block]}
        fresh: JsonObject = {"agent": own["agent_id"], "environment_id": own["environment_id"]}
        return [
            (f"{session}/events", {"events": [message]}),
            (f"{session}/fork", {"initial_events": [message]}),
            ("/v1/sessions", {**fresh, "initial_events": [message]}),
            ("/v1/sessions", {**fresh, "resources": [{"type": "file", "file_id": file_id}]}),
        ]

    theirs, none = foreign["file_id"], missing("file_id")
    for (path, found), (_, expected) in zip(asked(theirs), asked(none), strict=True):
        answers = [await stranger.http.post(path, json=body) for body in (found, expected)]
        told = [answer.text.replace(answer.headers["request-id"], "").replace(theirs, none) for answer in answers]
        require(
            holds=answers[0].status_code == httpx2.codes.NOT_FOUND and told[0] == told[1],
            otherwise=f"{path} with another organisation's file: {told[0]} instead of {told[1]}",
        )
    return len(asked(none))


async def import_own(owner: Organisation, own: Ids) -> httpx2.Response:
    """A transcript of one line, with names of the owner's own."""
    said = {"type": "user", "uuid": "u", "parentUuid": None, "message": {"role": "user", "content": "Hello"}}
    first = {"agent": own["agent_id"], "environment_id": own["environment_id"]}
    body = b"\n".join(orjson.dumps(line) for line in (first, {"line": said}))
    return await owner.http.post("/v1/sessions/import", content=body)


async def foreign_answer(stranger: Organisation, own: Ids, tool_use_id: str) -> Reply:
    """An answer to a custom tool's call, sent into the stranger's own session."""
    result = {"type": events.USER_CUSTOM_TOOL_RESULT, "custom_tool_use_id": tool_use_id, "content": []}
    response = await stranger.http.post(f"/v1/sessions/{own['session_id']}/events", json={"events": [result]})
    text = response.text.replace(tool_use_id, "ID").replace(response.headers["request-id"], "REQUEST")
    return Reply(response.status_code, {}, text)


def is_reference(name: str) -> bool:
    return name == "agent" or name.endswith(("_id", "_ids"))
