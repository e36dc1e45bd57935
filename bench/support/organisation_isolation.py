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
from bench.support import nested_references
from bench.support.clients import TOOLSET, Client, raw_client
from bench.support.cluster import Cluster
from bench.support.nested_references import SKIPPED_STEP, TRANSCRIPT_LINE
from bench.support.openapi import OpenApiDocument, Operation, is_supported
from bench.support.push.push_service import BrowserKeys
from footplate.client.webhooks import sign_delivery
from footplate.domain import ids
from footplate.domain.json import JsonObject
from footplate.stack.orphan_processes import wait_until
from footplate.testing import replies, tool

ID_PREFIXES: Final = {
    "agent_id": ids.AGENT,
    "environment_id": ids.ENVIRONMENT,
    "session_id": ids.SESSION,
    "turn_id": ids.TURN,
    "step_id": ids.STEP,
    "thread_id": ids.THREAD,
    "project_id": ids.PROJECT,
    "workspace_id": ids.WORKSPACE,
    "file_id": ids.FILE,
    "resource_id": ids.RESOURCE,
    "scope_id": ids.SESSION,
    "approval_id": ids.EVENT,
    "question_id": ids.EVENT,
    "recording_id": ids.EVENT,
    "parent_id": ids.SESSION,
    "group_id": ids.GROUP,
    "member_id": ids.MEMBER,
    "team_id": ids.TEAM,
    "batch_id": ids.BATCH,
    "deployment_id": ids.DEPLOYMENT,
    "deployment_run_id": ids.DEPLOYMENT_RUN,
    "trigger_id": ids.TRIGGER,
    "key_id": ids.API_KEY,
    "endpoint_id": ids.WEBHOOK,
    "subscription_id": ids.PUSH_SUBSCRIPTION,
    "delivery_id": ids.WEBHOOK_DELIVERY,
    "item_id": ids.TURN,
    "comment_id": ids.COMMENT,
    "template_id": ids.SESSION_TEMPLATE,
}
PERSONAL_PATHS: Final = ("/v1/browser_sessions/{browser_session_id}", "/v1/device_authorizations/{user_code}")
"""Routes about what one member can use, not an organisation. dash-6 attacks them."""
BODY_IDS: Final = {
    "agent": "agent_id",
    "agent_id": "agent_id",
    "project_id": "project_id",
    "environment_id": "environment_id",
    "project_ids": "project_id",
    "workspace_id": "workspace_id",
    "file_id": "file_id",
    "session_id": "session_id",
    "member_id": "member_id",
    "member_ids": "member_id",
    "add_member_ids": "member_id",
    "assignee_id": "member_id",
}
"""Fields of request bodies that refer to another object, and the path parameter of its kind."""
EXCLUSIVE_FIELDS: Final = ("project_ids", "workspace_id")
"""A request body has one of these, never both."""
NOT_REFERENCES: Final = frozenset({"custom_id"})
"""Names that the caller chooses. They are valid within its own batch."""
FILTER_IDS: Final = {
    "from_event_id": "approval_id",
    "to_event_id": "approval_id",
    "ids[]": "file_id",
    "owner_id": "member_id",
}
"""Query parameters that refer to an object, and the path parameter of its kind."""
PUBLIC_NAMES: Final = frozenset({("GET /v1/models", "after_id"), ("GET /v1/models", "before_id")})
"""Query parameters that are the name of a model, which belongs to no organisation."""
EVERYONE: Final[Mapping[str, str]] = {"visibility": "organisation"}
_APPROVAL_SCRIPT: Final = "asks-a-person"
_QUESTION_SCRIPT: Final = "asks-a-question"
QUESTION_TEXT: Final = "Which colour?"
COMMENT: Final[JsonObject] = {"path": "comment.txt", "start_line": 1, "end_line": 1, "body": "Why?"}
"""A comment on a line that the session of each organisation has written."""
_FIELDS_BY_ENDING: Final[Mapping[str, JsonObject]] = {
    "/answer": {"answers": {QUESTION_TEXT: "Red"}},
    "/move": {"before": None},
    "/comments": COMMENT,
}
"""Further fields of requests that the required ones do not make valid, by the end of the path."""
_VARYING_HEADERS: Final = frozenset({"request-id", "date"})


@dataclass(frozen=True, slots=True)
class Organisation:
    client: Client
    http: httpx2.AsyncClient

    @classmethod
    async def create(cls, cluster: Cluster, name: str) -> Self:
        return await cls.open(cluster, await cluster.create_key(name))

    @classmethod
    async def open(cls, cluster: Cluster, key: str) -> Self:
        await cluster.model.install(
            _APPROVAL_SCRIPT, replies([tool("bash", {"command": each}) for each in ("id", "ls")])
        )
        question = tool("ask_user", {"questions": [{"question": QUESTION_TEXT}]})
        await cluster.model.install(_QUESTION_SCRIPT, replies([question]))
        return cls(Client(cluster, key=key), raw_client(cluster, key=key))

    async def aclose(self) -> None:
        await self.http.aclose()
        await self.client.sdk.close()

    async def create_objects(
        self,
        *,
        turns: int,
        harness: str = "native",
        audience: Mapping[str, str] = EVERYONE,
        runs_steps: bool = True,
    ) -> "Ids":
        """Creates one object of each kind: among them an agent with two versions and a session with `turns` turns.
        `audience`: who sees the sessions and the file. `runs_steps`: also a failed turn and comments on a file, which
        need steps that run.
        """
        sdk = self.client.sdk
        agent_id = await self.client.agent(extra_body={"harness": harness})
        await sdk.beta.agents.update(agent_id, version=1, name="renamed")
        environment_id = await self.client.environment()
        session_id = await self.client.session(agent_id, environment_id, extra_body=audience)
        for _ in range(turns):
            await self.client.run_turn(session_id, "Hello")
        listed = (await self.http.get(f"/v1/sessions/{session_id}/turns")).json()["data"]
        turn_id = listed[0]["id"] if listed else unused_id("turn_id")
        project = await self.http.post("/v1/projects", json={"url": f"https://git.example.com/{ids.new_id('name')}"})
        project_id = project.json()["id"]
        wanted = {"name": ids.new_id("name"), "project_ids": [project_id]}
        workspace = await self.http.post("/v1/workspaces", json=wanted)
        files = [(await self.http.post("/v1/files", files={"file": ("a", b"x")})).json()["id"] for _ in range(2)]
        mounted = [{"type": "file", "file_id": file_id} for file_id in files]
        where = f"/v1/sessions/{session_id}/resources"
        resources = [(await self.http.post(where, json=body)).json()["id"] for body in mounted]
        comment_id, item_id = unused_id("comment_id"), unused_id("item_id")
        if runs_steps:
            comment_id = (await self._create_comments(session_id))[0]
            item_id = await self._create_failed_turn(agent_id, environment_id, audience)
        return {
            "agent_id": agent_id,
            "environment_id": environment_id,
            "session_id": session_id,
            "turn_id": turn_id,
            "project_id": project_id,
            "workspace_id": workspace.json()["id"],
            "file_id": (await self.http.post("/v1/files", files={"file": ("b", b"y")}, data={**audience})).json()["id"],
            "resource_id": resources[0],
            "scope_id": session_id,
            "step_id": await self._create_pending_step(session_id),
            "recording_id": ids.new_id(ids.EVENT),  # no shell was opened
            "item_id": item_id,
            "comment_id": comment_id,
            **await self._create_template(agent_id, environment_id),
            "approval_id": await self._create_approval(audience),
            "question_id": await self._create_question(audience),
            **await self._create_batch(agent_id, environment_id, audience),
            **await self._create_deployment(agent_id, environment_id, audience),
            **await self._create_trigger(agent_id, environment_id, audience),
            **await self._create_member(),
            **await self._create_webhook(session_id),
            "thread_id": (await self.http.get(f"/v1/sessions/{session_id}/threads")).json()["data"][0]["id"],
        }

    async def _create_pending_step(self, session_id: str) -> str:
        """Pauses the session and adds a step, which does nothing when the session is played."""
        await self.http.post(f"/v1/sessions/{session_id}/pause")
        added = await self.http.post(f"/v1/sessions/{session_id}/steps", json={"steps": [SKIPPED_STEP]})
        return str(added.json()["data"][0]["id"])

    async def _create_failed_turn(self, agent_id: str, environment_id: str, audience: Mapping[str, str]) -> str:
        """Creates a session whose only step fails. Returns the turn, which is in the inbox."""
        session_id = await self.client.session(agent_id, environment_id, extra_body=audience)
        await self._add_command(session_id, "false")
        found: list[str] = []

        async def has_failed() -> bool:
            listed = (await self.http.get("/v1/inbox", params={"kind": "failure", "limit": 100})).json()["data"]
            found[:] = [item["id"] for item in listed if item["session"]["id"] == session_id]
            return bool(found)

        require(holds=await wait_until(has_failed, 60), otherwise=f"no step of {session_id} has failed")
        return found[0]

    async def _create_comments(self, session_id: str) -> list[str]:
        """Runs a step that writes the file of `COMMENT`, and adds two comments on it."""
        await self._add_command(session_id, f"echo one > {COMMENT['path']}")
        found: list[str] = []

        async def has_two() -> bool:
            added = await self.http.post(f"/v1/sessions/{session_id}/comments", json=COMMENT)
            found.extend([added.json()["id"]] if added.is_success else [])
            return len(found) > 1

        require(holds=await wait_until(has_two, 60), otherwise=f"the step of {session_id} wrote no file")
        return found

    async def _add_command(self, session_id: str, command: str) -> None:
        step: JsonObject = {"kind": "shell", "command": command}
        (await self.http.post(f"/v1/sessions/{session_id}/steps", json={"steps": [step]})).raise_for_status()

    async def _create_template(self, agent_id: str, environment_id: str) -> dict[str, str]:
        """Creates a template, unless the key is restricted to projects."""
        session = {"agent": agent_id, "environment_id": environment_id}
        body = {"name": ids.new_id("name"), "session": session}
        created = await self.http.post("/v1/session_templates", json=body)
        return {} if created.status_code == httpx2.codes.FORBIDDEN else {"template_id": created.json()["id"]}

    async def _create_batch(self, agent_id: str, environment_id: str, audience: Mapping[str, str]) -> dict[str, str]:
        """Creates a batch with two jobs that do nothing, unless the key is restricted to projects."""
        job = build_job({"agent_id": agent_id, "environment_id": environment_id})
        body = {"requests": [job, {**job, "custom_id": "b"}], **audience}
        created = await self.http.post("/v1/session_batches", json=body)
        return {} if created.status_code == httpx2.codes.FORBIDDEN else {"batch_id": created.json()["id"]}

    async def _create_deployment(
        self, agent_id: str, environment_id: str, audience: Mapping[str, str]
    ) -> dict[str, str]:
        """Creates a deployment and a run whose session does nothing, unless the key is restricted to projects."""
        work = {"agent": agent_id, "environment_id": environment_id, "steps": [SKIPPED_STEP]}
        created = await self.http.post("/v1/deployments", json={"name": ids.new_id("name"), **work, **audience})
        if created.status_code == httpx2.codes.FORBIDDEN:
            return {}
        deployment_id = created.json()["id"]
        run = await self.http.post(f"/v1/deployments/{deployment_id}/run")
        return {"deployment_id": deployment_id, "deployment_run_id": run.json()["id"]}

    async def _create_trigger(self, agent_id: str, environment_id: str, audience: Mapping[str, str]) -> dict[str, str]:
        """Creates a trigger with two deliveries that do nothing, unless the key is restricted to projects."""
        work = {"agent": agent_id, "environment_id": environment_id, "steps": [SKIPPED_STEP], "condition": "false"}
        created = await self.http.post("/v1/triggers", json={"name": ids.new_id("name"), **work, **audience})
        if created.status_code == httpx2.codes.FORBIDDEN:
            return {}
        trigger = created.json()
        for _ in range(2):
            headers = sign_delivery(trigger["secret"], ids.new_id("delivery"), "{}")
            sent = await self.http.post(f"/v1/triggers/{trigger['id']}", content="{}", headers=headers)
            sent.raise_for_status()
        return {"trigger_id": trigger["id"]}

    async def _create_member(self) -> dict[str, str]:
        """Creates a member, a team and a key, if the caller is an administrator."""
        member = await self.http.post("/v1/members", json={"name": ids.new_id("name")})
        if member.status_code == httpx2.codes.FORBIDDEN:
            return {}
        team = await self.http.post("/v1/teams", json={"name": ids.new_id("name")})
        key = await self.http.post("/v1/api_keys", json={"name": ids.new_id("name"), "member_id": member.json()["id"]})
        return {"member_id": member.json()["id"], "team_id": team.json()["id"], "key_id": key.json()["id"]}

    async def create_group(self, own: "Ids", audience: Mapping[str, str] = EVERYONE) -> dict[str, str]:
        """Creates a session with a child and returns the id of the child's group."""
        parent = await self.client.session(own["agent_id"], own["environment_id"], extra_body=audience)
        step: JsonObject = {"kind": "parallel", "sessions": [{"shell": "true"}]}
        (await self.http.post(f"/v1/sessions/{parent}/steps", json={"steps": [step]})).raise_for_status()
        found: list[JsonObject] = []

        async def has_child() -> bool:
            found[:] = (await self.http.get("/v1/sessions", params={"parent_id": parent})).json()["data"]
            return bool(found)

        require(holds=await wait_until(has_child, 60), otherwise=f"{parent} started no child")
        return {"parent_id": parent, "group_id": str(found[0]["group_id"])}

    async def _create_webhook(self, session_id: str) -> dict[str, str]:
        """Creates a webhook endpoint of the session with two deliveries, and subscribes a browser, unless the key is
        restricted to projects.
        """
        body = {"url": new_webhook_url(), "session_id": session_id}
        created = await self.http.post("/v1/webhook_endpoints", json=body)
        if created.status_code == httpx2.codes.FORBIDDEN:
            return {}
        endpoint_id = created.json()["id"]
        sent = [await self.http.post(f"/v1/webhook_endpoints/{endpoint_id}/test") for _ in range(2)]
        browser = await self.http.post("/v1/push_subscriptions", json=new_push_subscription())
        return {
            "endpoint_id": endpoint_id,
            "delivery_id": sent[0].json()["id"],
            "subscription_id": browser.json()["id"],
        }

    async def _create_approval(self, audience: Mapping[str, str]) -> str:
        """Creates two pending approvals and returns the id of one."""
        asking = {**TOOLSET, "default_config": {"permission_policy": {"type": "always_ask"}}}
        agent_id = await self.client.agent(tools=[asking], extra_body={"harness": "native"})
        session_id = await self.client.session(agent_id, extra_body=audience)
        await self.client.run_turn(session_id, f"Go. [[script:{_APPROVAL_SCRIPT}]]")
        waiting = await self.http.get("/v1/approvals", params={"session_id": session_id})
        return str(waiting.json()["data"][0]["id"])

    async def _create_question(self, audience: Mapping[str, str]) -> str:
        """Creates a pending question and returns its id."""
        agent_id = await self.client.agent(tools=[{**TOOLSET, "ask_user": True}], extra_body={"harness": "native"})
        session_id = await self.client.session(agent_id, extra_body=audience)
        await self.client.run_turn(session_id, f"Go. [[script:{_QUESTION_SCRIPT}]]")
        waiting = await self.http.get("/v1/questions", params={"session_id": session_id})
        return str(waiting.json()["data"][0]["id"])


Ids = dict[str, str]
"""Ids by path parameter."""


def new_webhook_url() -> str:
    """Returns a URL at which nothing listens."""
    return f"https://hooks.example.invalid/{ids.new_id('name')}"


def new_push_subscription() -> JsonObject:
    """Returns a subscription of a browser at a push service where nothing listens."""
    return {"endpoint": f"https://push.example.invalid/{ids.new_id('name')}", "keys": {**BrowserKeys("/").to_json()}}


def build_job(own: Ids) -> JsonObject:
    """Returns a request of a batch, which runs nothing."""
    return {
        "custom_id": "a",
        "agent": own["agent_id"],
        "environment_id": own["environment_id"],
        "steps": [SKIPPED_STEP],
    }


@dataclass(frozen=True, slots=True)
class VisibleResponse:
    """The visible parts of a response, with object ids and the request id replaced."""

    status: int
    headers: Mapping[str, str]
    body: str


@dataclass(frozen=True, slots=True)
class IdRequest:
    """One request that refers to objects by id, in its path or body."""

    operation: Operation
    ids: Mapping[str, str]
    """Ids by path parameter or body field."""
    body: Any = None
    query: tuple[tuple[str, str], ...] = ()

    def with_ids(self, others: Mapping[str, str]) -> "IdRequest":
        return replace(self, ids={**self.ids, **others})

    async def send(self, http: httpx2.AsyncClient) -> VisibleResponse:
        method, url, body = self.request()
        async with http.stream(method, url, json=body, params=self.query) as response:
            streamed = response.headers["content-type"].startswith("text/event-stream")
            text = "" if streamed else (await response.aread()).decode()
        text = text.replace(response.headers["request-id"], "REQUEST")
        for name, value in self.ids.items():
            text = text.replace(value, name)
        headers = {name: value for name, value in response.headers.items() if name not in _VARYING_HEADERS}
        return VisibleResponse(response.status_code, headers, text)

    def request(self) -> tuple[str, str, Any]:
        body = self.body
        if body is not None:
            body = self._fill_ids(body)
        return self.operation.method, self.operation.url(self.ids), body

    def _fill_ids(self, body: Mapping[str, Any]) -> dict[str, Any]:
        filled = {name: _value(name, self.ids[name]) if name in self.ids else value for name, value in body.items()}
        if "requests" in body:
            filled["requests"] = [self._fill_ids(job) for job in body["requests"]]
        return filled


def _value(name: str, item_id: str) -> Any:
    return [item_id] if name.endswith("_ids") else item_id


def unused_id(name: str) -> str:
    """Returns an unused id of the same length and format."""
    return ids.new_id(ID_PREFIXES[BODY_IDS.get(name, name)])


def id_names(operation: Operation, document: OpenApiDocument) -> Sequence[str]:
    """Returns the names of the ids in a request of this operation. Raises for a name of an unknown kind."""
    if operation.path in PERSONAL_PATHS:
        return []
    names = list(operation.path_parameters)
    if operation.body is not None:
        for (*outer, name), schema in document.property_paths(operation.body):
            if not is_reference((*outer, name)) or not is_supported(schema) or not document.accepts_text(schema):
                continue
            path = ".".join((*outer, name))
            if (str(operation), path) in nested_references.REFERENCES:
                continue
            if name in BODY_IDS and outer in ([], ["requests"]):  # `requests`: the jobs of a batch
                names.append(name)
            else:
                raise NotHeld(f"{operation} takes {path!r} in its body, and the claim does not know what it refers to")
    unknown = [name for name in names if name not in ID_PREFIXES and name not in BODY_IDS]
    require(holds=not unknown, otherwise=f"{operation}: the claim has no ids for {unknown}")
    return [*dict.fromkeys(names)]


def build_requests(
    operation: Operation, document: OpenApiDocument, own: Ids
) -> Iterator[tuple[IdRequest, Sequence[str]]]:
    """Yields a request with the caller's own ids, and each combination of ids to replace by another organisation's."""
    names = id_names(operation, document)
    if not names:
        return
    in_body = [name for name in names if name not in operation.path_parameters]
    if operation.path == "/v1/policies/explain":  # a session has its own agent and projects
        for name in names:
            yield from _choices(operation, document, own, [name])
        return
    if not set(EXCLUSIVE_FIELDS) <= set(in_body):
        yield from _choices(operation, document, own, names)
        return
    for omitted in EXCLUSIVE_FIELDS:
        yield from _choices(operation, document, own, [name for name in names if name != omitted])


def _choices(
    operation: Operation, document: OpenApiDocument, own: Ids, names: Sequence[str]
) -> Iterator[tuple[IdRequest, Sequence[str]]]:
    mine = {name: own[BODY_IDS.get(name, name)] for name in names}
    body = None
    if operation.body is not None:
        minimal_body = document.minimal_value(operation.body, {**mine, "name": ids.new_id("name")})
        # Optional ids are included as well.
        body = minimal_body | {name: mine[name] for name in names if name not in operation.path_parameters}
        if operation.path == "/v1/limits":
            body |= {"name": "sessions", "scope": "member", "value": 1_000_000}
        if operation.path == "/v1/webhook_endpoints":
            body["url"] = new_webhook_url()
        if operation.path == "/v1/push_subscriptions":
            body |= new_push_subscription()
        if operation.path == "/v1/session_batches":
            in_job = {name: mine[name] for name in names}
            body = {"requests": [{**build_job(own), **in_job}]}
        if operation.path.endswith("/steps") or operation.path in {"/v1/deployments", "/v1/triggers"}:
            body["steps"] = [SKIPPED_STEP]
        body |= next((fields for end, fields in _FIELDS_BY_ENDING.items() if operation.path.endswith(end)), {})
    question = IdRequest(operation, mine, body)
    for count in range(1, len(names) + 1):
        for chosen in itertools.combinations(names, count):
            yield question, chosen


async def require_same_response(
    question: IdRequest, chosen: Sequence[str], foreign: Ids, stranger: Organisation
) -> None:
    """Requires that a stranger gets the same response for the owner's ids as for unused ids."""
    theirs = question.with_ids({name: foreign[BODY_IDS.get(name, name)] for name in chosen})
    nothing = question.with_ids({name: unused_id(name) for name in chosen})
    found, expected = await theirs.send(stranger.http), await nothing.send(stranger.http)
    where = f"{question.operation} with another organisation's {' and '.join(chosen)}"
    require(holds=found.status == 404, otherwise=f"{where}: {found}")
    require(holds=found == expected, otherwise=f"{where}: {found} instead of {expected}")


async def capture_state(owner: Organisation, targets: Sequence[Ids]) -> list[Any]:
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
            f"/v1/members/{target['member_id']}",
            f"/v1/api_keys/{target['key_id']}",
            f"/v1/deployments/{target['deployment_id']}",
            f"/v1/triggers/{target['trigger_id']}",
            f"/v1/session_templates/{target['template_id']}",
            f"/v1/inbox/{target['item_id']}",
            session,
            f"{session}/events",
            f"{session}/turns",
            f"{session}/steps",
            f"{session}/comments",
            f"{session}/playback",
        ):
            body = (await owner.http.get(path)).json()
            body.pop("stats", None)  # contains its age
            seen.append(body)
    return seen


async def compare_filters(
    operation: Operation, theirs: Ids, http: httpx2.AsyncClient, own: Ids, *, visible: frozenset[str] = frozenset()
) -> int:
    """Requires that a list filtered by a foreign id equals one filtered by an unused id. Returns their number.

    `visible`: parameters whose objects the caller may see.
    """
    compared = 0
    for name, schema in operation.query_parameters.items():
        if not is_reference([name]) or not is_supported(schema) or (str(operation), name) in PUBLIC_NAMES:
            continue
        if name in visible:
            continue
        kind = FILTER_IDS.get(name, name)
        require(holds=kind in theirs, otherwise=f"{operation}: the claim has no ids for the filter {name!r}")
        ids_ = {key: own[key] for key in operation.path_parameters}
        foreign, nothing = theirs[kind], unused_id(kind)
        requests = [IdRequest(operation, {**ids_, name: each}, query=((name, each),)) for each in (foreign, nothing)]
        found, expected = [await request.send(http) for request in requests]
        require(holds=found == expected, otherwise=f"{operation} by {name}: {found} instead of {expected}")
        compared += 1
    return compared


async def import_transcript(owner: Organisation, own: Ids) -> httpx2.Response:
    """Imports a transcript of one line with the owner's own agent and environment."""
    first = {"agent": own["agent_id"], "environment_id": own["environment_id"]}
    body = b"\n".join(orjson.dumps(line) for line in (first, {"line": TRANSCRIPT_LINE}))
    return await owner.http.post("/v1/sessions/import", content=body)


def is_reference(path: Sequence[str]) -> bool:
    """Returns whether a field of a body, or a query parameter, refers to an object."""
    *outer, name = path
    if name == "id":
        return outer[-1:] in (["agent"], ["agents"])
    return name in {"agent", "agents", "before", "ids[]"} or (
        name.endswith(("_id", "_ids")) and name not in NOT_REFERENCES
    )
