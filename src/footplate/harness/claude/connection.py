"""The connection to a CLI that runs in an environment. It may serve several turns, one after the other."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import claude_agent_sdk as sdk
import structlog
from claude_agent_sdk._errors import MessageParseError
from claude_agent_sdk._internal.message_parser import parse_message

from footplate.domain.agents import ResolvedConfig
from footplate.domain.errors import FootplateError, Permanent, Temporary
from footplate.domain.json import JsonObject
from footplate.domain.ports import Ahead, TurnContext
from footplate.harness import loading
from footplate.harness.claude import mapping, options, repository
from footplate.harness.claude.custom_tools import CustomTools
from footplate.harness.claude.mapping import Call, Ended
from footplate.harness.claude.moments import Moments
from footplate.harness.claude.recorder import Recorder
from footplate.harness.claude.repository import Given
from footplate.harness.claude.store import LogStore
from footplate.harness.claude.transport import EnvironmentTransport, Frame

if TYPE_CHECKING:
    from footplate.harness.claude.bridge import Bridge
    from footplate.harness.mcp.servers import Servers

log = structlog.get_logger(__name__)

_LIFECYCLE: Final = "command_lifecycle"
_STARTED: Final = "started"
_RESULT: Final = "result"
_OVER: Final = frozenset({"completed", "cancelled"})
_REFUSED: Final = "This call was not permitted: its turn has ended or was lost."
_NOT_A_SUBAGENTS: Final = "Subagents cannot use custom tools. Put your question into your final response instead."
_CLOSE_SECONDS: Final = 10.0


class Connection:
    """Created by `start`. The caller must call `aclose`."""

    def __init__(self, recorder: Recorder | None, repository: Given) -> None:
        self.recorder = recorder
        """The recorder of the current turn. None until the first turn."""
        self.given = repository
        """The repository's instructions, hooks and servers that the CLI was started with."""
        self.waiting: set[str] = set()
        """Uuids of messages that were sent and are not processed yet."""
        self._taken_up: set[str] = set()
        """Uuids of the messages that the CLI is processing."""
        self.bridge: Bridge | None = None
        self._turn: TurnContext | None = None
        self._moments = Moments(lambda: self._turn, self._served)
        self._transport: EnvironmentTransport | None = None
        self._client: sdk.ClaudeSDKClient | None = None
        self._messages: AsyncIterator[sdk.Message] | None = None

    @classmethod
    async def open(
        cls,
        turn: TurnContext | Ahead,
        recorder: Recorder | None,
        *,
        session_id: str,
        files: Mapping[str, bytes],
        given: Given,
        starts: asyncio.Semaphore,
        resumes_turn: bool = False,
        servers: "Servers | None" = None,
    ) -> "Connection":
        """Starts a CLI and connects to it. `recorder`: None if the CLI is started before its first turn. `files`: the
        conversation so far, by subpath. `starts`: limits how many CLIs start at once. `resumes_turn`: continue an
        unfinished turn without a new prompt. `servers`: the agent's MCP servers with their tools listed, if it has any.
        """
        config, environment = repository.with_words(turn.config, given), turn.environment
        scratch, root = environment.scratch, environment.root
        for subpath, content in files.items():
            await environment.write(options.transcript_path(scratch, root, session_id, subpath), content)
        if (path := options.system_file(config, scratch)) is not None:
            await environment.write(path, config.system.encode())
        if isinstance(turn, TurnContext):
            await environment.write(options.turn_file(scratch), turn.turn_id.encode())
        await environment.write(*options.shell_file(scratch))
        endpoint = environment.reach(options.endpoint_of(turn.endpoints))
        env = options.variables(config, endpoint, scratch=scratch, root=root, goes_on=resumes_turn)
        connection = cls(recorder, given)
        connection._turn = turn if isinstance(turn, TurnContext) else None
        bridge = await connection._bridged(turn, servers)
        sdk_options = options.options(
            config,
            scratch=scratch,
            session_id=session_id,
            resume=bool(files),
            max_turns=max(1, config.max_iterations - (recorder.responses if recorder else 0)),
            asked=connection._asked,
            paused=connection._paused,
            told=connection._moments.callbacks(),
            store=cast("sdk.SessionStore", LogStore(connection._served)),
            env=env,
            mcp_servers={**(bridge.configs() if bridge is not None else {}), **await connection._custom(config)},
        )
        sdk_options = repository.with_works(sdk_options, given)
        transport = EnvironmentTransport(environment, options.command(sdk_options), env, connection._heard)
        connection._transport = transport
        connection._client = sdk.ClaudeSDKClient(sdk_options, transport)
        try:
            async with starts:
                with _translated(transport):
                    await connection._client.connect()
        except BaseException:
            await connection.aclose()
            raise
        connection._messages = connection._client.receive_messages()
        return connection

    @property
    def whole(self) -> bool:
        """Whether every MCP server of the agent could be used. If not, the CLI is used for one turn only."""
        return self.bridge is None or self.bridge.whole

    @property
    def alive(self) -> bool:
        return self._transport is not None and self._transport.alive

    async def serve(self, turn: TurnContext, recorder: Recorder, servers: "Servers | None" = None) -> None:
        """Switches to another turn. `servers`: the agent's MCP servers, without their tools listed."""
        if self.bridge is not None and servers is not None:
            self.bridge.serve(turn, servers)
            recorder.names = servers.names
        if self.recorder is not None:
            recorder.inherit(self.recorder)
        self.recorder, self._turn = recorder, turn
        self.waiting.clear()
        self._taken_up.clear()
        await turn.environment.write(options.turn_file(turn.environment.scratch), turn.turn_id.encode())

    async def rest(self, turn: TurnContext) -> None:
        """Ends every process that the turn's tools left behind. The CLI stays and waits for the next turn."""
        assert self._transport is not None
        await self._transport.calm(turn.environment)

    async def send(self, uuid: str, content: Sequence[JsonObject]) -> None:
        """Sends a prompt, or a user's message for the running turn."""
        assert self._client is not None
        self.waiting.add(uuid)
        message = {"role": "user", "content": [*content]}

        async def one() -> AsyncIterator[dict[str, Any]]:
            yield {"type": "user", "uuid": uuid, "message": message, "parent_tool_use_id": None}

        with _translated(self._transport):
            await self._client.query(one())

    async def interrupt(self) -> None:
        assert self._client is not None
        with _translated(self._transport):
            await self._client.interrupt()

    async def ended(self) -> Ended:
        """Waits until the CLI finishes its current work, and returns the result."""
        assert self._messages is not None
        with _translated(self._transport):
            async for message in self._messages:
                if isinstance(fact := mapping.read(message), Ended):
                    return fact
                if isinstance(fact, mapping.Dropped):
                    self._served().heard(message)
        raise Temporary("Claude Code exited before it finished the turn.")

    async def aclose(self) -> None:
        """Kills the process and closes the connection. The process dies first, so that it does not continue after its
        hooks are gone.
        """
        if self._transport is not None:
            await self._transport.close()
        if self._client is not None:
            try:
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await self._client.disconnect()
            except Exception as error:  # noqa: BLE001 - closing the environment ends the CLI in any case
                log.warning("not disconnected", action="claude.not_disconnected", reason=repr(error))

    async def _bridged(self, turn: TurnContext | Ahead, servers: "Servers | None") -> "Bridge | None":
        """Creates the MCP bridge if the agent has MCP servers. Imports it lazily, because its library is slow to load.
        There is no bridge before the first turn.
        """
        if servers is not None and isinstance(turn, TurnContext):
            module = await loading.module("footplate.harness.claude.bridge")
            self.bridge = module.Bridge(turn, servers, self._served)
            self._served().names = servers.names
        return self.bridge

    async def _custom(self, config: ResolvedConfig) -> dict[str, sdk.McpSdkServerConfig]:
        """The server of the agent's custom tools, if it has any. Imported lazily for the same reason."""
        if not config.custom_tools:
            return {}
        module = await loading.module("footplate.harness.claude.custom_server")
        return cast("dict[str, sdk.McpSdkServerConfig]", module.configs(CustomTools(config), self._served))

    def _heard(self, frame: Frame) -> None:
        kind = frame.get("type")
        if kind == _LIFECYCLE:
            uuid = str(frame.get("command_uuid"))
            if frame.get("state") in _OVER:
                self.waiting.discard(uuid)
            elif frame.get("state") == _STARTED and uuid in self.waiting:
                self._taken_up.add(uuid)
            return
        if kind == _RESULT:
            # The CLI reports the end of each message only after the result. The caller may by then wait for another
            # result, which would never come.
            self.waiting -= self._taken_up
            self._taken_up.clear()
        if kind in _PROTOCOL:
            return
        try:
            message = parse_message(frame)
        except MessageParseError as error:
            log.warning("message not understood", action="claude.unreadable_message", reason=str(error)[:200])
            return
        if message is None:
            log.info("message not known", action="claude.unknown_message", kind=str(kind)[:100])
        elif self.recorder is not None:
            self.recorder.heard(message)

    def _served(self) -> Recorder:
        if self.recorder is None:
            raise Temporary("Claude Code acted before it received a prompt.")
        return self.recorder

    async def _asked(
        self, hook_input: sdk.HookInput, tool_use_id: str | None, _context: sdk.HookContext
    ) -> sdk.HookJSONOutput:
        """The hook before each call. On any error, the call is denied."""
        try:
            call = Call(str(tool_use_id), str(hook_input["tool_name"]), hook_input["tool_input"])  # type: ignore[typeddict-item]
            if hook_input.get("agent_id") and self._served().asking.tools.has(call.name):
                return _denied(_NOT_A_SUBAGENTS)
            reason = self._served().asking.refuses(call)
            if reason is None:
                directory, agent_id = (str(hook_input.get(name) or "") or None for name in ("cwd", "agent_id"))
                reason = await self._served().intend(call, agent_id, directory=directory)
        except Exception as error:  # noqa: BLE001 - fail closed
            if self.recorder is not None:
                failure = error if isinstance(error, FootplateError) else Temporary(f"A tool call failed: {error!r}")
                self.recorder.fail(failure)
            log.warning("call denied", action="claude.call_refused", reason=repr(error))
            return _denied(_REFUSED)
        return {} if reason is None else _denied(reason)

    async def _paused(
        self, hook_input: sdk.HookInput, _tool_use_id: str | None, _context: sdk.HookContext
    ) -> sdk.HookJSONOutput:
        """The hook after the calls of a response. On any error, the CLI does not send the next model request."""
        try:
            if not hook_input.get("agent_id"):
                await self._served().asking.pause(self._served())
        except Exception as error:  # noqa: BLE001 - fail closed
            if self.recorder is not None:
                failure = error if isinstance(error, FootplateError) else Temporary(f"A batch hook failed: {error!r}")
                self.recorder.fail(failure)
            return {"continue_": False}
        return {}


_PROTOCOL: Final = frozenset({"control_request", "control_response", "control_cancel_request", "transcript_mirror"})


def _denied(reason: str) -> sdk.HookJSONOutput:
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        },
    }


class _translated:  # noqa: N801 - a context manager that is used like a function
    """Translates the SDK's errors to Footplate's."""

    def __init__(self, transport: EnvironmentTransport | None) -> None:
        self._transport = transport

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        if error is None or not isinstance(error, Exception) or isinstance(error, FootplateError):
            return
        if isinstance(error, sdk.ProcessError) and error.exit_code in {126, 127}:
            raise Permanent(
                f"Claude Code cannot be started in this environment: {error.stderr}",
                help_text="Run `footplate doctor` on the worker.",
            ) from error
        if isinstance(error, sdk.ClaudeSDKError | OSError):
            stderr = self._transport.last_words if self._transport is not None else ""
            raise Temporary(f"Claude Code ended unexpectedly: {stderr or error}"[:2000]) from error
