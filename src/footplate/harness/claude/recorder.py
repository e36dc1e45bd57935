"""Records in the log what the CLI does in one turn.

The recorder receives two streams: the CLI's messages, which are shown as previews, and a moment later its transcript,
which is authoritative. A model response is one commit with its events, lines and usage, made when the response is
complete, so that a restart finds all of it or nothing. A call may start only after that commit and after its own event
is logged.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import structlog

from footplate import failpoints
from footplate.domain import events as ev
from footplate.domain.errors import FootplateError, Temporary
from footplate.domain.events import Event, Usage
from footplate.domain.json import JsonObject
from footplate.domain.mcp import Names
from footplate.domain.ports import Entry, TurnContext
from footplate.harness.claude import leaving, mapping, transcript
from footplate.harness.claude.answer import Answer, Answers
from footplate.harness.claude.asking import Asking
from footplate.harness.claude.batch import Batch
from footplate.harness.claude.calls import Calls, KnownCalls
from footplate.harness.claude.letting import Letting
from footplate.harness.claude.mapping import Answered, Call, Compacted, Fact, Said
from footplate.harness.claude.subagents import Subagent, Subagents
from footplate.harness.claude.transcript import Place, Transcript
from footplate.harness.claude.volume import FLOOD, Volume

log = structlog.get_logger(__name__)

_PATIENCE: Final = 5.0
"""Seconds within which the transcript must follow the CLI's messages."""

Settling: TypeAlias = Literal["well", "interrupted", "lost"]


class Recorder:
    def __init__(self, turn: TurnContext, conversation: Transcript, responses: int, *, hold_seconds: float = 0.0) -> None:
        """`hold_seconds`: how long a subagent's call waits for approval."""
        self._turn = turn
        self._kept = [*turn.history]
        self._named = (conversation.session_id, conversation.version)
        self._known = {str(transcript.line_of(entry).get("uuid")) for entry in conversation.entries}
        self._volume = Volume()
        self._known_calls = KnownCalls()
        for kept in conversation.entries:
            self._known_calls.learn(transcript.line_of(kept))
        self.inputs = set(conversation.inputs)
        self.responses = responses
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Completed with the error that ends the turn."""
        self._answers = Answers(turn.log, may_show=lambda: not self._calls.open)
        self._held: list[Entry] = []
        """Lines that wait until their response is complete."""
        self._request: Event | None = None
        self._calls = Calls()
        self._subagents = Subagents(turn)
        self.names = Names(turn.config.mcp_servers)
        self.asking = Asking(turn, hold_seconds)
        self._letting = Letting(turn, self, self.asking, self._subagents)
        self._refusing = False
        self._leaving = self._left = False
        """Whether a handover was requested, and whether the safe point for it is reached."""
        self._lenient = False
        """Whether a fully streamed response counts as complete even if some of its lines are missing."""
        self._changed = asyncio.Condition()
        self._writing = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self.limited_until: float | None = None

    async def begin(
        self, events: Sequence[Event], entries: Sequence[Entry], *, repository: JsonObject | None = None
    ) -> None:
        """Logs the start of the first model request. `repository`: the repository's instructions for the CLI, which are
        logged before the CLI receives them.
        """
        self._request = ev.model_request_start(repository=repository)
        await self._turn.log.append([*events, self._request], entries=entries)

    def heard(self, message: object) -> None:
        """Handles the CLI's messages, in order. Never blocks."""
        fact = mapping.read(message)
        match fact:
            case mapping.Started(session_id=session_id, version=version):
                if (session_id, version) != self._named:
                    self._named = (session_id, version)
                    self._held.append(transcript.session_entry(self._turn.turn_id, session_id, version))
            case mapping.Delegated(agent_id=agent_id, call_id=call_id):
                self._subagents.learn(agent_id, call_id)
            case mapping.Limited(rejected=True, resets_at=resets_at):
                self.limited_until = resets_at
            case mapping.Dropped(error=error):
                self.fail(Temporary(f"Part of the conversation could not be stored: {error}"))
            case mapping.Unknown(kind=kind):
                log.info("message not known", action="claude.unknown_message", kind=kind[:100])
            case _:
                if self._answers.hear(fact) and self._held:
                    self.spawn(self._catch_up())
                if self._answers.is_flood:
                    self.fail(Temporary(FLOOD))

    async def mirrored(self, key: Place, lines: Sequence[Mapping[str, Any]]) -> None:
        """Handles lines of the transcript, in order. Responses and results that they complete are durable when this
        returns.
        """
        if self.failed.done():
            return
        try:
            async with self._writing:
                for line in transcript.fresh(lines, self._known):
                    self._volume.add(line)
                    self._known_calls.add(line)
                    self._hold(key, line)
                await self._commit()
        except FootplateError as error:
            self.fail(error)
            raise

    async def intend(self, call: Call, agent_id: str | None = None, *, directory: str | None = None) -> str | None:
        """Returns None when the call may start, and otherwise the reason. Before it returns None, the call and
        everything that led to it are logged.
        """
        return await self._letting.intend(call, agent_id, directory)

    def starts(self, call_id: str, name: str, call_input: JsonObject | None = None) -> bool:
        """Whether the worker may make this call now. It may once, and only as it was permitted."""
        return self._calls.starts(call_id, name, call_input)

    async def settle(self, mode: Settling = "well") -> None:
        """Logs the rest of the CLI's work after it has stopped.

        A partial response is logged only if the user interrupted it. `lost` drops it, because a restart would mistake
        it for a complete response.
        """
        await self.asking.holding.end(permanently=mode != "well")
        async with self._writing:
            while (batch := self._gather(all_of_it=mode != "lost")).goes_on:
                await self._write(batch)
            if mode != "lost":
                self._subagents.end(batch)
            usage: Usage | None = None
            if mode == "well":
                self._end_silent(batch)
            elif (usage := self._answers.take_last_usage()) is not None:
                self._ask(batch)  # the CLI sent another request by itself, for a message at the end of the turn
            if mode == "interrupted":
                batch.events += self._answers.cut_short()
                batch.marks.append(transcript.mark_interrupted(self._turn.turn_id))
            if self._request is not None:
                batch.events.append(self._end(usage, is_error=True))
                batch.add(usage)
            self._refusing = mode == "lost"
            await self._write(batch)

    async def hand_over(self) -> None:
        """Returns at a safe point: no call is open, no response is partly stored, and no more lines are accepted."""
        self._leaving = True
        while not self._left:
            await self.until(lambda: self._left or not (self._calls.open or self._answers.owed), None)
            async with self._writing:
                await self._commit()
                self._leave_after(Batch())
        await self.settle("lost")

    def _leave_after(self, batch: Batch) -> None:
        """Stops recording after the commit that closes the last call. This is decided with the commit and not by
        `hand_over`, because a fast model could open the next call in between.
        """
        if self._leaving and not batch.leaves_open(self._calls) and not self._answers.owed:
            self._refusing = self._left = True

    def _leave_before_the_next_call(self) -> None:
        if not self._leaving or self._subagents.speaking():
            return
        point = leaving.safe_point([transcript.fact_in(entry) for entry in self._held], self._calls.open)
        if point is not None:
            del self._held[point:]
            self._refusing = self._left = True

    @property
    def partial_text(self) -> str:
        """The text of the response that is still streaming."""
        return self._answers.partial_text

    @property
    def entries(self) -> list[Entry]:
        """The conversation, including entries that are not committed yet."""
        return [*self._kept, *self._held, *self._subagents.held]

    def leftovers(self) -> list[Entry]:
        lines, self._held = self._held, []
        return [*lines, *self._subagents.held]

    def inherit(self, previous: "Recorder") -> None:
        """Takes over lines that the same CLI wrote after the end of its last turn. They belong to the
        conversation too.
        """
        self._held[:0], self._known = previous.leftovers(), self._known | previous._known  # noqa: SLF001 - the same class

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _hold(self, key: Place, line: JsonObject) -> None:
        if self._refusing or (not key.subpath and transcript.is_error_notice(line)):
            self._refusing = True  # later lines are children of a line that is not stored
            return
        if not key.subpath and self.asking.withholds(line):
            return
        if not key.subpath and (input_uuid := transcript.inputs_of(line)):
            self.inputs.add(input_uuid)
        entry = transcript.entry(self._turn.turn_id, key, line)
        if not (key.subpath and self._subagents.hold(key.subpath, entry)):
            self._held.append(entry)

    def calls_of(self, agent_id: str | None) -> Calls | None:
        """The calls of a thread. None for a subagent whose starting call is unknown."""
        return self._calls if agent_id is None else self._subagents.calls_of(agent_id)

    async def _commit(self) -> None:
        self._leave_before_the_next_call()
        while (batch := self._gather()).entries:
            self._leave_after(batch)
            await self._write(batch)

    def _gather(self, *, all_of_it: bool = False) -> Batch:
        """Collects the next commit: one complete response or result, so that a fork at its events contains nothing
        later. A line without an event is committed with the next line that has one.
        """
        batch = Batch()
        self._subagents.gather(batch, self.names, all_of_it=all_of_it)
        if batch.events:
            batch.goes_on = True
            return batch
        count = self._tell(batch, all_of_it=all_of_it)
        batch.take(self._held, count)
        batch.goes_on = 0 < count < len(self._held)
        return batch

    def _tell(self, batch: Batch, *, all_of_it: bool) -> int:
        """Adds the next response or result of the primary thread. Returns the number of lines it covers."""
        facts = [transcript.fact_in(entry) for entry in self._held]
        response_id: str | None = None
        count = 0
        for index, fact in enumerate(facts):
            if isinstance(fact, Said):
                if response_id is None and (all_of_it or self._is_complete(fact.message_id, facts[index:])):
                    response_id = fact.message_id
                    self._answered(batch, response_id, facts)
                elif fact.message_id != response_id:
                    return count
            elif isinstance(fact, Answered):
                # A call that the CLI itself refuses has its result in the middle of its response.
                inside = response_id is not None and bool(mapping.lines_of(response_id, facts[index:]))
                if (response_id is not None and not inside) or (not all_of_it and self._is_early(fact)):
                    return count
                self._results(batch, fact)
                if not inside:
                    return index + 1
            elif isinstance(fact, Compacted):
                batch.events.append(ev.context_compacted())
            else:
                continue
            count = index + 1
        return len(self._held) if all_of_it else count

    def _is_early(self, fact: Answered) -> bool:
        """Whether a subagent's last lines are still missing. They are committed before its result, unless they do not
        arrive in time.
        """
        waits = self._subagents.speaking([result.call_id for result in fact.results])
        for subagent in waits:
            self.spawn(self._give_up(subagent))
        return bool(waits)

    async def _write(self, batch: Batch) -> None:
        entries = batch.entries
        if not (batch.events or entries):
            return
        if batch.answered:
            await failpoints.hit("before_result_commit")
        await self._turn.log.append(batch.events, entries=entries, usage=batch.usage)
        self._kept += entries
        batch.committed()
        await self.close_calls()
        if batch.answered:
            await failpoints.hit("after_result_commit")

    async def close_calls(self, call_ids: Sequence[str] = ()) -> None:
        """Closes the calls and wakes everything that waits for a change."""
        for call_id in call_ids:
            self._calls.end(call_id)
        self._answers.show()
        async with self._changed:
            self._changed.notify_all()

    async def calls_closed(self) -> None:
        await self.until(lambda: not self._calls.open, "the results of calls")

    def _is_complete(self, message_id: str, facts: Sequence[Fact]) -> bool:
        """Whether the response is fully streamed and all its lines are here, or the conversation continued after it."""
        lines = mapping.lines_of(message_id, facts)
        response = self._answers.find(message_id)
        refused = {call.id for fact in lines for call in fact.calls} if response and not response.complete else set()
        if mapping.goes_on([fact for fact in facts if fact not in lines], refused):
            return True
        if response is None or not response.complete:
            return False
        return self._lenient or sum(len(fact.parts) for fact in lines) >= len(response.blocks)

    def _answered(self, batch: Batch, message_id: str, facts: Sequence[Fact]) -> None:
        """Adds a whole response to the commit: its text, its calls, and the end of its request."""
        lines = mapping.lines_of(message_id, facts)
        parts = [part for fact in lines for part in fact.parts]
        response = self._answers.take(message_id) or Answer("", {}, complete=True)
        self._ask(batch)
        used = mapping.usage(response.model, response.counted)
        batch.events += mapping.spoken(parts, response.ids)
        batch.events.append(self._end(used, is_error=not response.complete))
        batch.add(used)
        batch.asked += [(self._calls, part) for part in parts if isinstance(part, Call)]
        self.responses += 1

    def _results(self, batch: Batch, fact: Answered) -> None:
        self._subagents.end(batch, [result.call_id for result in fact.results])
        batch.results(self._calls, fact, lambda call: self.asking.refused(call, self.names))
        open_calls = batch.leaves_open(self._calls)
        if not (open_calls or self._request or self.asking.pending or self._turn.interrupt.is_set()):
            self._ask(batch)

    def _ask(self, batch: Batch) -> None:
        """Adds the start of a model request, if it is not logged yet."""
        if self._request is None:
            self._request = ev.model_request_start()
            batch.events.append(self._request)

    def _end_silent(self, batch: Batch) -> None:
        """Ends the request of an empty response, for which the transcript has no line. Raises `Temporary` if any other
        response is missing from the transcript.
        """
        used = self._answers.take_silent()
        if self._request is not None and used is not None:
            batch.events.append(self._end(used, is_error=False))
            batch.add(used)
        if self._request is not None:
            raise Temporary("Claude Code finished, but its response is missing from its transcript.")

    def _end(self, used: Usage | None, *, is_error: bool) -> Event:
        assert self._request is not None
        request, self._request = self._request, None
        return ev.model_request_end(request.id, used or Usage(), is_error=is_error)

    async def until(self, reached: Callable[[], bool], expected: str | None) -> None:
        """Waits for a condition. `expected`: what the transcript must contain soon, which limits the wait. None: no
        limit.
        """
        waited = False
        while not reached():
            if self.failed.done():
                raise Temporary("The turn failed in the meantime.")
            try:
                async with self._changed, asyncio.timeout(_PATIENCE if expected else None):
                    await self._changed.wait()
            except TimeoutError:
                if waited:
                    raise Temporary(f"Claude Code did not write {expected} to its transcript in time.") from None
                waited = self._lenient = True
                async with self._writing:
                    await self._commit()

    def fail(self, error: FootplateError) -> None:
        if not self.failed.done():
            self.failed.set_exception(error)
            self.failed.exception()  # avoids asyncio's warning if the exception is never retrieved

    def spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _catch_up(self) -> None:
        """Commits lines that arrived in the transcript before their response was complete."""
        try:
            async with self._writing:
                await self._commit()
        except FootplateError as error:
            self.fail(error)

    async def _give_up(self, subagent: Subagent) -> None:
        await asyncio.sleep(_PATIENCE)
        if not subagent.quiet:
            subagent.quiet = True
            await self._catch_up()
