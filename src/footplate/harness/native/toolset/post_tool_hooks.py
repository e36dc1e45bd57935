"""Runs the `PostToolUse` hooks after a tool call.

The `claude` harness also uses this module, for calls that were approved while their turn was suspended. The worker runs
these calls itself, before it starts the Claude Code CLI again.
"""

from dataclasses import replace

from footplate.domain.json import JsonObject
from footplate.domain.policy.hooks import HookEvent
from footplate.domain.ports.harness import TurnContext
from footplate.domain.sessions import events as ev
from footplate.harness.interrupt import Interrupted, unless_interrupted
from footplate.harness.native.toolset.builtin_tools import ToolOutput


async def add_hook_feedback(
    turn: TurnContext, tool: str, tool_input: JsonObject, output: ToolOutput, call_id: str
) -> ToolOutput:
    """Runs the hooks and adds their messages to the output. As in Claude Code, failed calls are skipped. An interrupt
    does not wait for hooks.
    """
    if output.is_error or turn.interrupt.is_set():
        return output
    fields: JsonObject = {"tool_input": tool_input, "tool_response": _response(output), "tool_use_id": call_id}
    try:
        feedback = await unless_interrupted(
            turn.interrupt, turn.gate.run_hooks(HookEvent.AFTER_TOOL, fields, about=tool)
        )
    except Interrupted:
        return output
    messages = [
        *feedback.messages,
        *([] if feedback.block_reason is None else [f"Feedback from a hook on this call: {feedback.block_reason}"]),
    ]
    return replace(output, content=[*output.content, *map(ev.text_block, messages)]) if messages else output


def _response(output: ToolOutput) -> JsonObject:
    """A command's output in Claude Code's format. For other tools, the content that the model receives."""
    if output.command is None:
        return {"content": [*output.content]}
    streams = {name: _text(output.command.get(name)) for name in ("stdout", "stderr")}
    return {**streams, "interrupted": False, "isImage": False}


def _text(stream: object) -> str:
    return str(stream.get("text")) if isinstance(stream, dict) else ""
