"""Records the work of Claude Code's subagents as events, each subagent in its own thread.

A subagent lives only as long as the tool call that started it, and cannot be resumed. If the attempt is lost, the
result of that call is recorded as unknown. To lose little, each line of a subagent's transcript is recorded when it
arrives, not when the model's response is complete. The token usage of a response is recorded once, with its last line.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from footplate.domain import ids
from footplate.domain.agents import agents_and_config
from footplate.domain.agents.mcp_servers import ToolNames
from footplate.domain.ports.harness import Entry, TurnContext
from footplate.domain.sessions import events as ev
from footplate.domain.sessions import threads
from footplate.domain.sessions.events import Event, Usage
from footplate.harness import approvals
from footplate.harness.claude.threads.next_commit_buffer import PendingCommit
from footplate.harness.claude.threads.thread_calls import SUBAGENT_TOOLS, ThreadCalls
from footplate.harness.claude.transcripts import sdk_message_parser, transcript_lines
from footplate.harness.claude.transcripts.sdk_message_parser import Call, ContextCompacted, ResponseLine, ToolResults
from footplate.harness.recovery_text import UNFINISHED

_MAX_KNOWN: Final = 1000
_SUBPATH_PREFIX: Final = "subagents/agent-"


def refusal_reason(call: Call, known: Sequence[agents_and_config.Subagent]) -> str | None:
    """Why the subagent is not started, as a message for the model. None if it may start."""
    if call.name not in SUBAGENT_TOOLS:
        return None
    return threads.subagent_refusal(call.input, [agent.name for agent in known])


class TurnSubagents:
    """The subagents of one turn, by the id of the call that started each."""

    def __init__(self, turn: TurnContext) -> None:
        self._turn = turn
        self._by_call: dict[str, Subagent] = {}
        self._starting_calls: dict[str, str] = {}
        """The id of the starting call, by the CLI's id of the subagent."""

    def link_call(self, agent_id: str, call_id: str) -> None:
        if len(self._starting_calls) < _MAX_KNOWN:
            self._starting_calls[agent_id] = call_id

    def calls_of(self, agent_id: str) -> ThreadCalls | None:
        subagent = self._by_call.get(self._starting_calls.get(agent_id, ""))
        return subagent.calls if subagent is not None else None

    def take_interrupted(self) -> list[str]:
        """The CLI's ids of the subagents whose threads were interrupted since the last call."""
        call_ids = {call_id: agent_id for agent_id, call_id in self._starting_calls.items()}
        found = [
            (subagent, call_ids[call_id])
            for call_id, subagent in self._by_call.items()
            if call_id in call_ids and subagent.is_interrupted and not subagent.has_ended and not subagent.is_stopping
        ]
        for subagent, _ in found:
            subagent.is_stopping = True
        return [agent_id for _, agent_id in found]

    def start(self, call: Call) -> list[Event]:
        """The events of a started subagent. Empty if the call does not start one."""
        if call.name not in SUBAGENT_TOOLS:
            return []
        self._by_call[call.id] = subagent = Subagent(call, self._turn)
        return subagent.start()

    def add_line(self, subpath: str, entry: Entry) -> bool:
        """Adds a line of a subagent's transcript. Returns False if no call of this turn started the subagent."""
        agent_id = subpath.removeprefix(_SUBPATH_PREFIX)
        if (call_id := transcript_lines.starting_call_id(transcript_lines.line_of(entry))) is not None:
            self.link_call(agent_id, call_id)
        subagent = self._by_call.get(self._starting_calls.get(agent_id, ""))
        if subagent is not None:
            subagent.add_line(entry)
        return subagent is not None

    @property
    def pending_entries(self) -> list[Entry]:
        return [entry for subagent in self._by_call.values() for entry in subagent.pending_entries]

    def gather_commit(self, batch: PendingCommit, names: ToolNames, *, all_of_it: bool) -> None:
        for subagent in self._by_call.values():
            subagent.gather_commit(batch, names, all_of_it=all_of_it)

    def awaiting_last_line(self, call_ids: Iterable[str] | None = None) -> "list[Subagent]":
        """Subagents whose last line has not arrived: those that these calls started, or all."""
        return [subagent for subagent in self._running(call_ids) if not subagent.has_last_line]

    def end_subagents(self, batch: PendingCommit, call_ids: Iterable[str] | None = None) -> None:
        for subagent in self._running(call_ids):
            subagent.end_thread(batch)

    def _running(self, call_ids: Iterable[str] | None) -> "list[Subagent]":
        wanted = {*(self._by_call if call_ids is None else call_ids)}
        return [subagent for call_id, subagent in self._by_call.items() if call_id in wanted and not subagent.has_ended]


class Subagent:
    def __init__(self, call: Call, turn: TurnContext) -> None:
        self.thread_id = ids.new_id(ids.THREAD)
        self.name = str(call.input.get("subagent_type"))
        self.calls = ThreadCalls(self.thread_id, self.name)
        self.pending_entries: list[Entry] = []
        self.has_last_line = False
        """Whether the transcript has its last line."""
        self.has_ended = False
        self.is_stopping = False
        """Whether the CLI was asked to stop this subagent."""
        self._thread_interrupt = turn.thread_interrupt(self.thread_id)
        self._call = call
        self._primary = threads.primary_id(turn.session_id)
        self._interrupt = turn.interrupt
        self._request: Event | None = None
        self._response: tuple[str, str, Mapping[str, Any]] | None = None
        """The current response: its id, model and token counts so far."""
        self._known_responses: set[str] = set()
        self._report = ""
        self._usage = Usage()

    def start(self) -> list[Event]:
        prompt = str(self._call.input.get("prompt") or "")
        self._request = ev.model_request_start()
        return [
            threads.created(self.thread_id, self.name, self._call.id),
            threads.running(self.thread_id, self.name),
            threads.sent(prompt, self.thread_id, self.name),
            *self._in_thread(threads.received(prompt, self._primary, None), self._request),
        ]

    @property
    def is_interrupted(self) -> bool:
        """Whether the user interrupted only this subagent."""
        return self._thread_interrupt.is_set()

    def add_line(self, entry: Entry) -> None:
        self.pending_entries.append(entry)
        line = transcript_lines.line_of(entry)
        if isinstance(transcript_lines.parse_line(line, in_subagent=True), ResponseLine | ToolResults):
            self.has_last_line = transcript_lines.response_metadata(line)[2] not in {None, "tool_use"}
        elif transcript_lines.is_error_notice(line):
            self.has_last_line = True

    def gather_commit(self, batch: PendingCommit, names: ToolNames, *, all_of_it: bool) -> None:
        """Adds the events of its lines. A line without an event is committed with the next line that has one."""
        count = 0
        for index, entry in enumerate(self.pending_entries):
            line = transcript_lines.line_of(entry)
            match transcript_lines.parse_line(line, in_subagent=True):
                case ResponseLine() as fact:
                    self._add_response_line(batch, fact, line)
                case ToolResults() as fact:
                    self._add_results(batch, fact, names)
                case ContextCompacted():
                    batch.events += self._in_thread(ev.context_compacted())
                case _:
                    continue
            count = index + 1
        batch.add_lines(self.pending_entries, len(self.pending_entries) if all_of_it else count)

    def end_thread(self, batch: PendingCommit) -> None:
        """Ends the subagent's thread, because the call that started it has ended. Closes its open calls."""
        self.has_ended = True
        self._end_response(batch)
        done = {call_id for _, call_id in batch.completed_calls}
        for call_id, use in self.calls.use_events.items():
            if call_id not in done:
                text = UNFINISHED if call_id in self.calls.running else approvals.INTERRUPTED_WHILE_PENDING
                result = ev.tool_result_for(use, [ev.text_block(text)], is_error=True, call_id=call_id)
                batch.events += self._in_thread(result)
                batch.completed_calls.append((self.calls, call_id))
        if self._request is not None:
            batch.events += self._in_thread(self._end_request(Usage(), is_error=True))
        if self._report:
            batch.events += self._in_thread(threads.sent(self._report, self._primary, None))
            batch.events.append(threads.received(self._report, self.thread_id, self.name))
        batch.events.append(threads.idle(self.thread_id, self.name, self._usage))

    def _add_response_line(self, batch: PendingCommit, fact: ResponseLine, line: Mapping[str, Any]) -> None:
        model, counted, stopped = transcript_lines.response_metadata(line)
        if self._response is not None and self._response[0] != fact.message_id:
            self._end_response(batch)
        if fact.message_id not in self._known_responses or self._response is not None:
            self._known_responses.add(fact.message_id)
            self._response = (fact.message_id, model, counted)
        if self._response is not None and self._request is None:
            self._request = ev.model_request_start()
            batch.events += self._in_thread(self._request)
        batch.events += self._in_thread(*sdk_message_parser.text_events(fact.parts, {}))
        self._report = fact.text or self._report
        if stopped is not None:
            self._end_response(batch)
        batch.new_calls += [(self.calls, call) for call in fact.calls]

    def _add_results(self, batch: PendingCommit, fact: ToolResults, names: ToolNames) -> None:
        self._end_response(batch)
        batch.add_results(self.calls, fact, lambda call: self.calls.refused_event(call, names))
        if not batch.has_open_calls_after(self.calls) and self._request is None and not self._interrupt.is_set():
            self._request = ev.model_request_start()
            batch.events += self._in_thread(self._request)

    def _end_response(self, batch: PendingCommit) -> None:
        """Ends the current response, if there is one: logs the end of its request, and its usage once."""
        if self._response is None:
            return
        _, model, counted = self._response
        self._response = None
        used = sdk_message_parser.to_usage(model, counted)
        self._usage += used
        batch.add_usage(used)
        batch.events += self._in_thread(self._end_request(used, is_error=False))

    def _end_request(self, used: Usage, *, is_error: bool) -> Event:
        assert self._request is not None
        request, self._request = self._request, None
        return ev.model_request_end(request.id, used, is_error=is_error)

    def _in_thread(self, *events: Event) -> list[Event]:
        return [threads.in_thread(event, self.thread_id) for event in events]
