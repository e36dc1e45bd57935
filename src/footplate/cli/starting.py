"""Starts and follows turns for `run` and `attach`: creates or continues a session, then watches the turn."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from footplate.cli import attaching, defaults, managing_projects, memory, output, tooling, wording
from footplate.cli.answers import RunResult
from footplate.cli.live_asks import LiveAsks
from footplate.cli.profiles import Server
from footplate.cli.prompting import Asks
from footplate.cli.turns import Follower
from footplate.cli.views import View
from footplate.client import AsyncFootplate, ClientError, Conflict, InvalidRequest, NotFound, Session
from footplate.client.listing import given


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    prompt: str
    session: str | None = None
    background: bool = False
    """The session runs without a watching user."""
    fork_at: str | None = None
    """Continue in a fork of the session at this event instead of the session itself."""
    agent: str | None = None
    environment: str | None = None
    model: str | None = None
    harness: str | None = None
    system: str | None = None
    max_turns: int | None = None
    title: str | None = None
    directory: str | None = None
    """Working directory, if the server can see it. None for a directory of the session."""
    projects: tuple[str, ...] = ()
    """Ids or paths. The first project is the working directory."""
    files: tuple[str, ...] = ()
    """Paths, URLs or ids of files for the session's working tree."""
    inline: tuple[str, ...] = ()
    """Paths, URLs or ids of files that are sent to the model."""
    insists: bool = False
    """Whether the user named the directory, so that no other one may be used."""
    limit: tooling.Limit = tooling.ALL

    @property
    def overrides(self) -> dict[str, Any]:
        limits = {"max_iterations": self.max_turns} if self.max_turns else None
        return given(model=self.model, system=self.system, limits=limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    session: str
    at: str
    """Id or position of an event. `last` is the newest."""
    agent: str | None = None
    model: str | None = None
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Begun:
    session_id: str
    after: str
    """Position in the log before the message and everything that follows from it."""
    input_id: str | None = None


async def begin(client: AsyncFootplate, server: Server, request: Request) -> Begun:
    way = _go_on_in_a_fork if request.fork_at else _go_on if request.session else _begin_anew
    begun = await way(client, server, request)
    memory.remember(client.base_url, session=begun.session_id)
    return begun


async def follow(
    client: AsyncFootplate, begun: Begun, view: View, *, limit: float | None, ask: Asks | None = None
) -> RunResult:
    """Follows the turn for at most `limit` seconds. `ask` asks the user about pending calls."""
    view = view if ask is None else LiveAsks(client, view)
    result = await Follower(client, begun.session_id, view, limit=limit).follow(
        after=begun.after, input_id=begun.input_id
    )
    return await _answered(client, result, view, after=begun.after, limit=limit, ask=ask)


async def _answered(
    client: AsyncFootplate, result: RunResult, view: View, *, after: str, limit: float | None, ask: Asks | None
) -> RunResult:
    """Asks about pending calls and follows the resumed turn, until no call is decided here any more."""
    while ask is not None and result.pending and (said := await ask(client, result)) is not None:
        result = await Follower(client, result.session_id, view, limit=limit).follow(after=after, input_id=said)
    view.finish(result)
    return result


async def attach(client: AsyncFootplate, session_id: str, view: View, *, ask: Asks | None = None) -> RunResult:
    """Follows the running turn, or replays the last one, from its beginning until the newest message is processed."""
    messages = (await client.events.list(session_id, limit=1, order="desc", types=["user.message"]).page()).data
    if not messages:
        raise ClientError(
            f"Session {session_id} has no messages yet, so there is nothing to watch.",
            help_text=f'Send one: footplate run --session {session_id} "…"',
        )
    turns = (await client.turns.list(session_id, limit=1).page()).data
    after = str(turns[0].first_seq - 1) if turns else "0"
    memory.remember(client.base_url, session=session_id)
    view = view if ask is None else LiveAsks(client, view)
    result = await Follower(client, session_id, view).follow(after=after, input_id=messages[0].id, show_all=True)
    return await _answered(client, result, view, after=after, limit=None, ask=ask)


async def session_id_of(client: AsyncFootplate, wanted: str) -> str:
    """Resolves `last` to the session last used from this machine, or else to the newest session."""
    if wanted != "last":
        return wanted
    known = memory.recall(client.base_url, "session")
    if known and await _exists(client, known):
        return known
    newest = (await client.sessions.list(limit=1).page()).data
    if not newest:
        raise ClientError("There are no sessions yet.", help_text='Start one: footplate run "…"')
    return newest[0].id


async def _exists(client: AsyncFootplate, session_id: str) -> bool:
    try:
        await client.sessions.retrieve(session_id)
    except NotFound:
        return False
    return True


async def _go_on(client: AsyncFootplate, server: Server, request: Request) -> Begun:  # noqa: ARG001 - same signature as its siblings
    session_id = await session_id_of(client, request.session or "last")
    turns = (await client.turns.list(session_id, limit=1).page()).data
    message = {**await _message(client, request), **given(overrides=request.overrides or None)}
    (sent,) = await client.events.send(session_id, [message])
    return Begun(session_id, str(turns[0].first_seq) if turns else "0", sent.id)


async def _message(client: AsyncFootplate, request: Request) -> dict[str, Any]:
    content = await attaching.content(client, request.prompt, request.files, request.inline)
    return {"type": "user.message", "content": content}


async def fork(client: AsyncFootplate, wanted: Fork, **fields: Any) -> Session:
    """Forks a session, which is not changed. The fork becomes the last used session."""
    session_id = await session_id_of(client, wanted.session)
    at = None if wanted.at == "last" else int(wanted.at) if wanted.at.isdecimal() else wanted.at
    agent_id = await _agent_named(client, wanted.agent) if wanted.agent else None
    others = given(agent=agent_id, model=wanted.model, title=wanted.title)
    made = await client.sessions.fork(session_id, at=at, **others, **fields)
    memory.remember(client.base_url, session=made.id)
    return made


async def _go_on_in_a_fork(client: AsyncFootplate, server: Server, request: Request) -> Begun:  # noqa: ARG001 - same signature as its siblings
    wanted = Fork(
        session=request.session or "last",
        at=request.fork_at or "last",
        agent=request.agent,
        model=request.model,
        title=request.title,
    )
    overrides = {name: value for name, value in request.overrides.items() if name != "model"}
    message = await _message(client, request)
    more = given(environment_id=request.environment)
    made = await fork(client, wanted, initial_events=[{**message, **given(overrides=overrides or None)}], **more)
    assert made.forked_from is not None
    return Begun(made.id, str(made.forked_from.position + 1))


async def _begin_anew(client: AsyncFootplate, server: Server, request: Request) -> Begun:
    session = await looking_again(client, lambda: _create(client, server, request))
    return Begun(session.id, "0")


async def looking_again(client: AsyncFootplate, make: Callable[[], Awaitable[Session]]) -> Session:
    try:
        return await make()
    except (NotFound, InvalidRequest):
        if not (memory.recall(client.base_url, "agent") or memory.recall(client.base_url, "environment")):
            raise
        # The remembered ids are from a server that was reset, or are archived: look them up again, once.
        memory.forget(client.base_url, "agent", "environment")
        return await make()


async def _create(client: AsyncFootplate, server: Server, request: Request) -> Session:
    """Creates a session. Claude models run in Claude Code by default, if the server supports it."""
    harness = request.harness or server.harness
    if harness is None and not (request.agent or server.agent):
        usual = defaults.harness_for(_model(server, request))
        try:
            return await _create_with(client, server, request, usual)
        except InvalidRequest as error:
            if usual is None or error.field != "agent.harness":
                raise
    return await _create_with(client, server, request, harness)


def _directory_of(request: Request) -> str | None:
    """Returns None for the home directory or above, unless it was named: agents must not see dot files by accident."""
    if request.directory is None or request.insists or not Path.home().resolve().is_relative_to(request.directory):
        return request.directory
    output.err().print(
        "The current directory is or contains your home directory, so the session uses a directory of its own. "
        "To work on your files, run the command in a project directory."
    )
    return None


def check_directory(server: Server, request: Request) -> None:
    if request.insists and not server.is_here:
        raise ClientError(
            f"{request.directory} is on this machine, but the server from {server.source} is not.",
            help_text="Omit --directory. The session then works in its own directory on the server.",
        )


async def _create_with(client: AsyncFootplate, server: Server, request: Request, harness: str | None) -> Session:
    check_directory(server, request)
    agent, environment_id = await whom_and_where(client, server, request, harness)
    project_ids = await managing_projects.project_ids(client, server, request.projects)
    directory = _directory_of(request) if server.is_here and not project_ids else None
    return await client.sessions.create(
        agent=agent,
        environment_id=environment_id,
        title=request.title or wording.title_of(request.prompt),
        context={"directory": directory} if directory else None,
        project_ids=project_ids,
        mode="background" if request.background else None,
        initial_events=[await _message(client, request)],
    )


async def whom_and_where(
    client: AsyncFootplate, server: Server, request: Request, harness: str | None
) -> tuple[str | dict[str, Any], str]:
    """Returns the agent, with overrides, and the environment for a new session."""
    chosen = request.agent or server.agent
    overrides = {**request.overrides, **given(harness=harness)}
    if chosen:
        agent_id = await _agent_named(client, chosen)
        if request.limit:
            overrides["tools"] = request.limit.of((await client.agents.retrieve(agent_id)).tools)
    else:
        model = _model(server, request)
        agent_id = await _remembered(client, "agent", lambda: _own_agent(client, model))
        overrides = {"model": model, **overrides}
        if request.limit:
            overrides["tools"] = request.limit.of(defaults.TOOLS)
    environment_id = (
        request.environment
        or server.environment
        or await _remembered(client, "environment", lambda: _own_environment(client))
    )
    return {"type": "agent_with_overrides", "id": agent_id, **overrides} if overrides else agent_id, environment_id


def _model(server: Server, request: Request) -> str:
    return request.model or server.model or defaults.USUAL_MODEL


async def _remembered(client: AsyncFootplate, noun: memory.Noun, make: Callable[[], Awaitable[str]]) -> str:
    if known := memory.recall(client.base_url, noun):
        return known
    made = await make()
    memory.remember(client.base_url, **{noun: made})
    return made


async def _agent_named(client: AsyncFootplate, wanted: str) -> str:
    if wanted.startswith("agent_"):
        return wanted
    async for agent in client.agents.list(limit=100):
        if agent.name == wanted:
            return agent.id
    raise ClientError(f"There is no agent named {wanted!r}.", help_text="`footplate agents ls` lists the agents.")


async def _own_agent(client: AsyncFootplate, model: str) -> str:
    """Returns the agent of the command line, created once per server. Each session sets its model."""
    async for agent in client.agents.list(limit=100):
        if agent.name == defaults.AGENT_NAME:
            return agent.id
    made = await client.agents.create(
        name=defaults.AGENT_NAME, model=model, system=defaults.SYSTEM, tools=list(defaults.TOOLS)
    )
    return made.id


async def _own_environment(client: AsyncFootplate) -> str:
    """Returns the environment of the command line, of the kind that the server is configured for."""
    try:
        made = await client.environments.create(name=defaults.ENVIRONMENT_NAME, config={"type": "cloud"})
    except Conflict:
        async for environment in client.environments.list(limit=100):
            if environment.name == defaults.ENVIRONMENT_NAME:
                return environment.id
        raise
    return made.id
