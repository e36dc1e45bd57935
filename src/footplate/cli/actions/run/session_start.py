"""Implements the shared part of `footplate run` and `attach`: creates or continues a session, sends the message, and
follows the turn to its end.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from footplate.cli import defaults
from footplate.cli.actions import projects as project_actions
from footplate.cli.actions.members import resolve_audience
from footplate.cli.actions.projects import SelectedProjects
from footplate.cli.actions.run import message_content, tool_selection
from footplate.cli.actions.run.message_content import NO_ATTACHMENTS, MessageAttachments
from footplate.cli.follow.live_approvals import LiveApprovalView
from footplate.cli.follow.turn_follower import TurnFollower
from footplate.cli.json_output_models import RunResult
from footplate.cli.profile import saved_ids
from footplate.cli.profile.server_profiles import Server
from footplate.cli.render import terminal_io, value_formatting
from footplate.cli.render.turn_views import TurnView
from footplate.client import AsyncFootplate, ClientError, Conflict, InvalidRequest, NotFound, Session
from footplate.client.pagination import drop_none

T = TypeVar("T")
_ID_PREFIX: Final = "sesn_"
_ID_LENGTH: Final = 31
_MAX_CANDIDATES: Final = 5
_MAX_COMPLETED_SESSIONS: Final = 1000
_TOOL_RESULTS: Final = ("agent.tool_result", "agent.mcp_tool_result", "user.custom_tool_result")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    prompt: str = ""
    """Empty: the session starts without a message."""
    session: str | None = None
    background: bool = False
    """The session runs without a watching user."""
    fork_at: str | None = None
    """Continue in a fork of the session at this event instead of the session itself."""
    agent: str | None = None
    environment: str | None = None
    backend: str | None = None
    shell_mode: str | None = None
    """Where the commands run: on the `host` or in a `container`. None: as the backend does."""
    model: str | None = None
    harness: str | None = None
    system: str | None = None
    max_turns: int | None = None
    retry_delay: float | None = None
    """Seconds before the first retry of a failed turn."""
    title: str | None = None
    directory: str | None = None
    """Working directory, if the server can see it. None for a directory of the session."""
    projects: tuple[str, ...] = ()
    """Ids or paths. The first project is the working directory."""
    include_uncommitted: bool = False
    """Whether the session starts with the uncommitted changes of the projects."""
    attachments: MessageAttachments = NO_ATTACHMENTS
    requires_directory: bool = False
    """Whether the user named the directory, so that no other one may be used."""
    tool_limit: tool_selection.ToolLimit = tool_selection.NO_LIMIT
    visibility: str | None = None
    team: str | None = None
    """Id or name of the team that can see the session."""
    end_when_done: bool = False
    """Whether the session ends by itself when nothing is left in its queue."""
    audience: Mapping[str, str] = field(default_factory=dict)
    """Who can see the session and the files that are uploaded, as fields of the API. `start_turn` sets it."""

    @property
    def overrides(self) -> dict[str, Any]:
        limits = drop_none(max_iterations=self.max_turns, retry_delay_seconds=self.retry_delay)
        return drop_none(model=self.model, system=self.system, limits=limits or None, shell_mode=self.shell_mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkRequest:
    session: str
    at: str
    """Id or position of an event. `last` is the newest."""
    turn: int | None = None
    """Number of the turn at whose end the fork starts, instead of an event. The session's first turn is 1."""
    last_tool: bool = False
    """The fork starts at the result of the last tool call, instead of an event."""
    agent: str | None = None
    model: str | None = None
    title: str | None = None


@dataclass(frozen=True, slots=True)
class StartedTurn:
    session_id: str
    after: str
    """Position in the log before the message and everything that follows from it."""
    input_id: str | None = None
    has_started: bool = False
    """Whether `after` is the position before the turn, so that all events belong to it."""


async def start_turn(client: AsyncFootplate, server: Server, request: RunRequest) -> StartedTurn:
    start = _continue_in_fork if request.fork_at else _continue_session if request.session else _start_session
    started = await start(client, server, replace(request, audience=await _find_audience(client, request)))
    saved_ids.remember_ids(client.base_url, session=started.session_id)
    return started


async def _find_audience(client: AsyncFootplate, request: RunRequest) -> Mapping[str, str]:
    """Returns who can see a new session. Files for an existing session are visible to those who can see the session."""
    if request.session is None:
        return await resolve_audience(client, request.visibility, request.team)
    if not request.attachments:
        return {}
    return await message_content.find_session_audience(client, await resolve_session_id(client, request.session))


async def follow_turn(
    client: AsyncFootplate,
    started: StartedTurn,
    view: TurnView,
    *,
    limit: float | None = None,
    asks: bool = False,
    show_all: bool = False,
) -> RunResult:
    """Follows the turn for at most `limit` seconds. With `asks`, the user is asked about pending calls."""
    approvals = LiveApprovalView(client, view) if asks else None
    follower = TurnFollower(client, started.session_id, approvals or view, limit=limit, approvals=approvals)
    result = await follower.follow(
        after=started.after, input_id=started.input_id, show_all=show_all, has_started=started.has_started
    )
    if approvals is not None:
        await approvals.close()
    view.show_result(result)
    return result


async def attach_session(client: AsyncFootplate, session_id: str, view: TurnView, *, asks: bool = False) -> RunResult:
    """Follows the running turn, or replays the last one, from its beginning until the newest message is processed."""
    messages = (await client.events.list(session_id, limit=1, order="desc", types=["user.message"]).page()).data
    turns = (await client.turns.list(session_id, limit=1).page()).data
    is_queued = bool(messages) and messages[0].processed_at is None
    if not turns and not is_queued:
        activity = (await client.sessions.retrieve(session_id)).activity
        is_new = activity is None or activity.state == "new"
        sending, queue = f'Send one: footplate run --session {session_id} "…"', f"footplate steps ls {session_id}"
        raise ClientError(
            f"Session {session_id} has no messages yet, so there is nothing to watch.",
            help_text=sending if is_new else f"Look at its queue: {queue}",
        )
    saved_ids.remember_ids(client.base_url, session=session_id)
    after = str(turns[0].first_seq - 1) if turns else "0"
    input_id = messages[0].id if is_queued else turns[0].input_event_id
    started = StartedTurn(session_id, after, input_id, has_started=not is_queued)
    return await follow_turn(client, started, view, asks=asks, show_all=True)


async def resolve_session_id(client: AsyncFootplate, wanted: str) -> str:
    """Resolves the start of an id, and `last` to the session last used from this machine, or else to the newest."""
    if wanted != "last":
        return await _complete_session_id(client, wanted)
    known = saved_ids.recall_id(client.base_url, "session")
    if known and await _session_exists(client, known):
        return known
    newest = (await client.sessions.list(limit=1).page()).data
    if not newest:
        raise ClientError("There are no sessions yet.", help_text='Start one: footplate run "…"')
    return newest[0].id


async def _complete_session_id(client: AsyncFootplate, start: str) -> str:
    """Completes the start of an id that only one of the newest sessions has. Unknown ids are left to the server."""
    if not start.startswith(_ID_PREFIX) or len(start) >= _ID_LENGTH:
        return start
    found: list[str] = []
    seen = 0
    async for session in client.sessions.list(limit=100, include_archived=True):
        seen += 1
        if session.id.startswith(start):
            found.append(session.id)
        # Ids are in the order of creation, and the list starts with the newest.
        if len(found) > _MAX_CANDIDATES or session.id < start or seen == _MAX_COMPLETED_SESSIONS:
            break
    if len(found) > 1:
        more = " and others" if len(found) > _MAX_CANDIDATES else ""
        raise ClientError(
            f"Several session IDs start with {start}: {', '.join(found[:_MAX_CANDIDATES])}{more}.",
            help_text="Type more of the ID.",
        )
    return found[0] if found else start


async def _session_exists(client: AsyncFootplate, session_id: str) -> bool:
    try:
        await client.sessions.retrieve(session_id)
    except NotFound:
        return False
    return True


async def _continue_session(client: AsyncFootplate, server: Server, request: RunRequest) -> StartedTurn:  # noqa: ARG001 - same signature as its siblings
    session_id = await resolve_session_id(client, request.session or "last")
    turns = (await client.turns.list(session_id, limit=1).page()).data
    message = {**await _build_message(client, request), **drop_none(overrides=request.overrides or None)}
    (sent,) = await client.events.send(session_id, [message])
    return StartedTurn(session_id, str(turns[0].first_seq) if turns else "0", sent.id)


async def _build_message(client: AsyncFootplate, request: RunRequest) -> dict[str, Any]:
    content = await message_content.build_content(client, request.prompt, request.attachments, request.audience)
    return {"type": "user.message", "content": content}


async def fork_session(client: AsyncFootplate, request: ForkRequest, **fields: Any) -> Session:
    """Forks a session, which is not changed. The fork becomes the last used session."""
    session_id = await resolve_session_id(client, request.session)
    at = await _find_fork_point(client, session_id, request)
    agent_id = await resolve_agent(client, request.agent) if request.agent else None
    others = drop_none(agent=agent_id, model=request.model, title=request.title)
    forked = await client.sessions.fork(session_id, at=at, **others, **fields)
    saved_ids.remember_ids(client.base_url, session=forked.id)
    return forked


async def _find_fork_point(client: AsyncFootplate, session_id: str, request: ForkRequest) -> str | int | None:
    """Returns the id or position of the last event to include. None: the newest event."""
    if request.turn is not None:
        turns = [turn async for turn in client.turns.list(session_id, limit=100)][::-1]
        if request.turn > len(turns):
            raise ClientError(
                f"Session {session_id} has {len(turns)} turns, so there is no turn {request.turn}.",
                help_text=f"`footplate show {session_id}` lists the turns.",
            )
        return turns[request.turn].first_seq - 1 if request.turn < len(turns) else None
    if request.last_tool:
        results = await client.events.list(session_id, limit=1, order="desc", types=_TOOL_RESULTS).page()
        if not results.data:
            raise ClientError(
                f"Session {session_id} has no result of a tool call.", help_text="Use --turn or --at instead."
            )
        return results.data[0].id
    return None if request.at == "last" else int(request.at) if request.at.isdecimal() else request.at


async def _continue_in_fork(client: AsyncFootplate, server: Server, request: RunRequest) -> StartedTurn:  # noqa: ARG001 - same signature as its siblings
    wanted = ForkRequest(
        session=request.session or "last",
        at=request.fork_at or "last",
        agent=request.agent,
        model=request.model,
        title=request.title,
    )
    overrides = {name: value for name, value in request.overrides.items() if name != "model"}
    message = await _build_message(client, request)
    more = drop_none(environment_id=request.environment)
    forked = await fork_session(
        client, wanted, initial_events=[{**message, **drop_none(overrides=overrides or None)}], **more
    )
    assert forked.forked_from is not None
    return StartedTurn(forked.id, str(forked.forked_from.position + 1))


async def _start_session(client: AsyncFootplate, server: Server, request: RunRequest) -> StartedTurn:
    check_directory(server, request)
    projects = await project_actions.select_projects(
        client, server, request.projects, include_uncommitted=request.include_uncommitted
    )
    session = await retry_with_fresh_ids(client, lambda: _create_session(client, server, request, projects))
    return StartedTurn(session.id, "0")


async def retry_with_fresh_ids(client: AsyncFootplate, create: Callable[[], Awaitable[T]]) -> T:
    try:
        return await create()
    except (NotFound, InvalidRequest):
        if not (saved_ids.recall_id(client.base_url, "agent") or saved_ids.recall_id(client.base_url, "environment")):
            raise
        # The remembered ids are from a server that was reset, or are archived: look them up again, once.
        saved_ids.forget_ids(client.base_url, "agent", "environment")
        return await create()


async def _create_session(
    client: AsyncFootplate, server: Server, request: RunRequest, projects: SelectedProjects
) -> Session:
    return await create_with_default_harness(
        server, request, lambda harness: _create_with_harness(client, server, request, projects, harness)
    )


async def create_with_default_harness(
    server: Server, request: RunRequest, create: Callable[[str | None], Awaitable[T]]
) -> T:
    """Creates a session or a batch. Claude models run in Claude Code by default, if the server supports it."""
    harness = request.harness or server.harness
    if harness is None and not (request.agent or server.agent):
        default_harness = defaults.default_harness(_choose_model(server, request))
        try:
            return await create(default_harness)
        except InvalidRequest as error:
            if default_harness is None or error.field != "agent.harness":
                raise
    return await create(harness)


def shares_directory(server: Server, request: RunRequest) -> bool:
    """Whether a new session works in a directory of the user, together with its child sessions."""
    if not server.is_local or request.projects or request.directory is None:
        return False
    return request.requires_directory or not Path.home().resolve().is_relative_to(request.directory)


def _session_directory(server: Server, request: RunRequest) -> str | None:
    """Returns None for the home directory or above, unless it was named: agents must not see dot files by accident."""
    if shares_directory(server, request):
        return request.directory
    if not server.is_local or request.projects or request.directory is None:
        return None
    terminal_io.err().print(
        "The current directory is or contains your home directory, so the session uses a directory of its own. "
        "To work on your files, run the command in a project directory."
    )
    return None


def check_directory(server: Server, request: RunRequest) -> None:
    if request.requires_directory and not server.is_local:
        raise ClientError(
            f"--directory requires `footplate dev` on this machine, but the server address comes from {server.source}.",
            help_text="Omit --directory. The session then works in its own directory on the server.",
        )


async def _create_with_harness(
    client: AsyncFootplate, server: Server, request: RunRequest, projects: SelectedProjects, harness: str | None
) -> Session:
    agent, environment_id = await choose_agent_and_environment(client, server, request, harness)
    directory = _session_directory(server, request)
    return await client.sessions.create(
        agent=agent,
        environment_id=environment_id,
        backend=request.backend,
        title=request.title or value_formatting.title_from_prompt(request.prompt),
        context={"directory": directory} if directory else projects.context or None,
        project_ids=projects.ids or None,
        mode="background" if request.background else None,
        ends_when_done=request.end_when_done or None,
        **request.audience,
        initial_events=[await _build_message(client, request)] if request.prompt else None,
    )


async def choose_agent_and_environment(
    client: AsyncFootplate, server: Server, request: RunRequest, harness: str | None
) -> tuple[str | dict[str, Any], str]:
    """Returns the agent, with overrides, and the environment for a new session."""
    chosen = request.agent or server.agent
    overrides = {**request.overrides, **drop_none(harness=harness)}
    if chosen:
        agent_id = await resolve_agent(client, chosen)
        if request.tool_limit:
            overrides["tools"] = request.tool_limit.apply_to((await client.agents.retrieve(agent_id)).tools)
    else:
        model = _choose_model(server, request)
        agent_id = await _recall_or_create(client, "agent", lambda: _default_agent(client, model))
        overrides = {"model": model, **overrides}
        if request.tool_limit:
            overrides["tools"] = request.tool_limit.apply_to(defaults.DEFAULT_TOOLS)
    environment_id = (
        request.environment
        or server.environment
        or await _recall_or_create(client, "environment", lambda: _default_environment(client))
    )
    return {"type": "agent_with_overrides", "id": agent_id, **overrides} if overrides else agent_id, environment_id


def _choose_model(server: Server, request: RunRequest) -> str:
    return request.model or server.model or defaults.DEFAULT_MODEL


async def _recall_or_create(
    client: AsyncFootplate, kind: saved_ids.IdKind, create: Callable[[], Awaitable[str]]
) -> str:
    if known := saved_ids.recall_id(client.base_url, kind):
        return known
    made = await create()
    saved_ids.remember_ids(client.base_url, **{kind: made})
    return made


async def resolve_agent(client: AsyncFootplate, wanted: str) -> str:
    if wanted.startswith("agent_"):
        return wanted
    async for agent in client.agents.list(limit=100):
        if agent.name == wanted:
            return agent.id
    raise ClientError(f"There is no agent named {wanted!r}.", help_text="`footplate agents ls` lists the agents.")


async def _default_agent(client: AsyncFootplate, model: str) -> str:
    """Returns the agent of the command line, created once per server. Each session sets its model."""
    async for agent in client.agents.list(limit=100):
        if agent.name == defaults.AGENT_NAME:
            return agent.id
    made = await client.agents.create(
        name=defaults.AGENT_NAME, model=model, system=defaults.SYSTEM_PROMPT, tools=list(defaults.DEFAULT_TOOLS)
    )
    return made.id


async def _default_environment(client: AsyncFootplate) -> str:
    """Returns the environment of the command line, of the kind that the server is configured for."""
    if found := await _find_environment(client):
        return found
    try:
        made = await client.environments.create(name=defaults.ENVIRONMENT_NAME, config={"type": "cloud"})
    except Conflict:  # created concurrently
        if found := await _find_environment(client):
            return found
        raise
    return made.id


async def _find_environment(client: AsyncFootplate) -> str | None:
    async for environment in client.environments.list(limit=100):
        if environment.name == defaults.ENVIRONMENT_NAME:
            return environment.id
    return None
