"""Runs a turn's hooks for prompts and for approval requests. The gate and the harness run the hooks before and after
tool calls.
"""

from collections.abc import Sequence

from footplate.domain.errors import PromptBlocked
from footplate.domain.json import JsonObject
from footplate.domain.policy.hooks import HookEvent
from footplate.domain.ports.harness import Gate
from footplate.domain.sessions import events as ev
from footplate.engine.turn.attachments import TurnAttachments


class TurnHooks:
    def __init__(self, gate: Gate, attachments: TurnAttachments) -> None:
        self._gate = gate
        self._attachments = attachments

    async def resolve_attachments(self, blocks: Sequence[JsonObject]) -> list[JsonObject]:
        """Run the prompt hooks, then prepare the attachments. Nothing is fetched for a prompt that a hook blocks."""
        feedback = await self._gate.run_hooks(HookEvent.PROMPT, {"prompt": _prompt_text(blocks)})
        if feedback.block_reason is not None:
            raise PromptBlocked(feedback.block_reason)
        return [*await self._attachments.resolve_attachments(blocks), *map(ev.text_block, feedback.messages)]

    async def resolve_steering(self, blocks: Sequence[JsonObject]) -> list[JsonObject]:
        """The same for a steering message. If a hook blocks it, the turn continues, and the model learns that a message
        was blocked.
        """
        feedback = await self._gate.run_hooks(HookEvent.PROMPT, {"prompt": _prompt_text(blocks)})
        if feedback.block_reason is not None:
            return [
                ev.text_block(
                    f"A hook withheld a message that the user sent. The hook's reason: {feedback.block_reason}"
                )
            ]
        return [*await self._attachments.resolve_steering(blocks), *map(ev.text_block, feedback.messages)]

    async def notify_approval_needed(self, tools: Sequence[str]) -> None:
        """Run the notification hooks: calls of these tools need a person's approval."""
        message = f"Your permission is needed to use {', '.join(tools)}."
        fields: JsonObject = {"message": message, "notification_type": "permission_prompt"}
        await self._gate.run_hooks(HookEvent.NOTIFICATION, fields, about="permission_prompt")


def _prompt_text(blocks: Sequence[JsonObject]) -> str:
    return "\n".join(str(block.get("text")) for block in blocks if block.get("type") == "text")
