"""Runs hooks for events of the Claude Code CLI: after a tool call, after a subagent, and before a compaction.

These hooks cannot permit a call, so no call waits for them. If a hook cannot be run, the turn fails and is retried.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import claude_agent_sdk as sdk
import structlog

from footplate.domain.errors import FootplateError, Temporary
from footplate.domain.json import JsonObject
from footplate.domain.policy.hooks import HookEvent, HookFeedback
from footplate.domain.ports.harness import TurnContext
from footplate.harness.claude.recording.recorder import TurnRecorder

log = structlog.get_logger(__name__)

_AFTER_TOOL_FIELDS: Final = ("tool_input", "tool_response", "tool_use_id", "duration_ms")
_SUBAGENT_FIELDS: Final = ("stop_hook_active", "agent_id", "agent_type", "last_assistant_message")
_COMPACTION_FIELDS: Final = ("trigger", "custom_instructions")


class CliHooks:
    """The hook callbacks of one CLI."""

    def __init__(self, turn: Callable[[], TurnContext | None], recorder: Callable[[], TurnRecorder]) -> None:
        self._turn = turn
        self._recorder = recorder

    def callbacks(self) -> dict[str, sdk.HookCallback]:
        return {
            HookEvent.AFTER_TOOL.value: self._after_tool,
            HookEvent.SUBAGENT_STOP.value: self._after_subagent,
            HookEvent.COMPACTION.value: self._before_compaction,
        }

    async def _after_tool(
        self, hook_input: sdk.HookInput, _tool_use_id: str | None, _context: sdk.HookContext
    ) -> sdk.HookJSONOutput:
        name = str(hook_input.get("tool_name"))
        if self._recorder().pending_calls.custom_tools.is_custom(name):
            return {}  # the client has not returned the result yet
        feedback = await self._run_hooks(HookEvent.AFTER_TOOL, hook_input, _AFTER_TOOL_FIELDS, about=name)
        self._recorder().spawn(self._upload_files())
        output: sdk.types.SyncHookJSONOutput = {}
        if feedback.messages:
            context = "\n".join(feedback.messages)
            output["hookSpecificOutput"] = {"hookEventName": "PostToolUse", "additionalContext": context}
        if feedback.block_reason is not None:
            output["decision"], output["reason"] = "block", feedback.block_reason
        return output

    async def _upload_files(self) -> None:
        """Uploads the files written by a call while the CLI writes its result to the transcript (up to 100 ms)."""
        turn = self._turn()
        try:
            if turn is not None:
                await turn.log.upload_files_ahead()
        except Exception as error:  # noqa: BLE001 - the result's commit uploads them again
            log.info("files could not be uploaded in advance", action="claude.files_not_uploaded", reason=str(error))

    async def _after_subagent(
        self, hook_input: sdk.HookInput, _tool_use_id: str | None, _context: sdk.HookContext
    ) -> sdk.HookJSONOutput:
        await self._run_hooks(
            HookEvent.SUBAGENT_STOP, hook_input, _SUBAGENT_FIELDS, about=str(hook_input.get("agent_type") or "")
        )
        return {}

    async def _before_compaction(
        self, hook_input: sdk.HookInput, _tool_use_id: str | None, _context: sdk.HookContext
    ) -> sdk.HookJSONOutput:
        await self._run_hooks(
            HookEvent.COMPACTION, hook_input, _COMPACTION_FIELDS, about=str(hook_input.get("trigger") or "")
        )
        return {}

    async def _run_hooks(
        self, event: HookEvent, hook_input: Mapping[str, Any], names: tuple[str, ...], *, about: str
    ) -> HookFeedback:
        fields: JsonObject = {name: hook_input[name] for name in ("cwd", *names) if name in hook_input}
        agent = str(hook_input.get("agent_type") or "") if hook_input.get("agent_id") else None
        turn = self._turn()
        try:
            return (
                await turn.gate.run_hooks(event, fields, about=about, agent=agent)
                if turn is not None
                else HookFeedback()
            )
        except Exception as error:  # noqa: BLE001 - the CLI would ignore the error
            failure = error if isinstance(error, FootplateError) else Temporary(f"A hook failed: {error!r}")
            self._recorder().fail(failure)
            return HookFeedback()
