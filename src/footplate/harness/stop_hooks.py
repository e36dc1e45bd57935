"""Runs the `Stop` hooks at the end of a turn. All harnesses use this module.

A hook can prevent the end of the turn. Its feedback is then added to the conversation like a message of the user. If an
attempt is lost, the next attempt may run the hooks again.
"""

from typing import Final

from footplate.domain import ids
from footplate.domain.policy.hooks import HookEvent
from footplate.domain.ports.harness import SteerMessage, TurnContext
from footplate.domain.sessions import events as ev
from footplate.harness.interrupt import Interrupted, unless_interrupted

MAX_CONTINUATIONS: Final = 5
"""How often `Stop` hooks may prolong one attempt at a turn."""


class StopHooks:
    def __init__(self, turn: TurnContext) -> None:
        self._turn = turn
        self.feedback_ids: set[str] = set()
        """Ids of the hooks' feedback messages. No user event has these ids."""

    async def run_stop_hooks(self, text: str) -> SteerMessage | None:
        """Runs the hooks and returns their feedback, or None if the turn may end. `text`: the model's last response."""
        turn = self._turn
        if len(self.feedback_ids) >= MAX_CONTINUATIONS or turn.interrupt.is_set():
            return None
        try:
            feedback = await unless_interrupted(
                turn.interrupt,
                turn.gate.run_hooks(
                    HookEvent.STOP, {"stop_hook_active": bool(self.feedback_ids), "last_assistant_message": text}
                ),
            )
        except Interrupted:
            return None
        if feedback.block_reason is None:
            return None
        message = SteerMessage(ids.new_id(ids.EVENT), [ev.text_block(f"Stop hook feedback:\n{feedback.block_reason}")])
        self.feedback_ids.add(message.event_id)
        return message
