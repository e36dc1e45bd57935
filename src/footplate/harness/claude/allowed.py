"""Runs the approved calls of a parked turn in the worker, before the CLI starts.

The CLI forgets a call that has no result, and cannot be told to run one of several calls. So the worker runs it as the
`native` harness would, at most once: a mark is logged before the call starts. The result is written to the transcript
where the CLI would have put its own.
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
    """The transcript line that contains the call."""
    place: Place
    turn_id: str
    """The turn that made the call. The result must belong to it, because a later turn that is restarted from its prompt
    drops its own lines."""
    use: Event
    """The event that asked for approval."""
    directory: str | None = None
    """The directory where the CLI would have run the call."""
    edited: JsonObject | None = None
    """The input that the person approved instead of the model's, with Footplate's field names."""

    @property
    def given(self) -> JsonObject:
        """The input that the call runs with and that the gate evaluates."""
        return self.call.input if self.edited is None else self.edited


class Making:
    """Runs the approved calls of one turn."""

    def __init__(self, turn: TurnContext, servers: "Servers | None", web: WebAccess, *, timestamp: str) -> None:
        self._turn = turn
        self._servers = servers
        self._web = web
        self._timestamp = timestamp

    async def make(self, calls: Sequence[Allowed]) -> list[Entry]:
        """Runs the calls and returns the entries it added. All of them are logged when this returns. After an
        interrupt, no further call starts.
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
        """Runs the call and its hooks. Imports the tools lazily, because they need a library that this harness does not
        use otherwise.
        """
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
        """Moves the shell to the directory that the gate evaluated the command for. An earlier command may have left
        the shell elsewhere.
        """
        result = await self._turn.environment.shell(f"cd -- {shlex.quote(directory)}", timeout=_MOVES_IN)
        return result.exit_code == 0

    async def _run(self, item: Allowed) -> "ToolOutput":
        with loading.ALONE:
            from footplate.harness.native import commands, tools
            from footplate.harness.native.tool_inputs import INPUTS
            from footplate.harness.native.web.access import Web

        turn, call = self._turn, item.call
        if self._servers is not None and self._servers.names.of(call.name):
            turn.log.check()
            result = await self._servers.call(call.name, item.given)
            return tools.ToolOutput(result.content, is_error=result.is_error)
        name = tool_names.ours(call.name)
        call_input = tool_names.our_input(call.name, call.input) if item.edited is None else item.edited
        if name not in INPUTS:
            return tools.failed(
                f"This call was approved but did not run: the worker cannot run {name} after a wait for approval. A "
                "call that a rule allows runs at once."
            )
        known = INPUTS[name].model_fields
        unsupported = sorted(call_input.keys() - known.keys() - _HARMLESS)
        if unsupported:
            return tools.failed(
                f"This call was approved but did not run: after a wait for approval, {name} does not support "
                f"{', '.join(unsupported)}. Make the call again without it."
            )
        if name == "bash" and item.directory is not None and not await self._move(item.directory):
            return tools.failed(
                f"This call was approved but did not run: its working directory {item.directory} is no longer "
                "accessible."
            )
        call_input = {key: value for key, value in call_input.items() if key not in _HARMLESS}
        output = await tools.execute(turn.environment, turn.config.tools, name, call_input, web=Web(self._web))
        return await commands.kept(output, turn.log)
