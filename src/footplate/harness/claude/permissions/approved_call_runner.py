"""Runs tool calls that were approved while their turn was suspended, before the Claude Code CLI starts again.

The CLI ignores a call that has no result, and has no command to run a single call. The worker therefore runs the call
with the tools of the `native` harness, and writes the result to the transcript. An entry in the log marks the start of
the call, so that the call runs at most once.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from footplate import failpoints
from footplate.domain.errors import HandOver
from footplate.domain.json import Json, JsonObject
from footplate.domain.policy.permissions import PermissionOutcome
from footplate.domain.ports.harness import Entry, TurnContext, WebAccess
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.events import Event
from footplate.harness import approvals, lazy_import
from footplate.harness.claude.transcripts import tool_names, transcript_lines
from footplate.harness.claude.transcripts.sdk_message_parser import Call
from footplate.harness.claude.transcripts.transcript_lines import TranscriptKey
from footplate.harness.interrupt import Interrupted, unless_interrupted
from footplate.harness.recovery_text import INTERRUPTED
from footplate.harness.tool_calls import command_details
from footplate.harness.tool_calls.session_tools import SessionTools

if TYPE_CHECKING:
    from footplate.harness.mcp.tool_client import McpServers
    from footplate.harness.native.toolset.builtin_tools import ToolOutput

_IGNORED_FIELDS: Final = frozenset({"description"})
_CD_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class ApprovedCall:
    call: Call
    line: JsonObject
    """The transcript line that contains the call."""
    transcript_key: TranscriptKey
    turn_id: str
    """The turn that made the call. The result must belong to it, because a later turn that is restarted from its prompt
    drops its own lines."""
    use: Event
    """The event that asked for approval."""
    directory: str | None = None
    """The directory where the CLI would have run the call."""
    edited_input: JsonObject | None = None
    """The input that the person approved instead of the model's, with Footplate's field names."""
    session_tool: str | None = None
    """The tool for child sessions that the call uses."""
    is_repeated: bool = False
    """Whether a lost attempt may have made the call. It takes effect once for each event, so it is made again."""

    @property
    def call_input(self) -> JsonObject:
        """The input that the call runs with and that the gate evaluates."""
        return self.call.input if self.edited_input is None else self.edited_input


class ApprovedCallRunner:
    """Runs the approved calls of one turn."""

    def __init__(self, turn: TurnContext, servers: "McpServers | None", web: WebAccess, *, timestamp: str) -> None:
        self._turn = turn
        self._servers = servers
        self._web = web
        self._timestamp = timestamp

    async def run_calls(self, calls: Sequence[ApprovedCall]) -> list[Entry]:
        """Runs the calls and returns the entries it added. All of them are logged when this returns. After an
        interrupt, no further call starts.
        """
        added: list[Entry] = []
        for item in calls:
            if self._turn.interrupt.is_set():
                break
            if self._turn.handover.is_set():
                raise HandOver
            await failpoints.hit("before_intent")
            if (refusal := await self._refusal(item)) is not None:
                denied = command_details.of_unfinished_call(item.use, "denied", refusal)
                content = [ev.text_block(refusal)]
                added.append(await self._record_result(item, content, is_error=True, command=denied))
                continue
            mark = approvals.started_mark(item.turn_id, item.call.id, item.use)
            await self._turn.log.append(entries=[mark])
            added.append(mark)
            await failpoints.hit("after_intent")
            output = await self._run_with_hooks(item)
            await failpoints.hit("before_result_commit")
            added.append(
                await self._record_result(item, output.content, is_error=output.is_error, command=output.command)
            )
            await failpoints.hit("after_result_commit")
        return added

    async def _refusal(self, item: ApprovedCall) -> str | None:
        """Why the call does not run, for the model. The gate has already permitted a repeated call."""
        if item.is_repeated:
            return None
        name = item.session_tool or item.call.name
        decision = await self._turn.gate.decide(name, item.call_input, directory=item.directory)
        return decision.refusal if decision.outcome is PermissionOutcome.DENY else None

    async def _record_result(
        self, item: ApprovedCall, content: Sequence[Json], *, is_error: bool, command: JsonObject | None = None
    ) -> Entry:
        event = ev.tool_result_for(item.use, content, is_error=is_error, call_id=item.call.id, command=command)
        line = transcript_lines.closing_line(
            item.call, item.line, [*content], timestamp=self._timestamp, is_error=is_error
        )
        entry = transcript_lines.line_entry(item.turn_id, item.transcript_key, line)
        await self._turn.log.append([event], entries=[entry])
        return entry

    async def _run_with_hooks(self, item: ApprovedCall) -> "ToolOutput":
        """Runs the call and its hooks. Imports the tools lazily, because they need a library that this harness does not
        use otherwise.
        """
        with lazy_import.IMPORT_LOCK:
            from footplate.harness.native.toolset import builtin_tools, post_tool_hooks

        try:
            output = await unless_interrupted(self._turn.interrupt, self._run_call(item))
            output = await post_tool_hooks.add_hook_feedback(
                self._turn, item.call.name, item.call_input, output, item.call.id
            )
            if item.edited_input is None:
                return output
            return replace(output, content=[approvals.edited_input_notice(item.edited_input), *output.content])
        except Interrupted:
            return builtin_tools.unfinished_output(item.use, "interrupted", INTERRUPTED)

    async def _enter_directory(self, directory: str) -> bool:
        """Moves the shell to the directory that the gate evaluated the command for. An earlier command may have left
        the shell elsewhere.
        """
        result = await self._turn.environment.shell(f"cd -- {shlex.quote(directory)}", timeout=_CD_SECONDS)
        return result.exit_code == 0

    async def _run_call(self, item: ApprovedCall) -> "ToolOutput":
        with lazy_import.IMPORT_LOCK:
            from footplate.harness.native.toolset import builtin_tools, output_overflow
            from footplate.harness.native.toolset.tool_inputs import TOOL_INPUTS
            from footplate.harness.native.web.web_tools import WebTools

        turn, call = self._turn, item.call
        if item.session_tool is not None:
            done = await SessionTools(turn).run(item.session_tool, item.call_input, item.use.id)
            return builtin_tools.session_output(done)
        if self._servers is not None and self._servers.names.resolve(call.name):
            turn.log.check()
            result = await self._servers.call_tool(call.name, item.call_input, item.use.id)
            return builtin_tools.ToolOutput(result.content, is_error=result.is_error)
        name = tool_names.footplate_name(call.name)
        call_input = (
            tool_names.footplate_input(call.name, call.input) if item.edited_input is None else item.edited_input
        )
        if name not in TOOL_INPUTS:
            return builtin_tools.failed_output(
                f"This call was approved but did not run: {name} cannot run after a wait for approval. "
                f"It runs only if a rule allows it without approval."
            )
        known = TOOL_INPUTS[name].model_fields
        unsupported = sorted(call_input.keys() - known.keys() - _IGNORED_FIELDS)
        if unsupported:
            return builtin_tools.failed_output(
                f"This call was approved but did not run: {name} does not support these parameters after a "
                f"wait for approval: {', '.join(unsupported)}. Make the call again without them."
            )
        if name == "bash" and item.directory is not None and not await self._enter_directory(item.directory):
            return builtin_tools.failed_output(
                f"This call was approved but did not run: its working directory {item.directory} is no longer "
                "accessible."
            )
        call_input = {key: value for key, value in call_input.items() if key not in _IGNORED_FIELDS}
        output = await builtin_tools.execute_tool(
            turn.environment, turn.config.tools, name, call_input, web=WebTools(self._web)
        )
        return await output_overflow.store_full_output(output, turn.log)
