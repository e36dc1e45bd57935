"""Manages approvals of a turn that keeps running while it waits for the decision. Other turns are suspended while they
wait.

This module runs the notification hooks for such an approval, looks up the decision, and closes the approval if no
decision arrives.
"""

from footplate.domain.ports.engine import Claim, LiveTurn, TurnStore
from footplate.domain.sessions.events import Event
from footplate.engine.turn.prompt_and_approval_hooks import TurnHooks


class TurnHeldApprovals:
    """The held calls of one turn."""

    def __init__(self, turns: TurnStore, claim: Claim, live: LiveTurn, hooks: TurnHooks) -> None:
        self._turns = turns
        self._claim = claim
        self._live = live
        self._hooks = hooks

    async def announce(self, use: Event) -> None:
        await self._hooks.notify_approval_needed([str(use.body.get("name"))])

    async def find_decision(self, event_id: str) -> Event | None:
        return await self._turns.find_decision(self._claim, event_id)

    async def close(self, event_id: str, reason: str) -> Event:
        decision, positions = await self._turns.close_approval(self._claim, event_id, reason)
        await self._live.publish(positions)
        return decision
