"""In-memory doubles of the ports that a harness uses, and a world in which a turn can crash and resume."""

import asyncio
import contextlib
import os
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models.function import AgentInfo, DeltaThinkingCalls, DeltaThinkingPart, DeltaToolCall, FunctionModel

from footplate.domain import ids
from footplate.domain.agents.agents_and_config import CustomTool, ResolvedConfig
from footplate.domain.errors import Unavailable
from footplate.domain.json import Json, JsonObject
from footplate.domain.ports.child_sessions import ChildSessions
from footplate.domain.ports.harness import (
    CommandResult,
    Endpoint,
    Entry,
    FileInfo,
    FullOutput,
    Process,
    SteerMessage,
    TurnContext,
)
from footplate.domain.sessions import events as ev
from footplate.domain.sessions import threads
from footplate.domain.sessions.events import Event, PreviewType, Usage
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus
from footplate.environments import local_files
from footplate.harness.native import conversation_entries
from footplate.harness.native.harness import NativeHarness
from footplate.harness.native.requests.model_resolver import AnyModel
from footplate.harness.native.web.web_tools import WebTools
from footplate.testing.scripted_gate import ScriptedGate

Chunk = str | dict[int, DeltaToolCall] | DeltaThinkingCalls


class Crash(BaseException):
    """The process is gone. Not an `Exception`: nothing may catch it."""


@dataclass
class MemoryPreview:
    event_type: PreviewType
    event_id: str = field(default_factory=lambda: ids.new_id(ids.EVENT))
    text: str = ""

    def write(self, text: str) -> None:
        self.text += text


@dataclass
class MemoryLog:
    """Stores what was appended. `crash_at` is the number of the append that does not return."""

    events: list[Event] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    usage: list[Usage] = field(default_factory=list)
    previews: list[MemoryPreview] = field(default_factory=list)
    outputs: list[bytes] = field(default_factory=list)
    refuses_output: bool = False
    uploads: int = 0
    appends: int = 0
    crash_at: int | None = None
    crash_after_commit: bool = False
    hand_over_at: int | None = None
    """The number of the append at which the worker is told to stop."""
    handover: asyncio.Event = field(default_factory=asyncio.Event)

    async def append(
        self, events: Sequence[Event] = (), *, entries: Sequence[Entry] = (), usage: Usage | None = None
    ) -> None:
        self.appends += 1
        crash = self.crash_at == self.appends
        if crash and not self.crash_after_commit:
            raise Crash
        if self.hand_over_at == self.appends:
            self.handover.set()
        self.events.extend(events)
        self.entries.extend(entries)
        if usage:
            self.usage.append(usage)
        if crash:
            raise Crash

    async def upload_files_ahead(self) -> None:
        self.uploads += 1
        if self.refuses_output:
            raise Unavailable("the object store does not answer")

    async def store_output(self, output: FullOutput, *, name: str | None = None) -> str:
        if self.refuses_output:
            raise Unavailable("the object store does not answer")
        self.outputs.append(b"".join(output.pieces()))
        return name or f"output-{len(self.outputs)}"

    def check(self) -> None:
        pass

    def preview(self, event_type: PreviewType) -> MemoryPreview:
        preview = MemoryPreview(event_type)
        self.previews.append(preview)
        return preview

    def of_type(self, event_type: str) -> list[Event]:
        return [event for event in self.events if event.type == event_type]


@dataclass
class LocalEnvironment:
    """Runs real programs on real files below one directory, and counts the commands."""

    path: Path
    ran: Counter[str] = field(default_factory=Counter)
    restarts: int = 0
    crash_in: str | None = None
    started: asyncio.Event = field(default_factory=asyncio.Event)
    subdirectory: str = ""

    async def ensure_open(self) -> None: ...

    @property
    def root(self) -> str:
        return str(self.path)

    @property
    def working_directory(self) -> str:
        return str(self.path / self.subdirectory)

    @property
    def home(self) -> str:
        return str(self.path)

    async def resolve_paths(self, paths: Sequence[str]) -> Sequence[str | None]:
        return local_files.resolve_paths(paths)

    async def shell_directory(self) -> str | None:
        return str(self.path)

    @property
    def scratch(self) -> str:
        return str(self.path.with_name(f"{self.path.name}.scratch"))

    def translate_endpoint(self, endpoint: Endpoint) -> Endpoint:
        return endpoint

    async def end_other_processes(self, *, keep: Process) -> None:
        raise AssertionError(f"nothing but {keep} runs here")

    async def start(self, argv: Sequence[str], *, env: Mapping[str, str]) -> Process:
        raise AssertionError(f"nothing starts {argv} with {env} here")

    async def shell(self, command: str, *, timeout: float) -> CommandResult:  # noqa: ASYNC109 - the port's
        self.ran[command] += 1
        self.started.set()
        if self.crash_in == command:
            self.crash_in = None
            raise Crash
        return await self.run(["bash", "-c", command], timeout=timeout)

    async def restart_shell(self) -> None:
        self.restarts += 1

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = 60) -> CommandResult:  # noqa: ASYNC109 - the port's
        begun = time.monotonic()
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *argv,
            cwd=self.path,
            env={"PATH": "/usr/bin:/bin"},
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            start_new_session=True,
        )
        try:
            out, err = await asyncio.wait_for(process.communicate(stdin), timeout)
        except TimeoutError:
            return CommandResult(exit_code=None, stdout=b"", stderr=b"", duration=timeout, timed_out=True)
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        return CommandResult(exit_code=process.returncode, stdout=out, stderr=err, duration=time.monotonic() - begun)

    async def read(self, path: str) -> bytes:
        return (self.path / path).read_bytes()

    async def write(self, path: str, content: bytes) -> None:
        target = self.path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)

    async def list_files(self, path: str = ".") -> Sequence[FileInfo]:
        base = self.path / path
        files = [file for file in base.rglob("*") if file.is_file() and ".git" not in file.parts]
        return [
            FileInfo(path=file.relative_to(base).as_posix(), size=file.stat().st_size, modified=file.stat().st_mtime)
            for file in files
        ]


def call(name: str, arguments: str, call_id: str, index: int = 0) -> dict[int, DeltaToolCall]:
    return {index: DeltaToolCall(name=name, json_args=arguments, tool_call_id=call_id)}


def thought(text: str) -> DeltaThinkingCalls:
    return {0: DeltaThinkingPart(content=text, signature="sig")}


Script = Callable[[int], Sequence[Chunk] | AsyncIterator[Chunk]]


@dataclass
class ScriptedFunctionModel:
    """Streams the script's chunks for request n: the number of responses in the conversation minus `base`."""

    script: Script
    world: "World"
    requests: list[list[ModelMessage]] = field(default_factory=list)
    instructions: list[str | None] = field(default_factory=list)
    base: int = 0

    async def stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Chunk]:
        self.requests.append(list(messages))
        self.instructions.append(info.instructions)
        number = sum(isinstance(message, ModelResponse) for message in messages) - self.base
        chunks = self.script(number)
        if isinstance(chunks, Sequence):
            for chunk in chunks:
                yield chunk
        else:
            async for chunk in chunks:
                yield chunk


@dataclass
class World:
    """The state that survives a crash: the log, the conversation and the files."""

    environment: LocalEnvironment
    log: MemoryLog = field(default_factory=MemoryLog)
    config: ResolvedConfig = field(
        default_factory=lambda: ResolvedConfig(
            harness="native",
            model="test",
            system="Be brief.",
            tools=("bash", "read", "write", "edit", "glob", "grep"),
            custom_tools=(CustomTool(name="ask", description="Ask", input_schema={"type": "object"}),),
        )
    )
    turn_id: str = "turn_1"
    content: Sequence[JsonObject] = field(default_factory=lambda: [ev.text_block("Hello")])
    interrupt: asyncio.Event = field(default_factory=asyncio.Event)
    thread_interrupts: dict[str, asyncio.Event] = field(default_factory=dict)
    steering: list[SteerMessage] = field(default_factory=list)
    web: WebTools = field(default_factory=WebTools)
    gate: ScriptedGate = field(default_factory=ScriptedGate)
    attempt: int = 0
    first_event: int = 0
    parked: bool = False
    superseded_events: Sequence[Event] = ()
    children: ChildSessions | None = None

    def context(self) -> TurnContext:
        self.attempt += 1

        async def claim() -> Sequence[SteerMessage]:
            claimed, self.steering = self.steering, []
            return claimed

        return TurnContext(
            organisation="org_1",
            session_id="sesn_1",
            turn_id=self.turn_id,
            attempt=self.attempt,
            config=self.config,
            content=self.content,
            history=list(self.log.entries),
            turn_events=list(self.log.events[self.first_event :]),
            superseded_events=self.superseded_events,
            log=self.log,
            environment=self.environment,
            gate=self.gate,
            interrupt=self.interrupt,
            thread_interrupt=lambda thread_id: self.thread_interrupts.setdefault(thread_id, asyncio.Event()),
            handover=self.log.handover,
            claim_steering=claim,
            children=self.children,
        )

    async def run(self, model: AnyModel) -> TurnOutcome:
        outcome = await NativeHarness(lambda *_: model, self.web).run(self.context())
        self.parked = outcome.status is TurnStatus.AWAITING
        return outcome

    def next_turn(self, turn_id: str, text: str) -> None:
        self.superseded_events = self.log.events[self.first_event :] if self.parked else ()
        self.turn_id, self.content = turn_id, [ev.text_block(text)]
        self.attempt, self.first_event = 0, len(self.log.events)
        self.interrupt = asyncio.Event()

    def send_tool_result(self, event_id: str, text: str, *, is_error: bool = False) -> None:
        body: JsonObject = {
            "custom_tool_use_id": event_id,
            "content": [ev.text_block(text)],
            "is_error": is_error,
        }
        self._add_response(event_id, Event(ev.USER_CUSTOM_TOOL_RESULT, body))

    def confirm(
        self, event_id: str, result: str, message: str | None = None, *, updated: JsonObject | None = None
    ) -> None:
        """Adds the decision of a user."""
        details: JsonObject = {} if message is None else {"deny_message": message}
        if updated is not None:
            details["updated_input"] = updated
        body: JsonObject = {"tool_use_id": event_id, "result": result, **details}
        self._add_response(event_id, Event(ev.USER_TOOL_CONFIRMATION, body))

    def _add_response(self, event_id: str, response: Event) -> None:
        (request,) = [event for event in self.log.events if event.id == event_id]
        self.log.events.append(threads.in_same_thread(request, response))

    @property
    def messages(self) -> list[ModelMessage]:
        return conversation_entries.Conversation(self.log.entries).messages

    def entries(self, kind: str) -> list[Entry]:
        return [entry for entry in self.log.entries if entry.kind == kind]


def make_model(world: World, script: Script) -> tuple[AnyModel, ScriptedFunctionModel]:
    double = ScriptedFunctionModel(script, world)
    return FunctionModel(stream_function=double.stream), double


def text_of(event: Event) -> str:
    content: Json = event.body.get("content")
    assert isinstance(content, list)
    return "".join(str(block.get("text", "")) for block in content if isinstance(block, dict))
