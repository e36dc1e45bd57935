"""What hooks hear of a turn beside its calls, whichever harness runs it: its prompts, and that a person is asked."""

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
        """As `TurnInputs` does, once hooks have heard of it: nothing is fetched for a prompt that they stop."""
        heard = await self._gate.tell(HookEvent.PROMPT, {"prompt": _text(blocks)})
        if heard.block is not None:
            raise PromptBlocked(heard.block)
        return [*await self._inputs.resolve(blocks), *map(ev.text_block, heard.told)]

    async def resolve_steering(self, blocks: Sequence[JsonObject]) -> list[JsonObject]:
        """The work goes on without a message that they stop, and the model is told that there was one."""
        heard = await self._gate.tell(HookEvent.PROMPT, {"prompt": _text(blocks)})
        if heard.block is not None:
            return [
                ev.text_block(
                    f"A message of the user was kept back by a hook, and you are not told what it says: {heard.block}"
                )
            ]
        return [*await self._inputs.resolve_steering(blocks), *map(ev.text_block, heard.told)]

    async def asked(self, tools: Sequence[str]) -> None:
        """A person has to say whether these calls may be made."""
        message = f"Your permission is needed to use {', '.join(tools)}."
        fields: JsonObject = {"message": message, "notification_type": "permission_prompt"}
        await self._gate.tell(HookEvent.NOTIFICATION, fields, about="permission_prompt")


def _text(blocks: Sequence[JsonObject]) -> str:
    return "\n".join(str(block.get("text")) for block in blocks if block.get("type") == "text")
