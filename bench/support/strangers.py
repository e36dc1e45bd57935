"""Checks that one organisation cannot learn anything about another on the same server.

A stranger requests an object of the owner. Apart from ids, the response must equal, byte for byte, the response for an
object that does not exist. The owner then makes the same request and succeeds, which shows that it was a valid one.
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
from footplate.domain import ids
from footplate.domain.json import JsonObject
from footplate.domain.sessions import events
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
"""Fields of request bodies that refer to another object, and the path parameter of its kind."""
INSTEAD: Final = ("project_ids", "workspace_id")
"""A request body has one of these, never both."""
ASKED_APART: Final = frozenset({"custom_tool_use_id", "tool_use_id", "at_event_id", "project_id"})
"""Fields that refer to a part of the session itself; the claim tests them separately."""
INSIDE: Final = frozenset({"file_id"})
"""Fields that some bodies only have at a deeper level; see `compare_files`."""
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
        """Creates one object of each kind: among them an agent with two versions and a session with `turns` turns."""
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
        """Creates two pending approvals and returns the id of one."""
        asking = {**TOOLSET, "default_config": {"permission_policy": {"type": "always_ask"}}}
        agent_id = await self.client.agent(tools=[asking], extra_body={"harness": "native"})
        session_id = await self.client.session(agent_id)
        await self.client.run_turn(session_id, f"Go. [[script:{_ASKING}]]")
        waiting = await self.http.get("/v1/approvals", params={"session_id": session_id})
        return str(waiting.json()["data"][0]["id"])


Ids = dict[str, str]
"""Ids by path parameter."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The visible parts of a response, with object ids and the request id replaced."""

    status: int
    headers: Mapping[str, str]
    body: str


@dataclass(frozen=True, slots=True)
class Question:
    """One request that refers to objects by id, in its path or body."""

    operation: Operation
    ids: Mapping[str, str]
    """Ids by path parameter or body field."""
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
    """Returns an unused id of the same length and format."""
    return ids.new_id(PREFIXES[BODY_IDS.get(name, name)])


def named(operation: Operation, document: Document) -> Sequence[str]:
    """Returns the names of the ids in a request of this operation. Raises for a name of an unknown kind."""
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
                raise NotHeld(f"{operation} takes {name!r} in its body, and the claim does not know what it refers to")
    unknown = [name for name in names if name not in PREFIXES and name not in BODY_IDS]
    require(holds=not unknown, otherwise=f"{operation}: the claim has no ids for {unknown}")
    return names


def questions(operation: Operation, document: Document, own: Ids) -> Iterator[tuple[Question, Sequence[str]]]:
    """Yields a request with the caller's own ids, and each combination of ids to replace by another organisation's."""
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
        # Optional ids are included as well.
        body = least | {name: mine[name] for name in names if name not in operation.path_parameters}
    question = Question(operation, mine, body)
    for count in range(1, len(names) + 1):
        for chosen in itertools.combinations(names, count):
            yield question, chosen


async def compare(question: Question, chosen: Sequence[str], foreign: Ids, stranger: Organisation) -> None:
    """Requires that a stranger gets the same response for the owner's ids as for unused ids."""
    theirs = question.with_ids({name: foreign[BODY_IDS.get(name, name)] for name in chosen})
    nothing = question.with_ids({name: missing(name) for name in chosen})
    found, expected = await theirs.ask(stranger.http), await nothing.ask(stranger.http)
    where = f"{question.operation} with another organisation's {' and '.join(chosen)}"
    require(holds=found.status == 404, otherwise=f"{where}: {found}")
    require(holds=found == expected, otherwise=f"{where}: {found} instead of {expected}")


async def snapshot(owner: Organisation, targets: Sequence[Ids]) -> list[Any]:
    """Returns everything that a stranger might have changed."""
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
            body.pop("stats", None)  # contains its age
            seen.append(body)
    return seen


async def compare_choices(operation: Operation, foreign: Ids, stranger: Organisation, own: Ids) -> int:
    """Compares the other forms of an agent reference: with a version, and with overrides. Returns their number."""
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
    """Compares messages and new sessions that refer to another organisation's file. Returns their number."""
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
    """Imports a transcript of one line with the owner's own agent and environment."""
    said = {"type": "user", "uuid": "u", "parentUuid": None, "message": {"role": "user", "content": "Hello"}}
    first = {"agent": own["agent_id"], "environment_id": own["environment_id"]}
    body = b"\n".join(orjson.dumps(line) for line in (first, {"line": said}))
    return await owner.http.post("/v1/sessions/import", content=body)


async def foreign_answer(stranger: Organisation, own: Ids, tool_use_id: str) -> Reply:
    """Sends a result for another organisation's custom tool call to the stranger's own session."""
    result = {"type": events.USER_CUSTOM_TOOL_RESULT, "custom_tool_use_id": tool_use_id, "content": []}
    response = await stranger.http.post(f"/v1/sessions/{own['session_id']}/events", json={"events": [result]})
    text = response.text.replace(tool_use_id, "ID").replace(response.headers["request-id"], "REQUEST")
    return Reply(response.status_code, {}, text)


def is_reference(name: str) -> bool:
    return name == "agent" or name.endswith(("_id", "_ids"))
