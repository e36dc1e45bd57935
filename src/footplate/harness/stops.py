"""The end of a turn, of which hooks hear before it is one: they may say what is left to do. For every harness.

What they say joins the conversation as a message would. An attempt that follows a lost one may ask them again.
"""

from typing import Final

from footplate.domain import events as ev
from footplate.domain import ids
from footplate.domain.hooks import HookEvent
from footplate.domain.ports import SteerMessage, TurnContext
from footplate.harness.interrupt import Interrupted, unless_interrupted

MOST: Final = 5
"""How often an attempt at a turn goes on because a hook says so."""


class Stops:
    def __init__(self, turn: TurnContext) -> None:
        self._turn = turn
        self.said: set[str] = set()
        """Ids of what they said, which is nobody's message."""

    async def held_up(self, text: str) -> SteerMessage | None:
        """`text`: the model's last word. None: the turn may end."""
        turn = self._turn
        if len(self.said) >= MOST or turn.interrupt.is_set():
            return None
        try:
            heard = await unless_interrupted(
                turn.interrupt,
                turn.gate.tell(HookEvent.STOP, {"stop_hook_active": bool(self.said), "last_assistant_message": text}),
            )
        except Interrupted:
            return None
        if heard.block is None:
            return None
        message = SteerMessage(ids.new_id(ids.EVENT), [ev.text_block(f"Stop hook feedback:\n{heard.block}")])
        self.said.add(message.event_id)
        return message
