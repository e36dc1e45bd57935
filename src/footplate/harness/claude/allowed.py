"""Calls of a parked turn that a person allowed, made by the worker itself, before there is a CLI.

A CLI forgets a call that has no result, and cannot be told to make one call of many. So the worker makes it, as the
`native` harness would, at most once: the mark that says so is in the log before. The result goes where the CLI would
have put its own.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from footplate import failpoints
from footplate.domain import events as ev
from footplate.domain.errors import HandOver
from footplate.domain.events import Event
from footplate.domain.json import Json, JsonObject
from footplate.domain.permissions import Outcome
from footplate.domain.ports import Entry, TurnContext, WebAccess
from footplate.harness import approvals, loading
from footplate.harness.claude import tool_names, transcript
from footplate.harness.claude.mapping import Call
from footplate.harness.claude.transcript import Place
from footplate.harness.interrupt import Interrupted, unless_interrupted
from footplate.harness.leftovers import INTERRUPTED

if TYPE_CHECKING:
    from footplate.harness.mcp.servers import Servers
    from footplate.harness.native.tools import ToolOutput

_HARMLESS: Final = frozenset({"description"})
_MOVES_IN: Final = 10.0


@dataclass(frozen=True, slots=True)
class Allowed:
    call: Call
    line: JsonObject
    """Where the CLI wrote the call down."""
    place: Place
    turn_id: str
    """Of the turn that the call belongs to: a later one that has not begun may begin anew, without its own lines."""
    use: Event
    """The event that asked."""
    directory: str | None = None
    """Where the CLI would have run it."""
    edited: JsonObject | None = None
    """The input with which a person allowed it, if not the model's; in the reference's words."""

    @property
    def given(self) -> JsonObject:
        """What it is made with, and judged by."""
        return self.call.input if self.edited is None else self.edited


class Making:
    """Of one turn."""

    def __init__(self, turn: TurnContext, servers: "Servers | None", web: WebAccess, *, timestamp: str) -> None:
        self._turn = turn
        self._servers = servers
        self._web = web
        self._timestamp = timestamp

    async def make(self, calls: Sequence[Allowed]) -> list[Entry]:
        """What the conversation has of them. All of it is in the log when this returns. Once a person interrupts the
        turn, what has not started never does.
        """
        added: list[Entry] = []
        for item in calls:
            if self._turn.interrupt.is_set():
                break
            if self._turn.handover.is_set():
                raise HandOver
            await failpoints.hit("before_intent")
            decision = await self._turn.gate.decide(item.call.name, item.given, directory=item.directory)
            if decision.outcome is Outcome.DENY:
                added.append(await self._close(item, [ev.text_block(decision.refusal)], is_error=True))
                continue
            mark = approvals.started(item.turn_id, item.call.id, item.use)
            await self._turn.log.append(entries=[mark])
            added.append(mark)
            await failpoints.hit("after_intent")
            output = await self._output(item)
            await failpoints.hit("before_result_commit")
            added.append(await self._close(item, output.content, is_error=output.is_error, command=output.command))
            await failpoints.hit("after_result_commit")
        return added

    async def _close(
        self, item: Allowed, content: Sequence[Json], *, is_error: bool, command: JsonObject | None = None
    ) -> Entry:
        event = ev.result_of(item.use, content, is_error=is_error, call_id=item.call.id, command=command)
        line = transcript.closing_line(item.call, item.line, [*content], timestamp=self._timestamp, is_error=is_error)
        entry = transcript.entry(item.turn_id, item.place, line)
        await self._turn.log.append([event], entries=[entry])
        return entry

    async def _output(self, item: Allowed) -> "ToolOutput":
        """Loaded when it is needed: it brings a library along that this harness has no other use for."""
        with loading.ALONE:
            from footplate.harness.native import after, tools

        try:
            output = await unless_interrupted(self._turn.interrupt, self._run(item))
            output = await after.told(self._turn, item.call.name, item.given, output, item.call.id)
            if item.edited is None:
                return output
            return replace(output, content=[approvals.told_of_edit(item.edited), *output.content])
        except Interrupted:
            return tools.failed(INTERRUPTED)

    async def _move(self, directory: str) -> bool:
        """The command was judged for that place, wherever an earlier one has left the shell."""
        moved = await self._turn.environment.shell(f"cd -- {shlex.quote(directory)}", timeout=_MOVES_IN)
        return moved.exit_code == 0

    async def _run(self, item: Allowed) -> "ToolOutput":
        with loading.ALONE:
            from footplate.harness.native import commands, tools
            from footplate.harness.native.tool_inputs import INPUTS
            from footplate.harness.native.web.access import Web

        turn, call = self._turn, item.call
        if self._servers is not None and self._servers.names.of(call.name):
            turn.log.check()
            answer = await self._servers.call(call.name, item.given)
            return tools.ToolOutput(answer.content, is_error=answer.is_error)
        name = tool_names.ours(call.name)
        given = tool_names.our_input(call.name, call.input) if item.edited is None else item.edited
        if name not in INPUTS:
            return tools.failed(
                f"A person allowed this call, but it was not made: after a wait, {name} cannot be called. What a rule "
                "allows is made at once."
            )
        known = INPUTS[name].model_fields
        strange = sorted(given.keys() - known.keys() - _HARMLESS)
        if strange:
            return tools.failed(
                f"A person allowed this call, but it was not made: after a wait, {name} takes no {', '.join(strange)}. "
                "Make the call again without."
            )
        if name == "bash" and item.directory is not None and not await self._move(item.directory):
            return tools.failed(
                f"A person allowed this call, but it was not made: it was to run in {item.directory}, which cannot be "
                "entered any more."
            )
        given = {key: value for key, value in given.items() if key not in _HARMLESS}
        output = await tools.execute(turn.environment, turn.config.tools, name, given, web=Web(self._web))
        return await commands.kept(output, turn.log)
