"""Collects the events, transcript entries and token usage that the next commit of a turn will write."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from footplate.domain.json import JsonObject
from footplate.domain.ports.harness import Entry
from footplate.domain.sessions import events as ev
from footplate.domain.sessions import threads
from footplate.domain.sessions.events import Event, Usage
from footplate.harness.claude.threads.thread_calls import ThreadCalls
from footplate.harness.claude.transcripts import command_results, sdk_message_parser
from footplate.harness.claude.transcripts.command_results import StoredOutput
from footplate.harness.claude.transcripts.sdk_message_parser import Call, ToolResult, ToolResults
from footplate.harness.recovery_text import INTERRUPTED
from footplate.harness.tool_calls import command_details


@dataclass(slots=True)
class PendingCommit:
    events: list[Event] = field(default_factory=list)
    usage: Usage | None = None
    new_calls: list[tuple[ThreadCalls, Call]] = field(default_factory=list)
    """Calls that the model made, with their thread."""
    completed_calls: list[tuple[ThreadCalls, str]] = field(default_factory=list)
    """Ids of the calls whose results are in this commit, with their thread."""
    stored_outputs: list[StoredOutput] = field(default_factory=list)
    """Output of commands that is uploaded before this commit."""
    marks: list[Entry] = field(default_factory=list)
    has_more: bool = False
    """Whether there are more lines to commit after this commit."""
    _lines: list[tuple[list[Entry], int]] = field(default_factory=list)

    def add_usage(self, used: Usage | None) -> None:
        if used is not None:
            self.usage = used if self.usage is None else self.usage + used

    def add_results(self, calls: ThreadCalls, fact: ToolResults, refused_event: Callable[[Call], Event]) -> None:
        """Adds the results of calls. `refused_event`: makes the event of a call that was never permitted. The CLI's
        text about a rejected call says that nothing was written, which is not true of a call that had started.
        """
        for each in fact.results:
            result, use = each, calls.use_events.get(each.call_id)
            if fact.is_rejection and use is not None and use.body.get("evaluated_permission") == "allow":
                result = replace(each, content=(ev.text_block(INTERRUPTED),))
            command = None if use is None else self._describe_command(calls, use, result, fact)
            if use is None:
                # The CLI refused the call itself: the tool does not exist, or its input is invalid.
                call = self._open_and_new_calls(calls).get(result.call_id) or Call(result.call_id, "unknown", {})
                use = refused_event(call)
                self.events.append(use)
            event = sdk_message_parser.tool_result_event(use, result, command)
            self.events.append(threads.in_thread(event, calls.thread_id))
            self.completed_calls.append((calls, result.call_id))

    def _describe_command(
        self, calls: ThreadCalls, use: Event, result: ToolResult, fact: ToolResults
    ) -> JsonObject | None:
        """What a command did. None if the call is not one of `bash`."""
        if not command_details.is_command(use):
            return None
        if fact.is_rejection or result.call_id in calls.denied:
            text = str(result.content[0].get("text") or "") if result.content else ""
            return command_details.without_exit_code("interrupted" if fact.is_rejection else "denied", text)
        command, stored = command_results.describe_command(result, fact.details, calls.duration_ms(result.call_id))
        if stored is not None:
            self.stored_outputs.append(stored)
        return command

    def has_open_calls_after(self, calls: ThreadCalls) -> bool:
        """Whether calls of this thread are still open after this commit."""
        return bool(
            {*self._open_and_new_calls(calls)} - {call_id for of, call_id in self.completed_calls if of is calls}
        )

    def add_lines(self, pending: list[Entry], count: int) -> None:
        """Adds the first `count` of the pending lines to this commit."""
        if count:
            self._lines.append((pending, count))

    @property
    def entries(self) -> list[Entry]:
        return [*(entry for pending, count in self._lines for entry in pending[:count]), *self.marks]

    def mark_committed(self) -> None:
        for pending, count in self._lines:
            del pending[:count]
        for calls, call in self.new_calls:
            calls.open[call.id] = call
        for calls, call_id in self.completed_calls:
            calls.close_call(call_id)

    def _open_and_new_calls(self, calls: ThreadCalls) -> dict[str, Call]:
        return {**calls.open, **{call.id: call for of, call in self.new_calls if of is calls}}
