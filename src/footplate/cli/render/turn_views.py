"""Prints the events of a turn while it runs: as text, as JSON lines, or only the final result."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Protocol

from footplate.cli.json_output_models import RunResult
from footplate.cli.render import value_formatting
from footplate.cli.render.terminal_io import escape_shown, print_json, print_json_line, quote
from footplate.cli.render.terminal_screen import TerminalScreen
from footplate.client import ClientError
from footplate.client.response_models import Event
from footplate.domain.policy.permissions import NOT_EVALUATED
from footplate.domain.sessions.steps import step_id_of
from footplate.domain.text.approval_display import call_label
from footplate.domain.text.visible_text import show_line

PREVIEW_EVENTS: Final = frozenset({"event_start", "event_delta"})
_NAME_WIDTH: Final = 5
_MAX_NAME_LENGTH: Final = 40
_WAITING_STATUS: Final = "waiting for the model"
_STATUS_LABELS: Final = {
    "completed": "[green]completed[/]",
    "failed": "[red]failed[/]",
    "interrupted": "[yellow]interrupted[/]",
    "limit_reached": "[yellow]limit reached[/]",
    "awaiting_tool_results": "[yellow]needs action[/]",
    "timed_out": "[yellow]timed out[/]",
}


class TurnView(Protocol):
    def show_event(self, event: Event) -> None: ...

    def recall_event(self, event: Event) -> None:
        """Receives a call or a decision that is not shown, because later events refer to it."""

    def show_note(self, text: str) -> None:
        """Shows a message that is not in the log."""

    def connection_changed(self, error: ClientError | None) -> None:
        """Reports a lost connection that is being retried, or with None that it is restored."""

    def refresh_status(self) -> None: ...

    def show_result(self, result: RunResult) -> None: ...


class ResultView:
    """`--output json`: prints one object at the end. Notes are dropped, because the result has the same information."""

    def show_event(self, event: Event) -> None: ...

    def recall_event(self, event: Event) -> None: ...

    def show_note(self, text: str) -> None: ...

    def connection_changed(self, error: ClientError | None) -> None: ...

    def refresh_status(self) -> None: ...

    def show_result(self, result: RunResult) -> None:
        print_json(result.model_dump(mode="json"))


class JsonLinesView(ResultView):
    """`--output stream-json`: prints each event on a line as it happens, then the result."""

    def __init__(self, *, previews: bool = False) -> None:
        self._previews = previews

    def show_event(self, event: Event) -> None:
        if self._previews or event.type not in PREVIEW_EVENTS:
            print_json_line(event.wire())

    def show_result(self, result: RunResult) -> None:
        print_json_line(result.model_dump(mode="json"))


class TextView:
    """Streams the agent's text, prints one line per tool call, and the tokens and cost at the end."""

    def __init__(self, *, show_input: bool = False, lines_on_stdout: bool = False) -> None:
        self.queued: Collection[str] = ()
        """The steps of messages that wait in the queue. They are shown too."""
        self._screen = TerminalScreen(lines_on_stdout=lines_on_stdout)
        self._screen.set_status("waiting for the turn to start")
        self._show_input = show_input
        self._open_message_id: str | None = None
        """The id of the message that is being streamed. `_written` counts its characters on the screen."""
        self._written = 0
        self._calls: dict[str, Event] = {}
        self._custom_calls: dict[str, Event] = {}
        self._waiting_calls: frozenset[str] | None = None
        """The custom calls up to `_known_until` that wait for a result. None: not known, so each one does."""
        self._known_until: int | None = None
        self._questions: set[str] = set()
        self._decisions: dict[str, Event] = {}
        """Decisions on calls that needed approval, by the id of the call."""
        self._last_progress: datetime | None = None
        """When the turn last resumed or finished a call. An approved call does not start earlier."""

    def set_waiting_calls(self, event_ids: Collection[str], until: int | None = None) -> None:
        """Sets which custom calls in the log, up to a position, wait for a result. The others are shown with theirs."""
        self._waiting_calls, self._known_until = frozenset(event_ids), until

    def recall_event(self, event: Event) -> None:
        if event.type == "user.tool_confirmation":
            self._decisions[str(event.tool_use_id)] = event
        elif event.type == "agent.custom_tool_use":
            self._custom_calls[str(event.id)] = event
        else:
            self._calls[str(event.id)] = event

    def show_event(self, event: Event) -> None:
        handler = getattr(self, _HANDLERS.get(event.type, ""), None)
        if handler is not None:
            handler(event)

    def show_note(self, text: str) -> None:
        self._screen.print_line(f"[dim]{quote(text)}[/]")

    def connection_changed(self, error: ClientError | None) -> None:
        """Omits the error itself, which does not help the user."""
        if self._screen.is_live:
            self._screen.set_status("connection lost, reconnecting" if error else "reconnected, waiting")
        else:
            self.show_note("Connection lost, reconnecting." if error else "Reconnected.")

    def refresh_status(self) -> None:
        self._screen.refresh_status()

    def show_result(self, result: RunResult) -> None:
        self._screen.set_status(None)
        if result.error and result.turn_id is None:  # otherwise the log already showed it
            self._screen.print_line(f"[red]{quote(result.error)}[/]")
        self._show_pending(result.pending)
        attempts = result.attempts - result.handovers
        lost = f" · {attempts} attempts" if attempts > 1 else ""
        tokens, seconds = value_formatting.format_tokens(result.usage), value_formatting.format_seconds(result.seconds)
        spent = f"{tokens} · {seconds}{lost}"
        self._screen.print_gap()
        self._screen.print_line(f"{_STATUS_LABELS.get(result.status, result.status)} [dim]· {spent}[/]")
        self._screen.print_line(f"[dim]{result.session_id}[/]")

    def _show_pending(self, event_ids: Sequence[str]) -> None:
        """Says how to decide the pending calls. Calls that were never shown belong to custom tools."""
        for event_id in event_ids:
            if event_id in self._questions:
                self._screen.print_line("[yellow]The turn waits for your answer. Answer with:[/]")
                self._screen.print_line(f"  footplate answer {event_id}", fitted=True)
        event_ids = [event_id for event_id in event_ids if event_id not in self._questions]
        approvals = [event_id for event_id in event_ids if event_id in self._calls]
        if approvals:
            count, ids = len(approvals), " ".join(approvals)
            self._screen.print_line(f"[yellow]The turn waits for {count} approval{'s'[: count > 1]}. Decide with:[/]")
            for command in ("approve", "deny"):
                self._screen.print_line(f"  footplate {command} {ids}", fitted=True)
        if count := len(event_ids) - len(approvals):
            self._screen.print_line(
                f"[yellow]The turn waits for {count} custom tool result{'s'[: count > 1]} (user.custom_tool_result).[/]"
            )

    def message_starts(self, event: Event) -> None:
        started = event.event or {}
        if started.get("type") != "agent.message":
            return
        if self._open_message_id is not None:
            self._screen.print_line("[dim]… the worker was lost; another worker starts the response again:[/]")
        self._open_message_id, self._written = str(started.get("id")), 0

    def message_grows(self, event: Event) -> None:
        if self._open_message_id == event.event_id:
            self._screen.write_text(event.text)
            self._written += len(event.text)

    def message(self, event: Event) -> None:
        if self._open_message_id != event.id:
            self._screen.end_text()
            self._written = 0
        self._screen.write_text(event.text[self._written :])
        self._screen.end_text()
        self._open_message_id, self._written = None, 0

    def thinking(self, event: Event) -> None:
        # Thinking arrives when the response is complete; printed now, it would interrupt the streamed text.
        if event.thinking and self._open_message_id is None:
            self._screen.print_line(
                f"  [dim italic]{escape_shown(self._screen.fit(event.thinking, 3))}[/]", fitted=True
            )

    def user_message(self, event: Event) -> None:
        is_queued = event.processed_at is None
        if self._show_input and (not is_queued or step_id_of(str(event.id)) in self.queued):
            self._screen.print_gap()
            self._screen.print_block("> ", event.text)
            if is_queued:
                self._screen.print_line("  [dim]in the queue[/]")

    def interrupt(self, event: Event) -> None:
        if self._show_input and event.processed_at is not None:
            self._screen.print_line("[yellow]> interrupt[/]")

    def tool_use(self, event: Event) -> None:
        self._calls[str(event.id)] = event
        if event.evaluated_permission == "ask":
            self._print_call(event, event.input, "[yellow]needs approval[/]", len("needs approval"))
        else:
            name = _tool_name(event)
            label = call_label(name, event.input)
            self._screen.set_status(f"  {escape_shown(name):<{_NAME_WIDTH}} ", label)

    def decision(self, event: Event) -> None:
        """Prints a decision on a call that needed approval. The line of a denied call replaces that of its result."""
        self.recall_event(event)
        use = self._find_call(event.tool_use_id)
        text = value_formatting.describe_decision(event)
        colour = "green" if event.result == "allow" else "yellow"
        self._print_call(use, event.updated_input or use.input, f"[{colour}]{escape_shown(text)}[/]", len(text))
        if event.session_rule:
            self._print_detail(f"later calls that match: {event.session_rule}")
        if event.result != "allow":
            if event.deny_message:
                self._print_detail(event.deny_message)
            self._calls.pop(str(event.tool_use_id), None)

    def tool_result(self, event: Event) -> None:
        call_id = str(event.tool_use_id or event.mcp_tool_use_id)
        decision = self._decisions.pop(call_id, None)
        is_shown = decision is not None and decision.result != "allow" and call_id not in self._calls
        use, start_times = self._find_call(call_id), [None if decision is None else decision.processed_at]
        if decision is None:
            start_times = [use.processed_at]
        elif use.session_thread_id is None:  # the calls of one thread run one after the other
            start_times.append(self._last_progress)
        self._calls.pop(call_id, None)
        self._last_progress = event.processed_at
        self._screen.set_status(_WAITING_STATUS)
        if not is_shown:
            self._print_result(use, decision, event, max((each for each in start_times if each), default=None))

    def _print_result(self, use: Event, decision: Event | None, result: Event, started: datetime | None) -> None:
        mark = _result_mark(use, decision, result)
        ran = mark in {"ok", "failed"}
        shown_input, details = use.input, ""
        if ran:
            details = f" {value_formatting.format_seconds(_run_seconds(result, started))}"
        if ran and decision is not None and decision.updated_input is not None:
            shown_input, details = decision.updated_input, f"{details}, {value_formatting.describe_editor(decision)}"
        colour = {"ok": "green", "failed": "red"}.get(mark, "yellow")
        ending = f"[{colour}]{escape_shown(mark)}[/][dim]{escape_shown(details)}[/]"
        self._print_call(use, shown_input, ending, len(mark) + len(details))
        name = _tool_name(use) if ran else ""
        if result.is_error and (reason := value_formatting.failure_reason(result, name)):
            self._print_detail(reason)

    def resumed(self, event: Event) -> None:
        self._last_progress = event.processed_at

    def _find_call(self, call_id: str | None) -> Event:
        return self._calls.get(str(call_id)) or Event(type="agent.tool_use", name="tool")

    def _print_call(self, use: Event, call_input: Mapping[str, Any] | None, ending: str, ending_width: int) -> None:
        """Prints the line of a call, with its main argument shortened to the space before `ending`."""
        name = _tool_name(use)
        agent = f"{show_line(use.agent_name)}: " if use.agent_name else ""
        taken = len(agent) + max(_NAME_WIDTH, len(name)) + ending_width + 5
        label = self._screen.fit(call_label(name, call_input), taken)
        gap = f"{escape_shown(label)}  " if label else " "
        self._screen.print_line(
            f"  {escape_shown(agent)}[cyan]{escape_shown(name):<{_NAME_WIDTH}}[/] {gap}{ending}", fitted=True
        )

    def _print_detail(self, text: str) -> None:
        self._screen.print_line(
            f"  {'':<{_NAME_WIDTH}} [dim]{escape_shown(self._screen.fit(text, _NAME_WIDTH + 4))}[/]", fitted=True
        )

    def custom_tool_use(self, event: Event) -> None:
        name = _tool_name(event)
        if event.question:
            self._questions.add(str(event.id))
            self._print_call(event, event.input, "[yellow]needs answer[/]", len("needs answer"))
            return
        self._custom_calls[str(event.id)] = event
        is_new = self._known_until is not None and int(event.position or 0) > self._known_until
        if self._waiting_calls is None or is_new or event.id in self._waiting_calls:
            text = "waits for its sessions" if name == "run_sessions" else "waits for a result"
            self._print_call(event, event.input, f"[yellow]{text}[/]", len(text))

    def custom_tool_result(self, event: Event) -> None:
        """Prints the answer to a question, or the result of another custom tool with its first line."""
        if event.answered_by is None:
            use = self._custom_calls.pop(
                str(event.custom_tool_use_id), Event(type="agent.custom_tool_use", name="tool")
            )
            self._print_result(use, None, event, use.processed_at)
            if not event.is_error and event.text:
                self._print_detail(event.text.strip().partition("\n")[0])
            return
        text = value_formatting.describe_author(event)
        question = Event(type="agent.custom_tool_use", name="ask_user")
        reply = "; ".join(event.answers.values()) if event.answers else event.text
        self._print_call(question, {"questions": [{"question": reply}]}, f"[green]{escape_shown(text)}[/]", len(text))

    def error(self, event: Event) -> None:
        error: Mapping[str, Any] = event.error or {}
        retrying = (error.get("retry_status") or {}).get("type") == "retrying"
        text = quote(str(error.get("message") or error.get("type")))
        self._screen.print_line(f"[yellow]{text} Retrying.[/]" if retrying else f"[red]{text}[/]")

    def model_asked(self, event: Event) -> None:  # noqa: ARG002 - every handler takes the event
        self._screen.set_status(_WAITING_STATUS)

    def idle(self, event: Event) -> None:
        if (event.stop_reason or {}).get("type") != "requires_action":  # the turn ended without these results
            for use in self._custom_calls.values():
                self._print_call(use, use.input, "[yellow]no result[/]", len("no result"))
            self._custom_calls.clear()
        self._screen.end_text()
        self._screen.set_status(None)


_HANDLERS: Final = {
    "event_start": "message_starts",
    "event_delta": "message_grows",
    "agent.message": "message",
    "agent.thinking": "thinking",
    "agent.tool_use": "tool_use",
    "agent.tool_result": "tool_result",
    "agent.mcp_tool_use": "tool_use",
    "agent.mcp_tool_result": "tool_result",
    "agent.custom_tool_use": "custom_tool_use",
    "user.custom_tool_result": "custom_tool_result",
    "user.message": "user_message",
    "user.interrupt": "interrupt",
    "user.tool_confirmation": "decision",
    "session.status_running": "resumed",
    "session.error": "error",
    "session.status_idle": "idle",
    "span.model_request_start": "model_asked",
}


def _tool_name(use: Event) -> str:
    """Returns the tool's name, escaped and shortened so that the call fits on the line."""
    name = use.name or ""
    return show_line(f"{use.mcp_server_name}.{name}" if use.mcp_server_name else name, _MAX_NAME_LENGTH)


def _result_mark(use: Event, decision: Event | None, result: Event) -> str:
    """Returns how a call ended. Only calls that are `ok` or `failed` ran."""
    if not result.is_error:
        return "ok"
    if decision is not None and decision.result != "allow":
        return value_formatting.describe_decision(decision)
    if decision is None and use.evaluated_permission == "ask":
        return "not run"
    if use.evaluated_permission == "deny" and (use.permission or {}).get("reason") != NOT_EVALUATED.reason:
        return "denied"
    return "failed"


def _run_seconds(result: Event, started: datetime | None) -> float:
    """Returns how long a call ran: as measured for a command, or else since it could start."""
    measured = result.command.get("duration_ms") if isinstance(result.command, dict) else None
    if measured is not None:
        return float(measured) / 1000
    ended = result.processed_at
    return max(0.0, (ended - started).total_seconds()) if started and ended else 0.0
