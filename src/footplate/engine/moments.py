"""Runs the hooks of a turn other than those of tool calls, for every harness: prompts, and requests for approval."""

from collections.abc import Sequence

from footplate.domain import events as ev
from footplate.domain.errors import PromptBlocked
from footplate.domain.hooks import HookEvent
from footplate.domain.json import JsonObject
from footplate.domain.ports import Gate
from footplate.engine.inputs import TurnInputs


class Moments:
    def __init__(self, gate: Gate, inputs: TurnInputs) -> None:
        self._gate = gate
        self._inputs = inputs

    async def resolve(self, blocks: Sequence[JsonObject]) -> list[JsonObject]:
        """Run the prompt hooks, then prepare the attachments. Nothing is fetched for a prompt that a hook blocks."""
        heard = await self._gate.tell(HookEvent.PROMPT, {"prompt": _text(blocks)})
        if heard.block is not None:
            raise PromptBlocked(heard.block)
        return [*await self._inputs.resolve(blocks), *map(ev.text_block, heard.told)]

    async def resolve_steering(self, blocks: Sequence[JsonObject]) -> list[JsonObject]:
        """The same for a steering message. If a hook blocks it, the turn continues, and the model learns that a message
        was blocked.
        """
        heard = await self._gate.tell(HookEvent.PROMPT, {"prompt": _text(blocks)})
        if heard.block is not None:
            return [ev.text_block(f"A hook withheld a message from the user. The hook's reason: {heard.block}")]
        return [*await self._inputs.resolve_steering(blocks), *map(ev.text_block, heard.told)]

    async def asked(self, tools: Sequence[str]) -> None:
        """Run the notification hooks: calls of these tools need a person's approval."""
        message = f"Your permission is needed to use {', '.join(tools)}."
        fields: JsonObject = {"message": message, "notification_type": "permission_prompt"}
        await self._gate.tell(HookEvent.NOTIFICATION, fields, about="permission_prompt")


def _text(blocks: Sequence[JsonObject]) -> str:
    return "\n".join(str(block.get("text")) for block in blocks if block.get("type") == "text")
