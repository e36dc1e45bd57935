"""Client methods for agents, models, environments, projects, workspaces, sessions, turns and deployments. There is one
class for each resource and one method for each route.

Further fields of a request body can be passed as keyword arguments, under their names in the API.
"""

import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from footplate.client.pagination import Pages, drop_none
from footplate.client.response_models import (
    Agent,
    Backend,
    Deleted,
    DeliveryResult,
    Deployment,
    DeploymentRun,
    Diff,
    Environment,
    ModelInfo,
    Project,
    SchedulePreview,
    Session,
    SessionCounts,
    SessionPin,
    SessionTemplate,
    TotalUsage,
    Turn,
    Workspace,
)
from footplate.client.transport import Transport

_MODELS_PAGE = 1000


class Agents:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def create(self, *, name: str, model: str, **fields: Any) -> Agent:
        body = drop_none(name=name, model=model, **fields)
        return Agent.model_validate(await self._transport.post("/v1/agents", body))

    async def retrieve(self, agent_id: str, *, version: int | None = None) -> Agent:
        return Agent.model_validate(await self._transport.get(f"/v1/agents/{agent_id}", drop_none(version=version)))

    async def update(self, agent_id: str, **fields: Any) -> Agent:
        """Creates a new version of the agent. A field that is None is cleared."""
        return Agent.model_validate(await self._transport.post(f"/v1/agents/{agent_id}", fields))

    def list(self, *, limit: int | None = None, include_archived: bool | None = None) -> Pages[Agent]:
        params = {"limit": limit, "include_archived": include_archived}
        return Pages(self._transport, "/v1/agents", Agent, params)

    def versions(self, agent_id: str, *, limit: int | None = None) -> Pages[Agent]:
        return Pages(self._transport, f"/v1/agents/{agent_id}/versions", Agent, {"limit": limit})

    async def archive(self, agent_id: str) -> Agent:
        return Agent.model_validate(await self._transport.post(f"/v1/agents/{agent_id}/archive"))


class Models:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def list(self) -> list[ModelInfo]:
        """Returns all models that are listed for the organisation's connections."""
        found: list[ModelInfo] = []
        params: dict[str, Any] = {"limit": _MODELS_PAGE}
        while True:
            page = await self._transport.get("/v1/models", params)
            found += [ModelInfo.model_validate(model) for model in page["data"]]
            if not page["has_more"]:
                return found
            params["after_id"] = page["last_id"]


class Environments:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def create(self, *, name: str, **fields: Any) -> Environment:
        return Environment.model_validate(
            await self._transport.post("/v1/environments", drop_none(name=name, **fields))
        )

    async def retrieve(self, environment_id: str) -> Environment:
        return Environment.model_validate(await self._transport.get(f"/v1/environments/{environment_id}"))

    def list(self, *, limit: int | None = None, include_archived: bool | None = None) -> Pages[Environment]:
        params = {"limit": limit, "include_archived": include_archived}
        return Pages(self._transport, "/v1/environments", Environment, params)

    async def archive(self, environment_id: str) -> Environment:
        return Environment.model_validate(await self._transport.post(f"/v1/environments/{environment_id}/archive"))

    async def delete(self, environment_id: str) -> Deleted:
        return Deleted.model_validate(await self._transport.delete(f"/v1/environments/{environment_id}"))

    def backends(self) -> Pages[Backend]:
        """The backends that sessions and environments may choose, the default first."""
        return Pages(self._transport, "/v1/backends", Backend, {})


class Projects:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def create(self, **fields: Any) -> Project:
        """Creates a project. Pass a `path` or a `url`."""
        return Project.model_validate(await self._transport.post("/v1/projects", drop_none(**fields)))

    async def retrieve(self, project_id: str) -> Project:
        return Project.model_validate(await self._transport.get(f"/v1/projects/{project_id}"))

    async def update(self, project_id: str, **fields: Any) -> Project:
        """Updates the project. A field that is None is cleared."""
        return Project.model_validate(await self._transport.post(f"/v1/projects/{project_id}", fields))

    def list(
        self, *, limit: int | None = None, path: str | None = None, include_archived: bool | None = None
    ) -> Pages[Project]:
        params = {"limit": limit, "path": path, "include_archived": include_archived}
        return Pages(self._transport, "/v1/projects", Project, params)

    async def archive(self, project_id: str) -> Project:
        return Project.model_validate(await self._transport.post(f"/v1/projects/{project_id}/archive"))


class Workspaces:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def create(self, *, name: str, project_ids: Sequence[str], **fields: Any) -> Workspace:
        body = drop_none(name=name, project_ids=[*project_ids], **fields)
        return Workspace.model_validate(await self._transport.post("/v1/workspaces", body))

    async def retrieve(self, workspace_id: str) -> Workspace:
        return Workspace.model_validate(await self._transport.get(f"/v1/workspaces/{workspace_id}"))

    async def update(self, workspace_id: str, **fields: Any) -> Workspace:
        return Workspace.model_validate(await self._transport.post(f"/v1/workspaces/{workspace_id}", fields))

    def list(self, *, limit: int | None = None, include_archived: bool | None = None) -> Pages[Workspace]:
        params = {"limit": limit, "include_archived": include_archived}
        return Pages(self._transport, "/v1/workspaces", Workspace, params)

    async def archive(self, workspace_id: str) -> Workspace:
        return Workspace.model_validate(await self._transport.post(f"/v1/workspaces/{workspace_id}/archive"))


class SessionTemplates:
    """Templates for new sessions. `session` is the body of the request that creates a session."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def create(self, *, name: str, session: Mapping[str, Any], description: str | None = None) -> SessionTemplate:
        body = drop_none(name=name, session={**session}, description=description)
        return SessionTemplate.model_validate(await self._transport.post("/v1/session_templates", body))

    async def retrieve(self, template_id: str) -> SessionTemplate:
        return SessionTemplate.model_validate(await self._transport.get(f"/v1/session_templates/{template_id}"))

    async def update(self, template_id: str, **fields: Any) -> SessionTemplate:
        path = f"/v1/session_templates/{template_id}"
        return SessionTemplate.model_validate(await self._transport.post(path, fields))

    def list(self, *, limit: int | None = None, include_archived: bool | None = None) -> Pages[SessionTemplate]:
        params = {"limit": limit, "include_archived": include_archived}
        return Pages(self._transport, "/v1/session_templates", SessionTemplate, params)

    async def archive(self, template_id: str) -> SessionTemplate:
        path = f"/v1/session_templates/{template_id}/archive"
        return SessionTemplate.model_validate(await self._transport.post(path))


def _session_filters(filters: Mapping[str, Any]) -> dict[str, Any]:
    lists = {"states": "state[]", "statuses": "statuses[]"}
    return {lists.get(name, name): value for name, value in filters.items() if value not in (None, ())}


class Sessions:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def create(self, *, agent: str | Mapping[str, Any], environment_id: str, **fields: Any) -> Session:
        """`agent` is an id, or `{"type": "agent_with_overrides", "id": …, "model": …}`. `backend` chooses where its
        commands run: `sandbox`, `docker` or `unsandboxed`.
        """
        body = drop_none(agent=agent, environment_id=environment_id, **fields)
        return Session.model_validate(await self._transport.post("/v1/sessions", body))

    async def retrieve(self, session_id: str) -> Session:
        return Session.model_validate(await self._transport.get(f"/v1/sessions/{session_id}"))

    async def usage(self, session_id: str) -> TotalUsage:
        """Returns the tokens and the cost of the session and of all sessions below it."""
        return TotalUsage.model_validate(await self._transport.get(f"/v1/sessions/{session_id}/usage"))

    def list(
        self,
        *,
        limit: int | None = None,
        statuses: Sequence[str] = (),
        agent_id: str | None = None,
        include_archived: bool | None = None,
        parent_id: str | None = None,
        group_id: str | None = None,
        deployment_id: str | None = None,
        pinned: bool | None = None,
        **filters: str | bool | Sequence[str] | None,
    ) -> Pages[Session]:
        """Newest first. `parent_id`: only the children of this session. `filters`: see `count`."""
        params = {
            "pinned": pinned,
            "deployment_id": deployment_id,
            "parent_id": parent_id,
            "group_id": group_id,
            "limit": limit,
            "agent_id": agent_id,
            "include_archived": include_archived,
            "statuses[]": list(statuses) or None,
            **_session_filters(filters),
        }
        return Pages(self._transport, "/v1/sessions", Session, params)

    async def count(self, **filters: str | bool | Sequence[str] | None) -> SessionCounts:
        """Returns the number of sessions in each state. `filters` are `q` (words of titles, messages and paths),
        `states`, `project_id`, `owner_id`, `harness`, `agent_id`, `stuck` and the others of `list`.
        """
        found = await self._transport.get("/v1/sessions/counts", drop_none(**_session_filters(filters)))
        return SessionCounts.model_validate(found)

    async def update(self, session_id: str, **fields: Any) -> Session:
        """Changes the session, for example its `title`, `visibility`, `team_id` or `owner_id`."""
        return Session.model_validate(await self._transport.post(f"/v1/sessions/{session_id}", fields))

    async def pin(self, session_id: str) -> SessionPin:
        """Pins the session for the caller."""
        return SessionPin.model_validate(await self._transport.put(f"/v1/sessions/{session_id}/pin"))

    async def unpin(self, session_id: str) -> SessionPin:
        return SessionPin.model_validate(await self._transport.delete(f"/v1/sessions/{session_id}/pin"))

    async def fork(self, session_id: str, *, at: str | int | None = None, **fields: Any) -> Session:
        """Creates a session that starts with this session's history, up to and including the event `at`.

        `at` is an event's id or position; without it, all history is included. Pass `agent`, `model`, `environment_id`,
        `title`, `metadata` and `initial_events` as keywords; fields that you omit are copied from the parent.
        """
        position = {"at_position": at} if isinstance(at, int) else drop_none(at_event_id=at)
        body = {**position, **fields}
        return Session.model_validate(await self._transport.post(f"/v1/sessions/{session_id}/fork", body))

    async def diff(self, session_id: str, **filters: str | int | None) -> Diff:
        """Returns the changes to the session's files: those of one turn (`turn_id`), those between two events
        (`from_event_id` or `from_position`, `to_event_id` or `to_position`), or all. `project_id` selects one project.
        """
        return Diff.model_validate(await self._transport.get(f"/v1/sessions/{session_id}/diff", drop_none(**filters)))

    def patch(self, session_id: str, **filters: str | int | None) -> AsyncIterator[bytes]:
        """Yields the same diff as a patch for `git apply`, in chunks. With several projects, pass a `project_id`.
        `state` selects changes that are `committed`, `staged`, `unstaged` or `untracked`.
        """
        return self._transport.stream_bytes(f"/v1/sessions/{session_id}/diff", drop_none(format="patch", **filters))

    async def merge(
        self, session_id: str, *, into: str | None = None, project_id: str | None = None, **fields: Any
    ) -> DeliveryResult:
        """Merges the session's work into a branch of the project's repository. Also takes `message`, `wait_seconds`."""
        body = drop_none(into=into, project_id=project_id, **fields)
        return DeliveryResult.model_validate(
            await self._transport.post_with_long_timeout(f"/v1/sessions/{session_id}/merge", body)
        )

    async def push(
        self, session_id: str, *, branch: str | None = None, project_id: str | None = None, **fields: Any
    ) -> DeliveryResult:
        """Pushes the session's work to a branch of its own in the project's repository."""
        body = drop_none(branch=branch, project_id=project_id, **fields)
        return DeliveryResult.model_validate(
            await self._transport.post_with_long_timeout(f"/v1/sessions/{session_id}/push", body)
        )

    def bundle(self, session_id: str, *, project_id: str | None = None) -> AsyncIterator[bytes]:
        """Yields the session's commits as a git bundle, in chunks. The bundle's ref is `refs/heads/session`."""
        return self._transport.stream_bytes(f"/v1/sessions/{session_id}/bundle", drop_none(project_id=project_id))

    async def import_transcript(
        self,
        lines: Callable[[], Iterable[bytes]],
        *,
        agent: str | Mapping[str, Any],
        environment_id: str,
        **fields: Any,
    ) -> Session:
        """Creates a session from a Claude Code transcript. `lines` are JSON objects such as `{"line": {…}}`, with a
        `subpath` for the lines of subagents. Importing the same lines again returns the same session.
        """
        first = json.dumps(drop_none(agent=agent, environment_id=environment_id, **fields)).encode() + b"\n"
        response = await self._transport.post_lines("/v1/sessions/import", lambda: itertools.chain([first], lines()))
        return Session.model_validate(response)

    def transcript(self, session_id: str) -> AsyncIterator[dict[str, Any]]:
        """Yields the transcript of a Claude Code session: first its `transcript_id`, then each line in the format of
        `import_transcript`, and last the number of `lines`.
        """
        return self._transport.stream_json_lines(f"/v1/sessions/{session_id}/transcript")

    async def end(
        self,
        session_id: str,
        *,
        outcome: Literal["completed", "failed", "cancelled"] = "completed",
        reason: str | None = None,
    ) -> Session:
        """Ends the session. A running turn is interrupted first; then `end` is None until it has stopped."""
        body = drop_none(outcome=outcome, reason=reason)
        return Session.model_validate(await self._transport.post(f"/v1/sessions/{session_id}/end", body))

    async def archive(self, session_id: str) -> Session:
        return Session.model_validate(await self._transport.post(f"/v1/sessions/{session_id}/archive"))

    async def delete(self, session_id: str) -> Deleted:
        return Deleted.model_validate(await self._transport.delete(f"/v1/sessions/{session_id}"))


class Turns:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def retrieve(self, session_id: str, turn_id: str) -> Turn:
        return Turn.model_validate(await self._transport.get(f"/v1/sessions/{session_id}/turns/{turn_id}"))

    def list(self, session_id: str, *, limit: int | None = None) -> Pages[Turn]:
        """Newest first."""
        return Pages(self._transport, f"/v1/sessions/{session_id}/turns", Turn, {"limit": limit})


class Deployments:
    """Deployments start sessions, by a schedule or on request. The command line calls them schedules."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def create(
        self, *, name: str, agent: str | Mapping[str, Any], environment_id: str, **fields: Any
    ) -> Deployment:
        """Needs `initial_events` or `steps`. `schedule` is `{"type": "cron", "expression": …, "timezone": …}`."""
        body = drop_none(name=name, agent=agent, environment_id=environment_id, **fields)
        return Deployment.model_validate(await self._transport.post("/v1/deployments", body))

    async def retrieve(self, deployment_id: str) -> Deployment:
        return Deployment.model_validate(await self._transport.get(f"/v1/deployments/{deployment_id}"))

    async def preview(self, *, expression: str, timezone: str) -> SchedulePreview:
        """Returns the next times of a schedule that does not exist yet."""
        params = {"expression": expression, "timezone": timezone}
        return SchedulePreview.model_validate(await self._transport.get("/v1/deployments/upcoming_runs", params))

    async def update(self, deployment_id: str, **fields: Any) -> Deployment:
        """Changes the fields that are passed. Its schedule runs in your name from then on."""
        return Deployment.model_validate(await self._transport.post(f"/v1/deployments/{deployment_id}", fields))

    def list(
        self,
        *,
        limit: int | None = None,
        status: Literal["active", "paused"] | None = None,
        agent_id: str | None = None,
        include_archived: bool | None = None,
    ) -> Pages[Deployment]:
        """Newest first."""
        params = {"limit": limit, "status": status, "agent_id": agent_id, "include_archived": include_archived}
        return Pages(self._transport, "/v1/deployments", Deployment, params)

    async def pause(self, deployment_id: str) -> Deployment:
        return Deployment.model_validate(await self._transport.post(f"/v1/deployments/{deployment_id}/pause"))

    async def unpause(self, deployment_id: str) -> Deployment:
        """Resumes the schedule, which runs in your name from then on."""
        return Deployment.model_validate(await self._transport.post(f"/v1/deployments/{deployment_id}/unpause"))

    async def archive(self, deployment_id: str) -> Deployment:
        return Deployment.model_validate(await self._transport.post(f"/v1/deployments/{deployment_id}/archive"))

    async def run(self, deployment_id: str) -> DeploymentRun:
        """Starts a run now. If it could not create a session, the run has an error."""
        return DeploymentRun.model_validate(await self._transport.post(f"/v1/deployments/{deployment_id}/run"))


class DeploymentRuns:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def retrieve(self, run_id: str) -> DeploymentRun:
        return DeploymentRun.model_validate(await self._transport.get(f"/v1/deployment_runs/{run_id}"))

    def list(
        self,
        *,
        deployment_id: str | None = None,
        has_error: bool | None = None,
        trigger_type: Literal["schedule", "manual"] | None = None,
        limit: int | None = None,
    ) -> Pages[DeploymentRun]:
        """Newest first."""
        params = {
            "deployment_id": deployment_id,
            "has_error": has_error,
            "trigger_type": trigger_type,
            "limit": limit,
        }
        return Pages(self._transport, "/v1/deployment_runs", DeploymentRun, params)
