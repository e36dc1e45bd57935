"""Runs one session turn by turn: the real CLI under a real guardian, with a scripted model and an in-memory log."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.integration.harness.doubles import MemoryLog

from footplate.domain.agents.agents_and_config import CustomTool, ResolvedConfig, Subagent
from footplate.domain.agents.mcp_servers import McpServer
from footplate.domain.json import Json, JsonObject
from footplate.domain.ports.harness import Endpoint, SteerMessage, TurnContext, UpcomingTurn, WarmProcess
from footplate.domain.projects.project_instructions import ProjectInstructions
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.events import Event
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus
from footplate.environments.base_environment import BaseEnvironment
from footplate.environments.unsandboxed_environment import UnsandboxedEnvironment
from footplate.harness.claude.harness import ClaudeHarness
from footplate.lease_clock import lease_clock
from footplate.testing import ScriptedModel
from footplate.testing.model_scripts import Script
from footplate.testing.scripted_gate import ScriptedGate

TOOLS = ("bash", "read", "write", "edit", "glob", "grep")
CONFIG = ResolvedConfig(harness="claude", model="claude-sonnet-5", system="Be brief.", tools=TOOLS)
ASK_TOOL = CustomTool(name="ask", description="Ask the person.", input_schema={"type": "object"})


@dataclass
class MemoryHeldApprovals:
    """Held approvals like the store's, on an in-memory log."""

    log: Callable[[], MemoryLog]
    announced: list[str] = field(default_factory=list)
    """Ids of the calls whose pending approval was announced."""

    async def announce(self, use: Event) -> None:
        self.announced.append(use.id)

    async def find_decision(self, event_id: str) -> Event | None:
        decisions = (event for event in self.log().events if event.type == ev.USER_TOOL_CONFIRMATION)
        return next((event for event in decisions if event.body["tool_use_id"] == event_id), None)

    async def close(self, event_id: str, reason: str) -> Event:
        if (decision := await self.find_decision(event_id)) is None:
            body: JsonObject = {"tool_use_id": event_id, "result": "deny", "deny_message": reason}
            self.log().events.append(decision := Event(ev.USER_TOOL_CONFIRMATION, body))
        return decision


@dataclass
class SessionRunner:
    model: ScriptedModel
    folder: Path
    harness: ClaudeHarness = field(default_factory=ClaudeHarness)
    log: MemoryLog = field(default_factory=MemoryLog)
    interrupt: asyncio.Event = field(default_factory=asyncio.Event)
    thread_interrupts: dict[str, asyncio.Event] = field(default_factory=dict)
    steering: list[SteerMessage] = field(default_factory=list)
    warm_process: WarmProcess | None = None
    keeps_warm: bool = False
    handover: asyncio.Event = field(default_factory=asyncio.Event)
    number: int = 0
    attempt: int = 0
    first_event: int = 0
    parked: bool = False
    superseded_events: Sequence[Event] = ()
    content: Sequence[JsonObject] = ()
    environment: BaseEnvironment | None = None
    project_instructions: ProjectInstructions = field(default_factory=ProjectInstructions)
    servers: tuple[McpServer, ...] = ()
    gate: ScriptedGate = field(default_factory=ScriptedGate)
    tools: tuple[str, ...] = CONFIG.tools
    mode: str = CONFIG.mode
    custom_tools: tuple[CustomTool, ...] = ()
    subagents: tuple[Subagent, ...] = ()
    max_iterations: int = CONFIG.max_iterations
    caller_context: JsonObject = field(default_factory=dict)
    """The context of the session and of each message."""

    def __post_init__(self) -> None:
        self.held_approvals = MemoryHeldApprovals(lambda: self.log)

    def open_host(self, host: str = "host") -> BaseEnvironment:
        """Opens an environment on the named host. Each host has its own home and working directory."""
        root = self.folder / host / "work"
        root.mkdir(parents=True, exist_ok=True)
        return UnsandboxedEnvironment(str(root), deadline=lease_clock() + 600, home=str(self.folder / host))

    @property
    def config(self) -> ResolvedConfig:
        return replace(
            CONFIG,
            tools=self.tools,
            mode=self.mode,
            mcp_servers=self.servers,
            custom_tools=self.custom_tools,
            subagents=self.subagents,
            max_iterations=self.max_iterations,
        )

    async def prewarm(self) -> None:
        """Starts a CLI before the next turn, which uses it."""
        self.environment = self.environment or self.open_host()
        self.warm_process = await self.harness.prepare(
            UpcomingTurn(
                session_id="sesn_1",
                config=self.config,
                history=list(self.log.entries),
                environment=self.environment,
                endpoints={"anthropic": Endpoint("a-token", self.model.url)},
            )
        )

    def begin_turn(self, text: str) -> None:
        self.number += 1
        self.superseded_events = self.log.events[self.first_event :] if self.parked else ()
        self.attempt, self.first_event = 0, len(self.log.events)
        self.content = [ev.text_block(text)]
        self.interrupt = asyncio.Event()

    async def run_turn(self, text: str, host: str = "host") -> TurnOutcome:
        self.begin_turn(text)
        return await self.run_attempt(host)

    async def run_attempt(self, host: str = "host") -> TurnOutcome:
        """Runs one attempt of the turn."""
        self.environment = self.environment or self.open_host(host)
        try:
            outcome = await self.harness.run(self.context(self.environment))
            self.parked = outcome.status is TurnStatus.AWAITING
            return outcome
        finally:
            if self.warm_process is None:
                await self.close()

    async def close(self) -> None:
        if self.warm_process is not None:
            await self.warm_process.aclose()
            self.warm_process = None
        if self.environment is not None:
            await self.environment.aclose()
            self.environment = None

    def context(self, environment: BaseEnvironment) -> TurnContext:
        self.attempt += 1
        warm_process, self.warm_process = self.warm_process, None

        async def claim() -> Sequence[SteerMessage]:
            claimed, self.steering = self.steering, []
            return claimed

        def keep_warm(harness: WarmProcess) -> bool:
            if self.keeps_warm:
                self.warm_process = harness
            return self.keeps_warm

        return TurnContext(
            organisation="org_1",
            session_id="sesn_1",
            turn_id=f"turn_{self.number}",
            attempt=self.attempt,
            config=self.config,
            content=self.content,
            history=list(self.log.entries),
            turn_events=list(self.log.events[self.first_event :]),
            superseded_events=self.superseded_events,
            log=self.log,
            environment=environment,
            gate=self.gate,
            interrupt=self.interrupt,
            thread_interrupt=lambda thread_id: self.thread_interrupts.setdefault(thread_id, asyncio.Event()),
            claim_steering=claim,
            handover=self.handover,
            warm_process=warm_process,
            keep_warm=keep_warm,
            endpoints={"anthropic": Endpoint("a-token", self.model.url)},
            project_instructions=self.project_instructions,
            held_approvals=self.held_approvals,
            context=self.caller_context,
        )

    def confirm(self, event_id: str, result: str, **more: Json) -> None:
        """Adds the decision of a user."""
        body: JsonObject = {"tool_use_id": event_id, "result": result, **more}
        self.log.events.append(Event(ev.USER_TOOL_CONFIRMATION, body))

    def send_tool_result(self, event_id: str, *content: JsonObject, is_error: bool = False) -> None:
        """Adds the result that the client sends for a custom tool call."""
        body: JsonObject = {"custom_tool_use_id": event_id, "content": [*content], "is_error": is_error}
        self.log.events.append(Event(ev.USER_CUSTOM_TOOL_RESULT, body))

    def turn_events(self) -> list[Event]:
        """Returns the events of the last turn."""
        return self.log.events[self.first_event :]

    def read_model_input(self) -> list[tuple[str, str]]:
        """Returns role and text of each block of the last request, without the text that the CLI adds."""
        body = self.model.requests()[-1].body
        assert body is not None
        found = []
        for message in body["messages"]:  # pyrefly: ignore[not-iterable]
            content = message["content"]  # pyrefly: ignore[bad-index, unsupported-operation]
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            for block in blocks:  # pyrefly: ignore[not-iterable]
                text = block.get("text") or block.get("thinking") or block.get("content") or block.get("input") or ""
                if not str(text).startswith("<system-reminder>"):
                    found.append((str(message["role"]), str(text).partition("\n\n<system-reminder>")[0].strip()))  # pyrefly: ignore[bad-index, unsupported-operation]
        return [item for item in found if item[0] != "system"]


@contextlib.asynccontextmanager
async def open_with_custom_tool(scripts: Mapping[str, Script], folder: Path) -> AsyncIterator[SessionRunner]:
    """Opens a session whose agent has a custom tool."""
    async with ScriptedModel(scripts) as model:
        runner = SessionRunner(model, folder, custom_tools=(ASK_TOOL,))
        yield runner
        await runner.close()
