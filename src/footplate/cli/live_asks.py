"""Asks the watching user to approve subagent calls while their turn is still running.

Questions are asked one at a time, and events that arrive during a question are shown after it. A question ends early if
another person decides or the call times out: both appear as an event in the log. Input typed for one question is
never used for the next one.
"""

import asyncio
from typing import Final

from footplate.cli import output, prompting
from footplate.cli.answers import RunResult
from footplate.cli.views import View
from footplate.client import Approval, AsyncFootplate, ClientError
from footplate.client.models import Event

_DELEGATING: Final = "Agent"
"""The call that starts a subagent waits for approval in the same way as the subagent's calls."""
_USES: Final = frozenset({"agent.tool_use", "agent.mcp_tool_use"})
_LAST: Final = frozenset({"session.status_idle", "session.status_terminated", "session.deleted"})
_BREATH: Final = 1.0
"""Pause in seconds after a question that was decided elsewhere, so that a late key press does not answer the next."""


class LiveAsks:
    """A view that also asks for approval of pending subagent calls."""

    def __init__(self, client: AsyncFootplate, view: View) -> None:
        self._client = client
        self._view = view
        self._waiting: dict[str, Event] = {}
        """Calls without a decision in the log, by id."""
        self._later: list[Event] = []
        """Events that arrived while a question is on the screen."""
        self._question: asyncio.Task[str | None] | None = None
        self._about = ""
        """The id of the call in question."""
        self._asking: asyncio.Task[None] | None = None

    def show(self, event: Event) -> None:
        if event.type in _LAST:
            self._end()
        elif event.type == "user.tool_confirmation" and self._waiting.pop(str(event.tool_use_id), None) is not None:
            self._answered(event)
        if self._question is not None:
            self._later.append(event)
            return
        self._view.show(event)
        if _is_live(event):
            self._waiting[str(event.id)] = event
            if self._asking is None or self._asking.done():
                self._asking = asyncio.create_task(self._ask_all())

    def note(self, text: str) -> None:
        if self._question is not None:
            output.err().print()
        self._view.note(text)

    def connection(self, error: ClientError | None) -> None:
        self._view.connection(error)

    def tick(self) -> None:
        if self._question is None:
            self._view.tick()

    def finish(self, result: RunResult) -> None:
        self._end()
        self._view.finish(result)

    async def _ask_all(self) -> None:
        while self._waiting:
            event_id = next(iter(self._waiting))
            try:
                await self._ask(event_id)
            except ClientError as error:  # decided meanwhile, or not allowed for this key; the turn continues
                self.note(error.message)
            self._waiting.pop(event_id, None)

    async def _ask(self, event_id: str) -> None:
        approval = await self._client.approvals.retrieve(event_id)
        if approval.status != "pending" or event_id not in self._waiting:
            return
        self._view.note("")
        self._about, self._question = event_id, (question := asyncio.create_task(prompting.word(approval)))
        await asyncio.wait({question})
        if question.cancelled():
            await asyncio.sleep(_BREATH)
            return
        self._waiting.pop(event_id, None)
        self._close()
        await self._say(approval, question.result())

    async def _say(self, approval: Approval, word: str | None) -> None:
        if word is None:
            self.note(
                f"Still pending: footplate approve {approval.id}. Without a decision in time, the call is denied."
            )
        elif word == "allow":
            await self._client.approvals.allow(approval)
        else:
            await self._client.approvals.deny(approval)

    def _answered(self, word: Event) -> None:
        if self._question is None or self._about != word.tool_use_id:
            return
        why = f": {word.deny_message}" if word.deny_message else "."
        self.note(f"Already {'allowed' if word.result == 'allow' else 'denied'} by someone else{why}")
        prompting.forget_typed()
        self._close()

    def _close(self) -> None:
        """Closes the question and shows the events that arrived during it."""
        question, self._question = self._question, None
        if question is not None:
            question.cancel()
        later, self._later = self._later, []
        for event in later:
            self.show(event)

    def _end(self) -> None:
        """Closes the question and stops asking: the turn is over."""
        if self._question is not None:
            output.err().print()
        self._close()
        self._waiting.clear()
        if self._asking is not None:
            self._asking.cancel()


def _is_live(event: Event) -> bool:
    """Whether the turn keeps running while this call waits. Calls of the main agent park the turn instead."""
    if event.type not in _USES or event.evaluated_permission != "ask":
        return False
    return event.session_thread_id is not None or event.name == _DELEGATING
