"""Records the work of the Claude Code CLI in one turn in the log.

The recorder receives two streams: the messages of the CLI, which are shown as previews, and the CLI's transcript, which
is authoritative. A complete model response is written in one commit with its events, transcript lines and token usage.
After a crash, a response is therefore in the log completely or not at all. A tool call may start only after its
response and its own event are logged.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import structlog

from footplate import failpoints
from footplate.domain.agents.mcp_servers import ToolNames
from footplate.domain.errors import FootplateError, Temporary
from footplate.domain.json import JsonObject
from footplate.domain.ports.harness import Entry, TurnContext
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.events import Event, Usage
from footplate.harness.claude.permissions.pending_calls import PendingCalls
from footplate.harness.claude.permissions.permission_flow import PermissionFlow
from footplate.harness.claude.recording import safe_point
from footplate.harness.claude.recording.response_stream import ResponseStream, StreamedResponse
from footplate.harness.claude.recording.transcript_size_limit import LIMIT_EXCEEDED, OutputLimit
from footplate.harness.claude.threads.next_commit_buffer import PendingCommit
from footplate.harness.claude.threads.subagents import Subagent, TurnSubagents
from footplate.harness.claude.threads.thread_calls import KnownCalls, ThreadCalls
from footplate.harness.claude.transcripts import sdk_message_parser, transcript_lines
from footplate.harness.claude.transcripts.sdk_message_parser import (
    Call,
    ContextCompacted,
    Fact,
    ResponseLine,
    ToolResults,
)
from footplate.harness.claude.transcripts.transcript_lines import Transcript, TranscriptKey

log = structlog.get_logger(__name__)

_TRANSCRIPT_SECONDS: Final = 5.0
"""Seconds within which the transcript must follow the CLI's messages."""

FinishMode: TypeAlias = Literal["well", "interrupted", "lost"]


class TurnRecorder:
    def __init__(
        self, turn: TurnContext, conversation: Transcript, responses: int, *, hold_seconds: float = 0.0
    ) -> None:
        """`hold_seconds`: how long a subagent's call waits for approval."""
        self._turn = turn
        self._entries = [*turn.history]
        self._reported_session = (conversation.session_id, conversation.version)
        self._known_uuids = {str(transcript_lines.line_of(entry).get("uuid")) for entry in conversation.entries}
        self._output_limit = OutputLimit()
        self._known_calls = KnownCalls()
        for entry in conversation.entries:
            self._known_calls.add_logged(transcript_lines.line_of(entry))
        self.inputs = set(conversation.inputs)
        self.responses = responses
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Completed with the error that ends the turn."""
        self._response_stream = ResponseStream(turn.log, may_show=lambda: not self._calls.open)
        self._pending_lines: list[Entry] = []
        """Lines that wait until their response is complete."""
        self._request: Event | None = None
        self._calls = ThreadCalls()
        self._subagents = TurnSubagents(turn)
        self.names = ToolNames(turn.config.mcp_servers)
        self.pending_calls = PendingCalls(turn, hold_seconds)
        self._permission_flow = PermissionFlow(turn, self, self.pending_calls, self._subagents)
        self._rejects_lines = False
        self._handover_requested = self._handed_over = False
        """Whether a handover was requested, and whether the safe point for it is reached."""
        self._lenient = False
        """Whether a fully streamed response counts as complete even if some of its lines are missing."""
        self._changed = asyncio.Condition()
        self._writing = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self.limited_until: float | None = None

    async def begin_request(
        self, events: Sequence[Event], entries: Sequence[Entry], *, repository: JsonObject | None = None
    ) -> None:
        """Logs the start of the first model request. `repository`: the repository's instructions for the CLI, which are
        logged before the CLI receives them.
        """
        self._request = ev.model_request_start(repository=repository)
        await self._turn.log.append([*events, self._request], entries=entries)

    def take_interrupted_subagents(self) -> list[str]:
        """The CLI's ids of the subagents that the user interrupted since the last call."""
        return self._subagents.take_interrupted()

    def handle_message(self, message: object) -> None:
        """Handles the CLI's messages, in order. Never blocks."""
        fact = sdk_message_parser.read_message(message)
        match fact:
            case sdk_message_parser.CliStarted(session_id=session_id, version=version):
                if (session_id, version) != self._reported_session:
                    self._reported_session = (session_id, version)
                    self._pending_lines.append(transcript_lines.session_entry(self._turn.turn_id, session_id, version))
            case sdk_message_parser.SubagentStarted(agent_id=agent_id, call_id=call_id):
                self._subagents.link_call(agent_id, call_id)
            case sdk_message_parser.RateLimitReported(rejected=True, resets_at=resets_at):
                self.limited_until = resets_at
            case sdk_message_parser.TranscriptLineLost(error=error):
                self.fail(Temporary(f"Part of the conversation could not be stored: {error}"))
            case sdk_message_parser.UnknownMessage(kind=kind):
                log.info("unknown message from Claude Code; ignored", action="claude.unknown_message", kind=kind[:100])
            case _:
                if self._response_stream.handle_fact(fact) and self._pending_lines:
                    self.spawn(self._catch_up())
                if self._response_stream.exceeds_limits:
                    self.fail(Temporary(LIMIT_EXCEEDED))

    async def record_lines(self, key: TranscriptKey, lines: Sequence[Mapping[str, Any]]) -> None:
        """Handles lines of the transcript, in order. Responses and results that they complete are durable when this
        returns.
        """
        if self.failed.done():
            return
        try:
            async with self._writing:
                for line in transcript_lines.filter_new_lines(lines, self._known_uuids):
                    self._output_limit.count_line(line)
                    self._known_calls.check_and_add(line)
                    self._add_line(key, line)
                await self._commit()
        except FootplateError as error:
            self.fail(error)
            raise

    async def authorize(self, call: Call, agent_id: str | None = None, *, directory: str | None = None) -> str | None:
        """Returns None when the call may start, and otherwise the reason. Before it returns None, the call and
        everything that led to it are logged.
        """
        return await self._permission_flow.authorize(call, agent_id, directory)

    def claim_start(self, call_id: str, name: str, call_input: JsonObject | None = None) -> bool:
        """Whether the worker may make this call now. It may once, and only as it was permitted."""
        return self._calls.claim_start(call_id, name, call_input)

    def find_use(self, call_id: str) -> Event | None:
        """The event of a running call. None: the call is not logged yet, as a custom tool's."""
        return self._calls.use_events.get(call_id)

    async def finish(self, mode: FinishMode = "well") -> None:
        """Logs the rest of the CLI's work after it has stopped.

        A partial response is logged only if the user interrupted it. `lost` drops it, because a restart would mistake
        it for a complete response.
        """
        await self.pending_calls.subagent_approvals.deny_held(permanently=mode != "well")
        async with self._writing:
            while (batch := self._gather_commit(all_of_it=mode != "lost")).has_more:
                await self._write(batch)
            if mode != "lost":
                self._subagents.end_subagents(batch)
            usage: Usage | None = None
            if mode == "well":
                self._end_empty_response(batch)
            elif (usage := self._response_stream.pop_last_usage()) is not None:
                self._start_request(
                    batch
                )  # the CLI sent another request by itself, for a message at the end of the turn
            if mode == "interrupted":
                batch.events += self._response_stream.cut_short_events()
                batch.marks.append(transcript_lines.interrupted_mark(self._turn.turn_id))
            if self._request is not None:
                batch.events.append(self._end_request(usage, is_error=True))
                batch.add_usage(usage)
            self._rejects_lines = mode == "lost"
            await self._write(batch)

    async def hand_over(self) -> None:
        """Returns at a safe point: no call is open, no response is partly stored, and no more lines are accepted."""
        self._handover_requested = True
        while not self._handed_over:
            await self.wait_until(
                lambda: self._handed_over or not (self._calls.open or self._response_stream.has_unrecorded_response),
                None,
            )
            async with self._writing:
                await self._commit()
                self._stop_after(PendingCommit())
        await self.finish("lost")

    def _stop_after(self, batch: PendingCommit) -> None:
        """Stops recording after the commit that closes the last call. This is decided with the commit and not by
        `hand_over`, because a fast model could open the next call in between.
        """
        if (
            self._handover_requested
            and not batch.has_open_calls_after(self._calls)
            and not self._response_stream.has_unrecorded_response
        ):
            self._rejects_lines = self._handed_over = True

    def _stop_before_next_call(self) -> None:
        if not self._handover_requested or self._subagents.awaiting_last_line():
            return
        point = safe_point.find_safe_point(
            [transcript_lines.parse_entry(entry) for entry in self._pending_lines], self._calls.open
        )
        if point is not None:
            del self._pending_lines[point:]
            self._rejects_lines = self._handed_over = True

    @property
    def partial_text(self) -> str:
        """The text of the response that is still streaming."""
        return self._response_stream.partial_text

    @property
    def entries(self) -> list[Entry]:
        """The conversation, including entries that are not committed yet."""
        return [*self._entries, *self._pending_lines, *self._subagents.pending_entries]

    def take_pending(self) -> list[Entry]:
        lines = self._pending_lines
        self._pending_lines = []
        return [*lines, *self._subagents.pending_entries]

    def inherit_pending(self, previous: "TurnRecorder") -> None:
        """Takes over lines that the same CLI wrote after the end of its last turn. They belong to the
        conversation too.
        """
        self._pending_lines[:0], self._known_uuids = previous.take_pending(), self._known_uuids | previous._known_uuids  # noqa: SLF001 - the same class

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _add_line(self, key: TranscriptKey, line: JsonObject) -> None:
        if self._rejects_lines or (not key.subpath and transcript_lines.is_error_notice(line)):
            self._rejects_lines = True  # later lines are children of a line that is not stored
            return
        if not key.subpath and self.pending_calls.is_placeholder(line):
            return
        if not key.subpath and (input_uuid := transcript_lines.input_uuid(line)):
            self.inputs.add(input_uuid)
        entry = transcript_lines.line_entry(self._turn.turn_id, key, line)
        if not (key.subpath and self._subagents.add_line(key.subpath, entry)):
            self._pending_lines.append(entry)

    def calls_of(self, agent_id: str | None) -> ThreadCalls | None:
        """The calls of a thread. None for a subagent whose starting call is unknown."""
        return self._calls if agent_id is None else self._subagents.calls_of(agent_id)

    async def _commit(self) -> None:
        self._stop_before_next_call()
        while (batch := self._gather_commit()).entries:
            self._stop_after(batch)
            await self._write(batch)

    def _gather_commit(self, *, all_of_it: bool = False) -> PendingCommit:
        """Collects the next commit: one complete response or result, so that a fork at its events contains nothing
        later. A line without an event is committed with the next line that has one.
        """
        batch = PendingCommit()
        self._subagents.gather_commit(batch, self.names, all_of_it=all_of_it)
        if batch.events:
            batch.has_more = True
            return batch
        count = self._add_next(batch, all_of_it=all_of_it)
        batch.add_lines(self._pending_lines, count)
        batch.has_more = 0 < count < len(self._pending_lines)
        return batch

    def _add_next(self, batch: PendingCommit, *, all_of_it: bool) -> int:
        """Adds the next response or result of the primary thread. Returns the number of lines it covers."""
        facts = [transcript_lines.parse_entry(entry) for entry in self._pending_lines]
        response_id: str | None = None
        count = 0
        for index, fact in enumerate(facts):
            if isinstance(fact, ResponseLine):
                if response_id is None and (all_of_it or self._is_complete(fact.message_id, facts[index:])):
                    response_id = fact.message_id
                    self._add_response(batch, response_id, facts)
                elif fact.message_id != response_id:
                    return count
            elif isinstance(fact, ToolResults):
                # A call that the CLI itself refuses has its result in the middle of its response.
                inside = response_id is not None and bool(sdk_message_parser.response_lines(response_id, facts[index:]))
                if (response_id is not None and not inside) or (not all_of_it and self._awaits_subagent(fact)):
                    return count
                self._add_results(batch, fact)
                if not inside:
                    return index + 1
            elif isinstance(fact, ContextCompacted):
                batch.events.append(ev.context_compacted())
            else:
                continue
            count = index + 1
        return len(self._pending_lines) if all_of_it else count

    def _awaits_subagent(self, fact: ToolResults) -> bool:
        """Whether a subagent's last lines are still missing. They are committed before its result, unless they do not
        arrive in time.
        """
        waits = self._subagents.awaiting_last_line([result.call_id for result in fact.results])
        for subagent in waits:
            self.spawn(self._stop_waiting_for(subagent))
        return bool(waits)

    async def _write(self, batch: PendingCommit) -> None:
        entries = batch.entries
        if not (batch.events or entries):
            return
        for output in batch.stored_outputs:
            await output.upload(self._turn)
        if batch.completed_calls:
            await failpoints.hit("before_result_commit")
        await self._turn.log.append(batch.events, entries=entries, usage=batch.usage)
        self._entries += entries
        batch.mark_committed()
        await self.close_calls()
        if batch.completed_calls:
            await failpoints.hit("after_result_commit")

    async def close_calls(self, call_ids: Sequence[str] = ()) -> None:
        """Closes the calls and wakes everything that waits for a change."""
        for call_id in call_ids:
            self._calls.close_call(call_id)
        self._response_stream.show()
        async with self._changed:
            self._changed.notify_all()

    async def wait_until_calls_closed(self) -> None:
        await self.wait_until(lambda: not self._calls.open, "the results of tool calls")

    def _is_complete(self, message_id: str, facts: Sequence[Fact]) -> bool:
        """Whether the response is fully streamed and all its lines are here, or the conversation continued after it."""
        lines = sdk_message_parser.response_lines(message_id, facts)
        response = self._response_stream.find(message_id)
        refused = {call.id for fact in lines for call in fact.calls} if response and not response.is_complete else set()
        if sdk_message_parser.has_continued([fact for fact in facts if fact not in lines], refused):
            return True
        if response is None or not response.is_complete:
            return False
        return self._lenient or sum(len(fact.parts) for fact in lines) >= len(response.blocks)

    def _add_response(self, batch: PendingCommit, message_id: str, facts: Sequence[Fact]) -> None:
        """Adds a whole response to the commit: its text, its calls, and the end of its request."""
        lines = sdk_message_parser.response_lines(message_id, facts)
        parts = [part for fact in lines for part in fact.parts]
        response = self._response_stream.pop(message_id) or StreamedResponse("", {}, is_complete=True)
        self._start_request(batch)
        used = sdk_message_parser.to_usage(response.model, response.token_counts)
        batch.events += sdk_message_parser.text_events(parts, response.preview_ids)
        batch.events.append(self._end_request(used, is_error=not response.is_complete))
        batch.add_usage(used)
        batch.new_calls += [(self._calls, part) for part in parts if isinstance(part, Call)]
        self.responses += 1

    def _add_results(self, batch: PendingCommit, fact: ToolResults) -> None:
        self._subagents.end_subagents(batch, [result.call_id for result in fact.results])
        batch.add_results(self._calls, fact, lambda call: self.pending_calls.refused_event(call, self.names))
        open_calls = batch.has_open_calls_after(self._calls)
        if not (open_calls or self._request or self.pending_calls.pending_event_ids or self._turn.interrupt.is_set()):
            self._start_request(batch)

    def _start_request(self, batch: PendingCommit) -> None:
        """Adds the start of a model request, if it is not logged yet."""
        if self._request is None:
            self._request = ev.model_request_start()
            batch.events.append(self._request)

    def _end_empty_response(self, batch: PendingCommit) -> None:
        """Ends the request of an empty response, for which the transcript has no line. Raises `Temporary` if any other
        response is missing from the transcript.
        """
        used = self._response_stream.pop_empty_usage()
        if self._request is not None and used is not None:
            batch.events.append(self._end_request(used, is_error=False))
            batch.add_usage(used)
        if self._request is not None:
            raise Temporary("Claude Code finished, but its response is missing from its transcript.")

    def _end_request(self, used: Usage | None, *, is_error: bool) -> Event:
        assert self._request is not None
        request, self._request = self._request, None
        return ev.model_request_end(request.id, used or Usage(), is_error=is_error)

    async def wait_until(self, reached: Callable[[], bool], expected: str | None) -> None:
        """Waits for a condition. `expected`: what the transcript must contain soon, which limits the wait. None: no
        limit.
        """
        waited = False
        while not reached():
            if self.failed.done():
                raise Temporary("The turn failed while waiting for Claude Code's transcript.")
            try:
                async with self._changed, asyncio.timeout(_TRANSCRIPT_SECONDS if expected else None):
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

    async def _stop_waiting_for(self, subagent: Subagent) -> None:
        await asyncio.sleep(_TRANSCRIPT_SECONDS)
        if not subagent.has_last_line:
            subagent.has_last_line = True
            await self._catch_up()
