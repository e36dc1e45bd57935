"""The interface that a harness implements, and the interfaces of the environment, gate and log that it uses.

A harness is an agent loop: it decides the next action of a turn. It sees only a `TurnContext`, and `TurnLog` stores and
publishes its events. `TurnLog` also rejects writes after another worker has taken over the turn (fencing).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol, runtime_checkable

from footplate.domain.agents.agents_and_config import ResolvedConfig
from footplate.domain.files.delivery import TurnDelivery
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Author
from footplate.domain.policy.hooks import HookEvent, HookFeedback
from footplate.domain.policy.permissions import Decision
from footplate.domain.ports.child_sessions import ChildSessions
from footplate.domain.ports.model_transport import ModelTransport
from footplate.domain.projects.allowed_directories import CONTEXT_KEY
from footplate.domain.projects.project import BASE_COMMITS_KEY, SUBDIRECTORY_KEY
from footplate.domain.projects.project_instructions import ProjectInstructions
from footplate.domain.sessions.events import Event, PreviewType, Usage
from footplate.domain.sessions.steps import ClaimedStep
from footplate.domain.sessions.turns import TurnOutcome


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the append-only conversation. The harness defines `kind` and `body`."""

    kind: str
    body: JsonObject


class Preview(Protocol):
    """Live text of a message that is still being generated. It may be lost: the finished event has all of it."""

    @property
    def event_id(self) -> str:
        """The id of the event that will be appended."""

    def write(self, text: str) -> None:
        """Send more text. Never blocks and never fails, so that live output cannot slow down a turn."""


class FullOutput(Protocol):
    """The full output of a command on one stream, if it is too large for the result. Available while the turn runs."""

    @property
    def size(self) -> int:
        """Total bytes of the output."""

    def pieces(self) -> Iterator[bytes]:
        """Yield the output, or only its start and end if it was too large, with a line between that says so. Blocks."""


class TurnLog(Protocol):
    """The log of a running turn, through which it writes everything. Each append is fenced by the turn's epoch."""

    async def append(
        self, events: Sequence[Event] = (), *, entries: Sequence[Entry] = (), usage: Usage | None = None
    ) -> None:
        """Store everything in one transaction, then publish it. Raises `Fenced` if the turn is lost.

        A fork at one of these events has the entries of this and earlier appends. The entries behind an event must
        therefore be appended with it or before it.
        """

    async def upload_files_ahead(self) -> None:
        """Upload the files that a finished call wrote, so that appending its result takes less time. This is optional:
        if it fails, the append uploads them.
        """

    async def store_output(self, output: FullOutput, *, name: str | None = None) -> str:
        """Store a large output in the object store, and return its key. It is deleted with its session. `name`: where
        it is in the session's folder.
        """

    def check(self) -> None:
        """Raise `Fenced` if this worker may have lost the turn. Call it right before an external effect, such as a paid
        model request, so that a process that was suspended does not cause it.
        """

    def preview(self, event_type: PreviewType) -> Preview:
        """Open a preview. The finished event is appended later with the preview's id."""


class HeldApprovals(Protocol):
    """Approval of calls that a running turn holds open, because the process behind them cannot be parked."""

    async def announce(self, use: Event) -> None:
        """Notify hooks that a person has to approve this call."""

    async def find_decision(self, event_id: str) -> Event | None:
        """Return the decision on the call of this event. None: it is pending."""

    async def close(self, event_id: str, reason: str) -> Event:
        """Close the request and return the final decision: a person's if there is one, else a denial with this reason.
        Later decisions are refused. Raises `Fenced`.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """The result of a command."""

    exit_code: int | None
    """None if the command was ended by its timeout, or together with its shell."""
    stdout: bytes
    stderr: bytes
    duration: float
    timed_out: bool = False
    truncated: bool = False
    error: str = ""
    """Why the environment ended the command or could not run it, for a person or a model to read."""
    full_outputs: Mapping[str, FullOutput] = field(default_factory=dict)
    """The full output by stream (`stdout`, `stderr`), for streams that are truncated in this result."""

    @property
    def status(self) -> Literal["completed", "failed", "timed_out", "ended"]:
        """`ended`: its shell or environment ended before there was an exit code."""
        if self.timed_out:
            return "timed_out"
        if self.exit_code is None:
            return "ended"
        return "completed" if self.exit_code == 0 else "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInfo:
    path: str
    """The path relative to the listed directory, with forward slashes."""
    size: int
    modified: float


class Process(Protocol):
    """A program that runs independently of the shell, until it is ended or the environment ends."""

    async def write(self, data: bytes) -> None:
        """Write to its standard input. Raises BrokenPipeError if the input is closed."""

    async def read(self) -> bytes:
        """Return the next piece of its standard output; empty at the end."""

    async def end_input(self) -> None:
        """Close its standard input."""

    async def wait(self) -> int:
        """Return its exit code, as a shell reports it."""

    async def kill(self) -> None:
        """Kill it and everything that it started. All of it is dead when this returns."""

    @property
    def stderr_tail(self) -> str:
        """The end of its standard error output."""


MAX_READ_BYTES: Final = 16 << 20
"""Maximum bytes that `Environment.read` returns. The worker's memory is shared by all its turns."""


class Environment(Protocol):
    """The environment of one turn. Its processes end when the turn ends or loses its lease."""

    async def ensure_open(self) -> None:
        """Open the environment if it is not open yet (`SupportsLazyEnvironment`). Call this before you read the
        properties below.
        """

    @property
    def root(self) -> str:
        """The absolute path of the session's files: of its first project, if it has projects. Rules are relative to
        it.
        """

    @property
    def working_directory(self) -> str:
        """The absolute path of the directory in which programs start: the root, or a directory below it."""
        return self.root

    @property
    def home(self) -> str:
        """The absolute path of the home directory of the user that runs commands."""

    @property
    def scratch(self) -> str:
        """A directory inside the environment for the harness's own files during the turn. It is empty when the turn
        starts, is discarded with the turn, and may not exist until a file is written to it.
        """

    def translate_endpoint(self, endpoint: "Endpoint") -> "Endpoint":
        """Return the endpoint with the address that a program inside the environment has to use."""

    async def end_other_processes(self, *, keep: Process) -> None:
        """End all processes except one program. Processes left behind by tools are dead when this returns."""

    async def start(self, argv: Sequence[str], *, env: Mapping[str, str]) -> Process:
        """Start a program in the working directory. `env` adds variables for this program only."""

    async def shell(self, command: str, *, timeout: float) -> CommandResult:  # noqa: ASYNC109 - the shell enforces it
        """Run a command in the turn's persistent shell. A command that times out also ends the shell."""

    async def restart_shell(self) -> None: ...

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        timeout: float = 60,  # noqa: ASYNC109 - as above
    ) -> CommandResult:
        """Run one program in the root directory, outside the shell."""

    async def read(self, path: str) -> bytes:
        """Read a file. Relative paths start at the working directory.

        Raises FileNotFoundError, IsADirectoryError or PermissionError, and may raise OSError for a file that is larger
        than the limit.
        """

    async def write(self, path: str, content: bytes) -> None:
        """Create or replace a file, and create missing parent directories."""

    async def list_files(self, path: str = ".") -> Sequence[FileInfo]:
        """List all regular files below a directory, recursively, without `.git`."""

    async def resolve_paths(self, paths: Sequence[str]) -> Sequence[str | None]:
        """Resolve the links in absolute paths, as a program inside the environment would. Parts that do not exist stay
        as they are. None: the path cannot be resolved.
        """

    async def shell_directory(self) -> str | None:
        """Return the shell's current directory as an absolute path. None: unknown."""


class Gate(Protocol):
    """Decides on every tool call of a turn. It is independent of the harness, and its decision is final."""

    async def decide(
        self, tool: str, given: JsonObject, *, directory: str | None = None, agent: str | None = None
    ) -> Decision:
        """Decide on a call before it is made. The harness makes the call only if it is allowed.

        `tool`: the reference API's name, or `mcp__server__tool`. `directory`: where a command will run, if the harness
        knows better than the environment. `agent`: the subagent that makes the call, whose own rules then also apply.
        Raises `Temporary` if no decision is possible; the call must then not be made.
        """

    async def run_hooks(
        self, event: HookEvent, fields: JsonObject, *, about: str = "", agent: str | None = None
    ) -> HookFeedback:
        """Run the hooks for any other event, and record the runs in the audit trail.

        `fields`: the event-specific input of the hooks, as in Claude Code. `about`: the text that matchers are tested
        against.
        """


class RunningTerminal(Protocol):
    """A program that runs on the session's terminal, as a harness sees it."""

    @property
    def idle_seconds(self) -> float:
        """Seconds since a person typed or the program printed."""

    @property
    def was_used(self) -> bool:
        """Whether a person has typed, or sent a size."""

    @property
    def recording(self) -> FullOutput:
        """What was shown so far, in asciicast format."""

    async def run_to_end(self) -> CommandResult:
        """Relay keys and output until the program has ended."""

    async def stop(self, reason: str, *, timed_out: bool = False) -> CommandResult:
        """Kill the program, if it has not ended, and report to those who watch why. Can be called more than once."""


class TurnTerminals(Protocol):
    """Opens the session's terminal during a turn."""

    async def open_terminal(self, terminal_id: str, *, command: str | None = None, note: str = "") -> RunningTerminal:
        """Start an interactive shell, or type and run a command. `note` is shown first."""


@dataclass(frozen=True, slots=True)
class SteerMessage:
    """A `user.message` that joins the running turn instead of waiting for the next one."""

    event_id: str
    content: Sequence[JsonObject]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address and the API key for a provider's models.

    The provider's own key never leaves the model proxy. A harness receives endpoints that lead to the proxy.
    """

    api_key: str = field(repr=False)
    base_url: str | None = None
    provider: str = ""
    """A provider of `model_connections.PROVIDERS`. Empty: the name of the connection is also the provider."""
    region: str | None = None
    """The region of Amazon Bedrock."""
    access_key_id: str | None = None
    """With it, requests to Amazon Bedrock are signed, and `api_key` is the secret access key."""


class WarmProcess(Protocol):
    """A process that a harness leaves running after a turn, so that the session's next turn starts faster."""

    @property
    def alive(self) -> bool: ...

    async def aclose(self) -> None:
        """End the process. Can be called more than once."""


async def _return_unchanged(blocks: Sequence[JsonObject]) -> Sequence[JsonObject]:
    return blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnContext:
    organisation: str
    session_id: str
    turn_id: str
    attempt: int
    """1 for the first attempt. In later attempts the harness first settles calls that the last attempt left open."""
    config: ResolvedConfig
    content: Sequence[JsonObject]
    """The content blocks of the input."""
    history: Sequence[Entry]
    """The whole conversation, oldest first, including entries of earlier attempts at this turn."""
    turn_events: Sequence[Event]
    """All events since this turn began, including inputs such as results of custom tools."""
    log: TurnLog
    environment: Environment
    gate: Gate
    interrupt: asyncio.Event
    """Set when a person interrupts the turn. The harness then ends as soon as possible, and keeps partial text."""
    thread_interrupt: Callable[[str], asyncio.Event] = lambda _: asyncio.Event()
    """Returns the event that is set when a person interrupts only this thread of a subagent."""
    claim_steering: Callable[[], Awaitable[Sequence[SteerMessage]]]
    """Returns the messages that join the turn, and marks them as processed. Call it at a safe point."""
    handover: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the worker is stopping. The harness then raises `HandOver` at its next safe point: after a tool result
    or a model response, when its whole state is in the log, and before it starts anything else. If it does not, it is
    cancelled when the worker's drain time is over."""
    context: JsonObject = field(default_factory=dict)
    """The `context` of the session and of this input, for tools and hooks."""
    author: Author | None = None
    """The principal who sent the input."""
    warm_process: WarmProcess | None = None
    """The process that this harness left running after the session's last turn, or prepared for this one, in the same
    environment. The conversation and the agent's configuration have not changed since. Use it or end it."""
    keep_warm: Callable[[WarmProcess], bool] = lambda _: False
    """Keeps a process running after the turn, together with the environment. Everything else that the turn started must
    be dead. Returns False if it is not kept; the harness then ends it."""
    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)
    """By connection: the address for model requests, and a token that is valid while this turn runs."""
    resolve_attachments: Callable[[Sequence[JsonObject]], Awaitable[Sequence[JsonObject]]] = _return_unchanged
    """Prepares the content blocks of an input for the model: attachments are fetched, then inlined or written to files.
    Call it once for each input, right before the input is added to the conversation. Raises `Permanent`."""
    resolve_steering: Callable[[Sequence[JsonObject]], Awaitable[Sequence[JsonObject]]] = _return_unchanged
    """The same for a message that joins a running turn, which must not fail because of it: an attachment that cannot be
    used is replaced by a text that says so. Append everything that is finished before you call it, because it may wait
    for URLs."""
    step: ClaimedStep | None = None
    """The step of the queue that the turn runs. None: the input is a message that was sent as an event."""
    superseded_events: Sequence[Event] = ()
    """Approval requests and decisions of a waiting turn that this turn superseded."""
    held_approvals: HeldApprovals | None = None
    """None: no decisions can be received while the turn runs."""
    project_instructions: ProjectInstructions = field(default_factory=ProjectInstructions)
    """The repository's instructions for agents from the session's base commit, as far as the project is trusted."""
    children: ChildSessions | None = None
    """None: the session cannot start others."""
    delivery: TurnDelivery | None = None
    """None: the step of the turn does not deliver."""
    terminals: TurnTerminals | None = None
    """None: the worker offers no terminals."""

    @property
    def caller_context(self) -> JsonObject:
        """The context for custom tools, MCP servers and server-side tools: without the keys that choose the session's
        files, which may contain a path of the worker.
        """
        own_keys = {CONTEXT_KEY, SUBDIRECTORY_KEY, BASE_COMMITS_KEY}
        return {key: value for key, value in self.context.items() if key not in own_keys}


class Harness(Protocol):
    """Decides the next action of a turn. Stateless: one instance serves many turns, each rebuilt from the log."""

    async def run(self, turn: TurnContext) -> TurnOutcome:
        """Work until the turn ends. Raise `Temporary` to be retried, `Permanent` to fail, `HandOver` when asked to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpcomingTurn:
    """What is known about a session's next turn before it begins. Model requests are not allowed yet."""

    session_id: str
    config: ResolvedConfig
    history: Sequence[Entry]
    environment: Environment
    endpoints: Mapping[str, Endpoint]


@runtime_checkable
class SupportsPrepare(Protocol):
    """A harness that can prepare for a turn before its input arrives."""

    async def prepare(self, upcoming: UpcomingTurn) -> WarmProcess | None:
        """Start the process that the next turn needs, whatever its input is. The turn receives it in its `TurnContext`
        if it runs on this worker soon and nothing has changed. None: there is nothing to prepare.
        """


@runtime_checkable
class SupportsLazyEnvironment(Protocol):
    """A harness that needs no environment until a tool is called. The environment is opened at its first use."""

    opens_late: Literal[True]


@dataclass(frozen=True, slots=True)
class SearchProvider:
    """The search engine behind `web_search`. It never appears in an environment, an event or a prompt."""

    name: str
    """`searxng` or `brave`."""
    url: str = field(repr=False)
    api_key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebAccess:
    """Limits for the web tools, which run in the worker."""

    allow: tuple[str, ...] = ()
    """Hosts, addresses and networks that may be reached although they are internal."""
    max_bytes: int = 5_000_000
    max_seconds: float = 30.0
    search: SearchProvider | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class McpAccess:
    """Limits for connections to MCP servers, which the worker makes."""

    allow: tuple[str, ...] = ()
    """Hosts, addresses and networks that may be reached although they are internal."""
    connect_seconds: float = 10.0
    """Limit for everything before the first call to a server, including the listing of its tools."""
    call_seconds: float = 600.0


@dataclass(frozen=True, slots=True)
class HarnessServices:
    """The arguments of a harness factory (entry point group `footplate.harnesses`)."""

    endpoints: Mapping[str, Endpoint]
    """By provider (`anthropic`, `openai`, …): the addresses for long-lived clients. The valid key comes with each turn
    (`TurnContext.endpoints`)."""
    web: WebAccess = field(default_factory=WebAccess)
    max_concurrent_starts: int = 1
    """How many CLI processes a harness may start at the same time."""
    mcp: McpAccess = field(default_factory=McpAccess)
    approval_hold_seconds: float = 0.0
    """Seconds that a call waits for a person inside a turn that cannot be parked. 0: it does not wait."""
    model_transport: ModelTransport | None = None
    """The model proxy for harnesses in this process. None: they connect to the endpoints."""


HarnessFactory = Callable[[HarnessServices], Harness]
