"""Nothing in a repository's settings runs or reaches the model unless the project is trusted for it."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from bench.prove.figure import Figure, require
from bench.support.trust import hostile_repository, product_trust
from bench.support.trust.sandboxed_sessions import TrustSession, TrustSetup
from footplate.domain.projects.project import Trust
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.turns import TurnStatus
from footplate.testing import Replies, replies, text, tool

_EVERYTHING: Final = "everything"
_WRITES: Final = "writes"
_SHORT: Final = "short"
_UNTRUSTED: Final = (Trust.NOTHING, Trust.INSTRUCTIONS)
_PROJECT_TOOLS: Final = ("Skill", "SlashCommand", "Agent", "Task", "mcp__project-stdio__x", "mcp__project-http__x")
_ROUNDS: Final = 5


def _scripts(server: str) -> dict[str, Replies]:
    """Scripts that make the CLI load settings: calls of every kind, and a file next to nested instructions."""
    tool_input = {"skill": "evil", "command": "/evil", "subagent_type": "evil", "description": "x", "prompt": "x"}
    return {
        _EVERYTHING: replies(
            [tool("Bash", {"command": "ls -a; cd src"})],
            [tool("Read", {"file_path": "/workspace/src/main.py"})],
            [tool("Write", {"file_path": "/workspace/src/more.py", "content": "x = 1\n"})],
            [tool("Bash", {"command": "exit 3"})],
            *[[tool(name, tool_input)] for name in _PROJECT_TOOLS],
            [text("Done.")],
        ),
        _WRITES: replies(
            [tool("Bash", {"command": hostile_repository.self_writing_command(server)})], [text("Written.")]
        ),
        _SHORT: replies([tool("Bash", {"command": "git status"})], [text("Short.")]),
    }


@dataclass(slots=True)
class CaseCount:
    sessions: int = 0
    turns: int = 0
    faults: list[str] = field(default_factory=list)


_Case = Callable[[TrustSetup, Trust, CaseCount], Awaitable[None]]


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    count = CaseCount()
    async with TrustSetup.open(_scripts) as scene:
        cases: Mapping[str, _Case] = {
            "everything": _run_hostile_files,
            "hooks turned off": _run_disabled_hooks,
            "links": _run_links,
            "the agent's own": _run_agent_written_files,
        }
        for _ in range(1 if quick else _ROUNDS):
            for name, case in cases.items():
                await asyncio.gather(*(_run_case(name, case, scene, trust, count) for trust in _UNTRUSTED))
        count.faults += [f"request elsewhere: {line}" for line in scene.server.requests]
        ran = await _check_trusted_repository(scene)
    count.faults += [f"through the API: {fault}" for fault in await product_trust.find_faults()]
    for fault in count.faults:
        print(f"  FAULT {fault}", flush=True)
    surfaces = (
        len(hostile_repository.HOOK_EVENTS) + len(hostile_repository.HELPERS) + len(hostile_repository.STATUS_COMMANDS)
    )
    headline = f"{count.turns} turns in hostile repositories: 0 programs ran, 0 requests elsewhere"
    summary = (
        f"{count.sessions} sessions ({count.turns} turns) in hostile repositories ({surfaces} hooks and helpers per "
        "settings file, MCP servers, plugins, skills, links; also written by the agent itself), trusted for nothing or "
        f"for instructions: 0 programs ran, 0 requests elsewhere; trusted for all, {ran} of 5 kinds of hooks ran; a "
        "change of a project's trust took effect in the next turn, with the content of the base commit"
    )
    if count.faults:
        headline, summary = f"{count.turns} turns in hostile repositories: {len(count.faults)} faults", count.faults[0]
    return Figure(headline=headline, summary=summary, holds=not count.faults)


async def _run_case(name: str, case: _Case, scene: TrustSetup, trust: Trust, count: CaseCount) -> None:
    own = CaseCount()
    await case(scene, trust, own)
    count.sessions += own.sessions
    count.turns += own.turns
    count.faults += [f"{name}, {trust.value}: {fault}" for fault in own.faults]


async def _run_hostile_files(scene: TrustSetup, trust: Trust, count: CaseCount) -> None:
    session = await scene.create_session(trust, hostile_repository.hostile_files(scene.server.url))
    await _run_turns(session, count, f"/evil now @CLAUDE.md [[script:{_EVERYTHING}]]")
    await _check_session(session, trust, count)


async def _run_disabled_hooks(scene: TrustSetup, trust: Trust, count: CaseCount) -> None:
    """A repository that turns hooks off cannot keep a call out of the log."""
    session = await scene.create_session(trust, hostile_repository.hook_disabling_files(scene.server.url))
    await _run_turns(session, count, f"Go. [[script:{_EVERYTHING}]]")
    await _check_session(session, trust, count)


async def _run_links(scene: TrustSetup, trust: Trust, count: CaseCount) -> None:
    outside = scene.directory / f"outside-{secrets.token_hex(4)}"
    await asyncio.to_thread(outside.mkdir)
    await asyncio.to_thread((outside / "words.md").write_text, hostile_repository.OUTSIDE_TOKEN)
    links = {path: target.format(outside=outside) for path, target in hostile_repository.LINKS.items()}
    session = await scene.create_session(trust, hostile_repository.linked_files(scene.server.url), links)
    await _run_turns(session, count, f"Go. [[script:{_EVERYTHING}]]")
    if await session.model_received(hostile_repository.OUTSIDE_TOKEN):
        count.faults.append("the model saw the target of a link")
    count.faults += [f"left a mark: {mark}" for mark in session.marks()]


async def _run_agent_written_files(scene: TrustSetup, trust: Trust, count: CaseCount) -> None:
    """The repository is clean; the agent writes the hostile files where the CLI looks for them, and commits them."""
    session = await scene.create_session(trust, {"src/main.py": "x = 1\n"})
    await _run_turns(session, count, f"Write. [[script:{_WRITES}]]", f"/evil go [[script:{_EVERYTHING}]]")
    results = [event.body for event in session.log.events if event.type == ev.AGENT_TOOL_RESULT]
    require(holds=not results[0]["is_error"], otherwise=f"the agent could not write: {results[0]['content']}")
    count.faults += [f"left a mark: {mark}" for mark in session.marks()]
    if await session.model_received(hostile_repository.OWN_TOKEN):
        count.faults.append("the model saw the agent's own file as instructions")
    await _run_turns(session, count, f"Look. [[script:{_SHORT}]]")
    require(holds=session.marks() == ["git"], otherwise="the agent's own git did not follow its configuration")


async def _run_turns(session: TrustSession, count: CaseCount, *prompts: str) -> None:
    count.sessions += session.number == 0
    for prompt in prompts:
        outcome = await session.run_turn(prompt)
        count.turns += 1
        if outcome.status is not TurnStatus.COMPLETED:
            count.faults.append(f"a turn ended as {outcome.status.value}: {outcome.error_message}")
    event_types = [event.type for event in session.log.events]
    if (
        event_types.count(ev.AGENT_TOOL_USE) != event_types.count(ev.AGENT_TOOL_RESULT)
        or ev.AGENT_TOOL_USE not in event_types
    ):
        count.faults.append("a call is not in the log with its result")


async def _check_session(session: TrustSession, trust: Trust, count: CaseCount) -> None:
    count.faults += [f"left a mark: {mark}" for mark in session.marks()]
    for marker in hostile_repository.NEVER_SENT_TOKENS.values():
        if await session.model_received(marker):
            count.faults.append(f"the model saw {marker}")
    for marker in hostile_repository.INSTRUCTION_TOKENS.values():
        if await session.model_received(marker) != (trust is Trust.INSTRUCTIONS):
            count.faults.append(f"the model {'did not see' if trust is Trust.INSTRUCTIONS else 'saw'} {marker}")
    records = [event.body.get("repository") for event in session.log.events if event.type == ev.MODEL_REQUEST_START]
    if bool(records[0]) != (trust is not Trust.NOTHING):
        count.faults.append("the event does not record what was loaded")


async def _check_trusted_repository(scene: TrustSetup) -> int:
    """Checks that the traps work: in a trusted repository the same programs run and the same server gets requests."""
    session = await scene.create_session(Trust.ALL, hostile_repository.hostile_files(scene.server.url))
    await session.run_turn(f"Go. [[script:{_SHORT}]]")
    ran = {mark.removeprefix("shared-") for mark in session.marks()}
    expected = {"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"}
    require(holds=ran == expected | {"project-stdio"}, otherwise=f"trusted for all, these ran: {sorted(ran)}")
    own = ("/project-http", "/project-sse", "/.well-known/")  # MCP clients look there for how to authenticate
    paths = {line.split()[1] for line in scene.server.requests if line}
    require(holds="/project-http" in paths, otherwise=f"trusted for all, these paths got requests: {paths}")
    require(holds=all(path.startswith(own) for path in paths), otherwise=f"requests elsewhere: {paths}")
    return len(ran & expected)
