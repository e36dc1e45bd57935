"""Requests whose body refers to another organisation's object in a way of its own: deep inside, or next to a field that
it needs.

The table names each such field by its operation and its path in the body. A field that is neither here nor in
`organisation_isolation.BODY_IDS` fails the claim.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import httpx2
import orjson

from bench.prove.figure import require
from footplate.domain import ids
from footplate.domain.json import Json, JsonObject
from footplate.domain.sessions import events
from footplate.stack.orphan_processes import wait_until

Reference = tuple[str, str]
"""An operation, such as "POST /v1/agents", and the path of a field in its body."""
SKIPPED_STEP: Final[JsonObject] = {"kind": "shell", "command": "true", "condition": "false"}
TRANSCRIPT_LINE: Final[JsonObject] = {
    "type": "user",
    "uuid": "u",
    "parentUuid": None,
    "message": {"role": "user", "content": "Hello"},
}
_SESSION: Final = "POST /v1/sessions/{session_id}"
_BATCHES: Final = "POST /v1/session_batches"
_DEPLOYMENTS: Final = ("POST /v1/deployments", "POST /v1/deployments/{deployment_id}")
_TEMPLATES: Final = ("POST /v1/session_templates", "POST /v1/session_templates/{template_id}")
_TRIGGERS: Final = ("POST /v1/triggers", "POST /v1/triggers/{trigger_id}/update")
_STEPS: Final = (
    (f"{_SESSION}/steps", ""),
    (_BATCHES, "requests."),
    *((each, "") for each in (*_DEPLOYMENTS, *_TRIGGERS)),
)
"""Operations that take steps, and the path to them."""
_INITIAL_EVENTS: Final = tuple(f"initial_events.content.source.{name}" for name in ("file_id", "project_id"))
_WITH_INITIAL_EVENTS: Final = ("POST /v1/sessions", f"{_SESSION}/fork", *_DEPLOYMENTS)
_GENERATED: Final = re.compile(
    r'\bwhsec_[\w+/=]+|\b[a-z]+_[0-9a-z]{26}\b|\d{4}-\d\d-\d\dT[\d:.]+Z|(?<="sort_key":)\d+|(?<="duration_ms":)\d+'
)
STATUSES: Final[Mapping[Reference, int]] = {
    # The session's own events, threads, steps, projects and members are searched, and no others.
    (f"{_SESSION}/events", "events.session_thread_id"): 400,
    (f"{_SESSION}/events", "events.tool_use_id"): 400,
    (f"{_SESSION}/events", "events.custom_tool_use_id"): 400,
    (f"{_SESSION}/steps", "before"): 409,
    (f"{_SESSION}/steps/{{step_id}}/move", "before"): 409,
    (f"{_SESSION}/fork", "at_event_id"): 400,
    (f"{_SESSION}/merge", "project_id"): 400,
    (f"{_SESSION}/push", "project_id"): 400,
    (f"{_SESSION}/comments", "project_id"): 400,
    ("POST /v1/teams/{team_id}", "remove_member_ids"): 200,
    # These are looked up when the step runs; see `compare_step_results`.
    (f"{_SESSION}/steps/{{step_id}}", "project_id"): 200,
    (f"{_SESSION}/steps/{{step_id}}", "content.source.project_id"): 200,
    (f"{_SESSION}/events", "events.content.source.project_id"): 200,
    **{(operation, "initial_events.content.source.project_id"): 200 for operation in _WITH_INITIAL_EVENTS},
    **{(operation, f"session.{_INITIAL_EVENTS[1]}"): 200 for operation in _TEMPLATES},
    (_BATCHES, "requests.prompt.source.project_id"): 200,
    **{
        (operation, f"{outer}{path}"): 200
        for operation, outer in _STEPS
        for path in (
            *("steps.project_id", "steps.sessions.agent", "steps.content.source.project_id"),
            "steps.sessions.steps.content.source.project_id",
        )
    },
}
"""The status of each reference whose status is not 404."""


def find_references(own: Mapping[str, str], other: Mapping[str, str]) -> dict[Reference, Sequence[JsonObject]]:
    """Returns the bodies for each reference: those of the caller with its own ids, that refer to an object in `other`.
    Both have ids by path parameter.
    """
    session: JsonObject = {"agent": own["agent_id"], "environment_id": own["environment_id"]}
    job: JsonObject = {"custom_id": "a", **session}
    shared: JsonObject = {"visibility": "team", "team_id": other["team_id"]}
    message: JsonObject = {"type": events.USER_MESSAGE, "content": [_document(other)]}
    with_path: JsonObject = {"type": events.USER_MESSAGE, "content": [_project_file(other)]}
    mounted: JsonObject = {"resources": [{"type": "file", "file_id": other["file_id"]}]}
    confirmed: JsonObject = {"type": events.USER_TOOL_CONFIRMATION, "tool_use_id": other["approval_id"]}
    returned: JsonObject = {"type": events.USER_CUSTOM_TOOL_RESULT, "custom_tool_use_id": other["approval_id"]}
    stopped: JsonObject = {"type": events.USER_INTERRUPT, "session_thread_id": other["thread_id"]}
    comment: JsonObject = {"path": "a", "start_line": 1, "end_line": 1, "body": "Why?"}
    found: dict[Reference, Sequence[JsonObject]] = {
        (f"{_SESSION}/events", "events.content.source.file_id"): [{"events": [message]}],
        (f"{_SESSION}/events", "events.content.source.project_id"): [{"events": [with_path]}],
        (f"{_SESSION}/events", "events.session_thread_id"): [{"events": [stopped]}],
        (f"{_SESSION}/events", "events.tool_use_id"): [{"events": [{**confirmed, "result": "allow"}]}],
        (f"{_SESSION}/events", "events.custom_tool_use_id"): [{"events": [{**returned, "content": []}]}],
        ("POST /v1/sessions/import", "team_id"): [{**session, **shared, "agent": own["claude_agent_id"]}],
        ("POST /v1/sessions/import", "agent.id"): [{**session, "agent": form} for form in _agents(other)],
        ("POST /v1/sessions", "team_id"): [{**session, **shared}],
        ("POST /v1/sessions", "agent.id"): [{**session, "agent": form} for form in _agents(other)],
        ("POST /v1/sessions", "initial_events.content.source.file_id"): [{**session, "initial_events": [message]}],
        ("POST /v1/sessions", "initial_events.content.source.project_id"): [{**session, "initial_events": [with_path]}],
        ("POST /v1/sessions", "resources.file_id"): [{**session, **mounted}],
        (_SESSION, "team_id"): [shared],
        (f"{_SESSION}/comments", "turn_id"): [{**comment, "turn_id": other["turn_id"]}],
        (f"{_SESSION}/comments", "project_id"): [{**comment, "project_id": other["project_id"]}],
        (f"{_SESSION}/comments/send", "comment_ids"): [{"comment_ids": [other["comment_id"]]}],
        (_SESSION, "owner_id"): [{"owner_id": other["member_id"]}],
        (f"{_SESSION}/steps", "before"): [{"steps": [SKIPPED_STEP], "before": other["step_id"]}],
        (f"{_SESSION}/steps/{{step_id}}/move", "before"): [{"before": other["step_id"]}],
        (f"{_SESSION}/steps/{{step_id}}", "project_id"): [{"project_id": other["project_id"]}],
        (f"{_SESSION}/steps/{{step_id}}", "content.source.file_id"): [{"content": [_document(other)]}],
        (f"{_SESSION}/steps/{{step_id}}", "content.source.project_id"): [{"content": [_project_file(other)]}],
        (f"{_SESSION}/fork", "agent.id"): [{"agent": form} for form in _agents(other)],
        (f"{_SESSION}/fork", "at_event_id"): [{"at_event_id": other["approval_id"]}],
        (f"{_SESSION}/fork", "initial_events.content.source.file_id"): [{"initial_events": [message]}],
        (f"{_SESSION}/fork", "initial_events.content.source.project_id"): [{"initial_events": [with_path]}],
        (f"{_SESSION}/merge", "project_id"): [{"project_id": other["project_id"]}],
        (f"{_SESSION}/push", "project_id"): [{"project_id": other["project_id"]}],
        (_BATCHES, "team_id"): [{"requests": [{**job, "steps": [SKIPPED_STEP]}], **shared}],
        (_BATCHES, "requests.agent.id"): [
            {"requests": [{**job, "agent": form, "steps": [SKIPPED_STEP]}]} for form in _agents(other)
        ],
        (_BATCHES, "requests.prompt.source.file_id"): [{"requests": [{**job, "prompt": [_document(other)]}]}],
        (_BATCHES, "requests.prompt.source.project_id"): [{"requests": [{**job, "prompt": [_project_file(other)]}]}],
        ("POST /v1/policies/replay", "project_id"): [
            {"project_id": other["project_id"], "permissions": {"deny": ["Bash(shutdown *)"]}}
        ],
        ("POST /v1/members/{member_id}", "successor_id"): [{"disabled": True, "successor_id": other["member_id"]}],
        ("POST /v1/teams/{team_id}", "remove_member_ids"): [{"remove_member_ids": [other["member_id"]]}],
    }
    found |= {
        (template, f"session.{path}"): [_template(body) for body in found["POST /v1/sessions", path]]
        for template in _TEMPLATES
        for path in ("team_id", "agent.id", "resources.file_id", *_INITIAL_EVENTS)
    }
    for template in _TEMPLATES:
        found[template, "session.agent"] = [_template({**session, "agent": other["agent_id"]})]
        found[template, "session.environment_id"] = [_template({**session, "environment_id": other["environment_id"]})]
        found[template, "session.project_ids"] = [_template({**session, "project_ids": [other["project_id"]]})]
        found[template, "session.workspace_id"] = [_template({**session, "workspace_id": other["workspace_id"]})]
    for path, step in _steps(other):
        found[f"{_SESSION}/steps", path] = [{"steps": [step]}]
        found[_BATCHES, f"requests.{path}"] = [{"requests": [{**job, "steps": [step]}]}]
    for deployments in _DEPLOYMENTS:
        named: JsonObject = {"name": ids.new_id("name"), **session}
        for path, step in _steps(other):
            found[deployments, path] = [{**named, "steps": [step]}]
        planned: JsonObject = {**named, "steps": [SKIPPED_STEP]}
        found[deployments, "team_id"] = [{**planned, **shared}]
        found[deployments, "agent.id"] = [{**planned, "agent": form} for form in _agents(other)]
        found[deployments, "resources.file_id"] = [{**planned, **mounted}]
        found[deployments, "initial_events.content.source.file_id"] = [{**named, "initial_events": [message]}]
        found[deployments, "initial_events.content.source.project_id"] = [{**named, "initial_events": [with_path]}]
    for triggers in _TRIGGERS:
        found |= {(triggers, path): [_trigger(session, steps=[step])] for path, step in _steps(other)}
        found[triggers, "team_id"] = [_trigger(session, **shared)]
        found[triggers, "agent.id"] = [_trigger(session, agent=form) for form in _agents(other)]
    found["POST /v1/triggers", "session_id"] = [_trigger({"session_id": other["session_id"]})]
    for agents in ("POST /v1/agents", "POST /v1/agents/{agent_id}"):
        described: JsonObject = {"version": 2} if "agent_id" in agents else {"name": "a", "model": "scripted"}
        agent: JsonObject = {"type": "agent", "id": other["agent_id"]}
        references: list[JsonObject] = [agent, {**agent, "version": 1}]
        for path, members in (("multiagent.agents", [other["agent_id"]]), ("multiagent.agents.id", references)):
            found[agents, path] = [
                {**described, "multiagent": {"type": "coordinator", "agents": [member]}} for member in members
            ]
    return found


def _template(session: JsonObject) -> JsonObject:
    return {"name": ids.new_id("name"), "session": session}


def _trigger(target: JsonObject, **fields: Json) -> JsonObject:
    return {"name": ids.new_id("name"), "steps": [SKIPPED_STEP], **target, **fields}


def _document(other: Mapping[str, str]) -> JsonObject:
    return {"type": "document", "source": {"type": "file", "file_id": other["file_id"]}}


def _project_file(other: Mapping[str, str]) -> JsonObject:
    return {"type": "file", "source": {"type": "path", "path": "README.md", "project_id": other["project_id"]}}


def _agents(other: Mapping[str, str]) -> Iterator[JsonObject]:
    """Yields the forms of a reference to an agent: alone, with a version, and with overrides."""
    agent_id = other["agent_id"]
    yield {"type": "agent", "id": agent_id}
    yield {"type": "agent", "id": agent_id, "version": 1}
    yield {"type": "agent_with_overrides", "id": agent_id, "system": "Whose are you?"}


def _steps(other: Mapping[str, str]) -> Iterator[tuple[str, JsonObject]]:
    """Yields steps that refer to an object, with the path of the reference."""
    prompt: JsonObject = {"kind": "prompt", "content": [_document(other)], "condition": "false"}
    with_path: JsonObject = {**prompt, "content": [_project_file(other)]}
    parallel: JsonObject = {"kind": "parallel", "condition": "false"}
    yield "steps.project_id", {"kind": "merge", "project_id": other["project_id"], "condition": "false"}
    yield "steps.content.source.file_id", prompt
    yield "steps.content.source.project_id", with_path
    yield "steps.sessions.agent", {**parallel, "sessions": [{"agent": other["agent_id"], "shell": "true"}]}
    yield "steps.sessions.steps.content.source.file_id", {**parallel, "sessions": [{"steps": [prompt]}]}
    yield "steps.sessions.steps.content.source.project_id", {**parallel, "sessions": [{"steps": [with_path]}]}


REFERENCES: Final = frozenset(find_references(defaultdict(str), defaultdict(str)))


async def compare_references(
    http: httpx2.AsyncClient, own: Mapping[str, str], foreign: Mapping[str, str], unused: Mapping[str, str]
) -> int:
    """Requires that each reference to a foreign object gets the response of one that does not exist. Returns how many
    were compared.
    """
    own = await _create_own(http, own)
    theirs, nothing = find_references(own, foreign), find_references(own, unused)
    compared = 0
    for (operation, path), bodies in theirs.items():
        method, route = operation.split(" ")
        url = route.format_map(_path_ids(operation, path, own))
        for body, other in zip(bodies, nothing[operation, path], strict=True):
            contents = [_encode_body(route, each) for each in (body, other)]
            found, expected = [await http.request(method, url, content=each) for each in contents]
            _require_same(found, expected, (operation, path))
            compared += 1
    shared = [{"visibility": "team", "team_id": each["team_id"]} for each in (foreign, unused)]
    found, expected = [await http.post("/v1/files", files={"file": ("a", b"x")}, data=each) for each in shared]
    _require_same(found, expected, ("POST /v1/files", "team_id"))
    return compared + 1


def _encode_body(route: str, body: JsonObject) -> bytes:
    """Returns the body as JSON, for an import with a transcript of one line."""
    lines = [body, {"line": TRANSCRIPT_LINE}] if route.endswith("/import") else [body]
    return b"\n".join(orjson.dumps(line) for line in lines)


def _require_same(found: httpx2.Response, expected: httpx2.Response, reference: Reference) -> None:
    status = STATUSES.get(reference, httpx2.codes.NOT_FOUND)
    texts = [_GENERATED.sub("ID", response.text) for response in (found, expected)]
    require(
        holds=found.status_code == expected.status_code == status and texts[0] == texts[1],
        otherwise=f"{reference}: {found.status_code} {texts[0]} instead of {expected.status_code} {texts[1]}",
    )


async def compare_step_results(
    http: httpx2.AsyncClient, own: Mapping[str, str], foreign: Mapping[str, str], unused: Mapping[str, str]
) -> int:
    """Requires that a step that refers to a foreign object fails like one whose object does not exist, for references
    that are looked up when the step runs. Returns how many were compared.
    """
    compared = 0
    for number, (path, _) in enumerate(_steps(foreign)):
        if STATUSES.get((f"{_SESSION}/steps", path)) != httpx2.codes.OK:
            continue
        found, expected = [await _run_step(http, own, [*_steps(each)][number][1]) for each in (foreign, unused)]
        require(
            holds='"status":"failed"' in found and found == expected,
            otherwise=f"a step with another organisation's {path}: {found} instead of {expected}",
        )
        compared += 1
    return compared


async def _run_step(http: httpx2.AsyncClient, own: Mapping[str, str], step: JsonObject) -> str:
    """Runs the step in a new session and returns its result. The session has no project, because none of these can be
    cloned here: a merge step searches the session's projects as `POST /merge` does, which is compared with a project.
    """
    session_id = await _create_session(http, own, project_ids=[])
    steps = f"/v1/sessions/{session_id}/steps"
    added = (await http.post(steps, json={"steps": [{**step, "condition": None}]})).raise_for_status()
    step_id, result = added.json()["data"][0]["id"], None

    async def has_result() -> bool:
        nonlocal result
        result = (await http.get(f"{steps}/{step_id}")).raise_for_status().json()["result"]
        return result is not None

    require(holds=await wait_until(has_result, 60), otherwise=f"{step} has no result")
    return _GENERATED.sub("ID", orjson.dumps(result).decode())


async def _create_session(http: httpx2.AsyncClient, own: Mapping[str, str], project_ids: Sequence[str]) -> str:
    body = {"agent": own["agent_id"], "environment_id": own["environment_id"], "project_ids": [*project_ids]}
    return str((await http.post("/v1/sessions", json=body)).raise_for_status().json()["id"])


async def _create_own(http: httpx2.AsyncClient, own: Mapping[str, str]) -> dict[str, str]:
    """Creates objects of the caller that have such references: a session with a project, steps, and an agent of Claude
    Code.
    """
    session_id = await _create_session(http, own, [own["project_id"]])
    model = (await http.get(f"/v1/agents/{own['agent_id']}")).raise_for_status().json()["model"]["id"]
    agent = {"name": ids.new_id("name"), "model": model, "harness": "claude"}
    claude_agent_id = (await http.post("/v1/agents", json=agent)).raise_for_status().json()["id"]
    (await http.post(f"/v1/sessions/{session_id}/pause")).raise_for_status()
    steps = [{"kind": "merge"}, {"kind": "prompt", "content": "Hello"}]
    added = (await http.post(f"/v1/sessions/{session_id}/steps", json={"steps": steps})).raise_for_status()
    merge, prompt = (step["id"] for step in added.json()["data"])
    parts = {"session_id": session_id, "step_id": merge, "prompt_step_id": prompt}
    return {**own, **parts, "claude_agent_id": claude_agent_id}


def _path_ids(operation: str, path: str, own: Mapping[str, str]) -> dict[str, str]:
    is_prompt = operation.endswith("/{step_id}") and path.startswith("content")
    return {**own, "step_id": own["prompt_step_id"]} if is_prompt else {**own}
