"""Starts a Claude Code CLI in an environment and keeps the connection to it, for one or more turns."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import claude_agent_sdk as sdk
import structlog
from claude_agent_sdk._errors import MessageParseError
from claude_agent_sdk._internal.message_parser import parse_message

from footplate.domain.agents.agents_and_config import ResolvedConfig
from footplate.domain.errors import FootplateError, Permanent, Temporary
from footplate.domain.json import JsonObject
from footplate.domain.ports.harness import TurnContext, UpcomingTurn
from footplate.harness import lazy_import
from footplate.harness.claude.permissions.custom_tool_names import CustomTools
from footplate.harness.claude.recording.recorder import TurnRecorder
from footplate.harness.claude.session import cli_options, repository_config
from footplate.harness.claude.session.cli_event_hooks import CliHooks
from footplate.harness.claude.session.cli_transport import EnvironmentTransport, Frame
from footplate.harness.claude.session.repository_config import RepositoryConfig
from footplate.harness.claude.session.session_store import LogSessionStore
from footplate.harness.claude.transcripts import sdk_message_parser
from footplate.harness.claude.transcripts.sdk_message_parser import Call, RunEnded
from footplate.harness.claude.transcripts.tool_names import QUESTION_TOOL

if TYPE_CHECKING:
    from footplate.harness.claude.session.mcp_bridge import McpBridge
    from footplate.harness.mcp.tool_client import McpServers

log = structlog.get_logger(__name__)

_LIFECYCLE_FRAME: Final = "command_lifecycle"
_STARTED: Final = "started"
_RESULT: Final = "result"
_DONE_STATES: Final = frozenset({"completed", "cancelled"})
_TURN_ENDED: Final = "This call did not run: its turn has ended, or another worker has taken it over."
_NO_CUSTOM_TOOLS: Final = (
    "Subagents cannot use custom tools or ask the user. Include your question in your final response instead."
)
_CLOSE_SECONDS: Final = 10.0


class CliConnection:
    """Created by `start`. The caller must call `aclose`."""

    def __init__(self, recorder: TurnRecorder | None, repository: RepositoryConfig) -> None:
        self.recorder = recorder
        """The recorder of the current turn. None until the first turn."""
        self.repository = repository
        """The repository's instructions, hooks and servers that the CLI was started with."""
        self.pending_messages: set[str] = set()
        """Uuids of messages that were sent and are not processed yet."""
        self._active_messages: set[str] = set()
        """Uuids of the messages that the CLI is processing."""
        self.bridge: McpBridge | None = None
        self._turn: TurnContext | None = None
        self._hooks = CliHooks(lambda: self._turn, self._current_recorder)
        self._transport: EnvironmentTransport | None = None
        self._client: sdk.ClaudeSDKClient | None = None
        self._messages: AsyncIterator[sdk.Message] | None = None

    @classmethod
    async def start(
        cls,
        turn: TurnContext | UpcomingTurn,
        recorder: TurnRecorder | None,
        *,
        session_id: str,
        files: Mapping[str, bytes],
        given: RepositoryConfig,
        starts: asyncio.Semaphore,
        resumes_turn: bool = False,
        servers: "McpServers | None" = None,
    ) -> "CliConnection":
        """Starts a CLI and connects to it. `recorder`: None if the CLI is started before its first turn. `files`: the
        conversation so far, by subpath. `starts`: limits how many CLIs start at once. `resumes_turn`: continue an
        unfinished turn without a new prompt. `servers`: the agent's MCP servers with their tools listed, if it has any.
        """
        config, environment = repository_config.with_instructions(turn.config, given), turn.environment
        scratch, root = environment.scratch, environment.working_directory
        for subpath, content in files.items():
            await environment.write(cli_options.transcript_path(scratch, root, session_id, subpath), content)
        if (path := cli_options.system_prompt_path(config, scratch)) is not None:
            await environment.write(path, config.system.encode())
        if isinstance(turn, TurnContext):
            await environment.write(cli_options.turn_id_path(scratch), turn.turn_id.encode())
        await environment.write(*cli_options.shell_startup_file(scratch))
        endpoint = environment.translate_endpoint(cli_options.find_endpoint(config.model, turn.endpoints))
        env = cli_options.environment_variables(config, endpoint, scratch=scratch, root=root, resumes_turn=resumes_turn)
        connection = cls(recorder, given)
        connection._turn = turn if isinstance(turn, TurnContext) else None
        bridge = await connection._create_bridge(turn, servers)
        sdk_options = cli_options.build_options(
            config,
            scratch=scratch,
            session_id=session_id,
            resume=bool(files),
            max_turns=max(1, config.max_iterations - (recorder.responses if recorder else 0)),
            before_call=connection._before_call,
            after_calls=connection._after_calls,
            other_hooks=connection._hooks.callbacks(),
            store=cast("sdk.SessionStore", LogSessionStore(connection._current_recorder)),
            env=env,
            mcp_servers={
                **(bridge.sdk_servers() if bridge is not None else {}),
                **await connection._custom_tool_servers(config),
            },
        )
        sdk_options = repository_config.with_settings(sdk_options, given)
        transport = EnvironmentTransport(
            environment, cli_options.build_command(sdk_options), env, connection._handle_frame
        )
        connection._transport = transport
        connection._client = sdk.ClaudeSDKClient(sdk_options, transport)
        try:
            async with starts:
                with _translate_errors(transport):
                    await connection._client.connect()
        except BaseException:
            await connection.aclose()
            raise
        connection._messages = connection._client.receive_messages()
        return connection

    @property
    def has_all_servers(self) -> bool:
        """Whether every MCP server of the agent could be used. If not, the CLI is used for one turn only."""
        return self.bridge is None or self.bridge.has_all_servers

    @property
    def alive(self) -> bool:
        return self._transport is not None and self._transport.alive

    async def switch_turn(self, turn: TurnContext, recorder: TurnRecorder, servers: "McpServers | None" = None) -> None:
        """Switches to another turn. `servers`: the agent's MCP servers, without their tools listed."""
        if self.bridge is not None and servers is not None:
            self.bridge.switch_turn(turn, servers)
            recorder.names = servers.names
        if self.recorder is not None:
            recorder.inherit_pending(self.recorder)
        self.recorder, self._turn = recorder, turn
        self.pending_messages.clear()
        self._active_messages.clear()
        await turn.environment.write(cli_options.turn_id_path(turn.environment.scratch), turn.turn_id.encode())

    async def end_tool_processes(self, turn: TurnContext) -> None:
        """Ends every process that the turn's tools left behind. The CLI stays and waits for the next turn."""
        assert self._transport is not None
        await self._transport.end_other_processes(turn.environment)

    async def send_message(self, uuid: str, content: Sequence[JsonObject]) -> None:
        """Sends a prompt, or a user's message for the running turn."""
        assert self._client is not None
        self.pending_messages.add(uuid)
        message = {"role": "user", "content": [*content]}

        async def one() -> AsyncIterator[dict[str, Any]]:
            yield {"type": "user", "uuid": uuid, "message": message, "parent_tool_use_id": None}

        with _translate_errors(self._transport):
            await self._client.query(one())

    async def interrupt(self) -> None:
        assert self._client is not None
        with _translate_errors(self._transport):
            await self._client.interrupt()

    async def stop_subagent(self, agent_id: str) -> None:
        """Stops one subagent. The call that started it gets a result, and the CLI goes on."""
        assert self._client is not None
        with _translate_errors(self._transport):
            await self._client.stop_task(agent_id)

    async def wait_for_result(self) -> RunEnded:
        """Waits until the CLI finishes its current work, and returns the result."""
        assert self._messages is not None
        with _translate_errors(self._transport):
            async for message in self._messages:
                if isinstance(fact := sdk_message_parser.read_message(message), RunEnded):
                    return fact
                if isinstance(fact, sdk_message_parser.TranscriptLineLost):
                    self._current_recorder().handle_message(message)
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
                log.warning(
                    "could not disconnect from Claude Code", action="claude.not_disconnected", reason=repr(error)
                )

    async def _create_bridge(
        self, turn: TurnContext | UpcomingTurn, servers: "McpServers | None"
    ) -> "McpBridge | None":
        """Creates the MCP bridge if the agent has MCP servers. Imports it lazily, because its library is slow to load.
        There is no bridge before the first turn.
        """
        if servers is not None and isinstance(turn, TurnContext):
            module = await lazy_import.import_in_thread("footplate.harness.claude.session.mcp_bridge")
            self.bridge = module.McpBridge(turn, servers, self._current_recorder)
            self._current_recorder().names = servers.names
        return self.bridge

    async def _custom_tool_servers(self, config: ResolvedConfig) -> dict[str, sdk.McpSdkServerConfig]:
        """The server of the agent's custom tools and of the tools for child sessions, if it has any. Imported lazily
        for the same reason.
        """
        tools = CustomTools(config)
        if not tools.by_cli_name:
            return {}
        module = await lazy_import.import_in_thread("footplate.harness.claude.session.custom_tool_server")
        return cast("dict[str, sdk.McpSdkServerConfig]", module.sdk_servers(tools, self._current_recorder))

    def _handle_frame(self, frame: Frame) -> None:
        kind = frame.get("type")
        if kind == _LIFECYCLE_FRAME:
            uuid = str(frame.get("command_uuid"))
            if frame.get("state") in _DONE_STATES:
                self.pending_messages.discard(uuid)
            elif frame.get("state") == _STARTED and uuid in self.pending_messages:
                self._active_messages.add(uuid)
            return
        if kind == _RESULT:
            # The CLI reports the end of each message only after the result. The caller may by then wait for another
            # result, which would never come.
            self.pending_messages -= self._active_messages
            self._active_messages.clear()
        if kind in _PROTOCOL_FRAMES:
            return
        try:
            message = parse_message(frame)
        except MessageParseError as error:
            log.warning(
                "message from Claude Code could not be parsed; ignored",
                action="claude.unreadable_message",
                reason=str(error)[:200],
            )
            return
        if message is None:
            log.info("unknown message from Claude Code; ignored", action="claude.unknown_message", kind=str(kind)[:100])
        elif self.recorder is not None:
            self.recorder.handle_message(message)

    def _current_recorder(self) -> TurnRecorder:
        if self.recorder is None:
            raise Temporary("Claude Code sent a message before it received a prompt.")
        return self.recorder

    async def _before_call(
        self, hook_input: sdk.HookInput, tool_use_id: str | None, _context: sdk.HookContext
    ) -> sdk.HookJSONOutput:
        """The hook before each call. On any error, the call is denied."""
        try:
            call = Call(str(tool_use_id), str(hook_input["tool_name"]), hook_input["tool_input"])  # pyrefly: ignore[bad-typed-dict-key]
            pending_calls = self._current_recorder().pending_calls
            needs_client = pending_calls.custom_tools.is_custom(call.name) or call.name == QUESTION_TOOL
            if hook_input.get("agent_id") and needs_client:
                return _deny_output(_NO_CUSTOM_TOOLS)
            reason = pending_calls.refusal_reason(call)
            if reason is None:
                directory, agent_id = (str(hook_input.get(name) or "") or None for name in ("cwd", "agent_id"))
                reason = await self._current_recorder().authorize(call, agent_id, directory=directory)
        except Exception as error:  # noqa: BLE001 - fail closed
            if self.recorder is not None:
                failure = error if isinstance(error, FootplateError) else Temporary(f"A tool call failed: {error!r}")
                self.recorder.fail(failure)
            log.warning("tool call denied because of an error", action="claude.call_refused", reason=repr(error))
            return _deny_output(_TURN_ENDED)
        return {} if reason is None else _deny_output(reason)

    async def _after_calls(
        self, hook_input: sdk.HookInput, _tool_use_id: str | None, _context: sdk.HookContext
    ) -> sdk.HookJSONOutput:
        """The hook after the calls of a response. On any error, the CLI does not send the next model request."""
        try:
            if not hook_input.get("agent_id"):
                await self._current_recorder().pending_calls.wait_before_request(self._current_recorder())
        except Exception as error:  # noqa: BLE001 - fail closed
            if self.recorder is not None:
                failure = (
                    error
                    if isinstance(error, FootplateError)
                    else Temporary(f"The hook that runs after a batch of tool calls failed: {error!r}")
                )
                self.recorder.fail(failure)
            return {"continue_": False}
        return {}


_PROTOCOL_FRAMES: Final = frozenset(
    {"control_request", "control_response", "control_cancel_request", "transcript_mirror"}
)


def _deny_output(reason: str) -> sdk.HookJSONOutput:
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        },
    }


class _translate_errors:  # noqa: N801 - a context manager that is used like a function
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
            stderr = self._transport.stderr_tail if self._transport is not None else ""
            raise Temporary(f"Claude Code ended unexpectedly: {stderr or error}"[:2000]) from error
