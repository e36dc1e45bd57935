"""Prints the events of a turn while it runs: as text, as JSON lines, or only the final result."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Protocol

from footplate.cli.json_output_models import RunResult
from footplate.cli.render import value_formatting
from footplate.cli.render.terminal_io import escape_shown, print_json, print_json_line, quote
from footplate.cli.render.terminal_screen import TerminalScreen
from footplate.client import ClientError
from footplate.client.response_models import Event
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

    def show_note(self, text: str) -> None:
        """Shows a message that is not in the log."""

    def connection_changed(self, error: ClientError | None) -> None:
        """Reports a lost connection that is being retried, or with None that it is restored."""

    def refresh_status(self) -> None: ...

    def show_result(self, result: RunResult) -> None: ...


class ResultView:
    """`--output json`: prints one object at the end. Notes are dropped, because the result has the same information."""

    def show_event(self, event: Event) -> None: ...

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
        self._screen = TerminalScreen(lines_on_stdout=lines_on_stdout)
        self._screen.set_status("waiting for the turn to start")
        self._show_input = show_input
        self._open_message_id: str | None = None
        """The id of the message that is being streamed. `_written` counts its characters on the screen."""
        self._written = 0
        self._calls: dict[str, Event] = {}

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
        if result.pending:
            count = len(result.pending)
            self._screen.print_line(
                f"[yellow]The turn waits for {count} response{'s'[: count > 1]}: approvals (footplate approvals) or "
                "custom tool results (user.custom_tool_result).[/]"
            )
        attempts = f" · {result.attempts} attempts" if result.attempts > 1 else ""
        tokens, seconds = value_formatting.format_tokens(result.usage), value_formatting.format_seconds(result.seconds)
        spent = f"{tokens} · {seconds}{attempts}"
        self._screen.print_gap()
        self._screen.print_line(f"{_STATUS_LABELS.get(result.status, result.status)} [dim]· {spent}[/]")
        self._screen.print_line(f"[dim]{result.session_id}[/]")

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
        if self._show_input and event.processed_at is not None:
            self._screen.print_gap()
            self._screen.print_block("> ", event.text)

    def interrupt(self, event: Event) -> None:
        if self._show_input and event.processed_at is not None:
            self._screen.print_line("[yellow]> interrupt[/]")

    def tool_use(self, event: Event) -> None:
        self._calls[str(event.id)] = event
        name = _tool_name(event)
        if event.evaluated_permission == "ask":
            agent = f"{show_line(event.agent_name)}: " if event.agent_name else ""
            what = escape_shown(
                self._screen.fit(value_formatting.call_label(name, event.input), len(agent) + len(name) + 30)
            )
            self._screen.print_line(
                f"  {escape_shown(agent)}[cyan]{escape_shown(name)}[/] {what}  [yellow]needs approval[/]",
                fitted=True,
            )
            return
        self._screen.set_status(
            f"  {escape_shown(name):<{_NAME_WIDTH}} ", value_formatting.call_label(name, event.input)
        )

    def tool_result(self, event: Event) -> None:
        use = self._calls.pop(str(event.tool_use_id or event.mcp_tool_use_id), None) or Event(
            type="agent.tool_use", name="tool"
        )
        name = _tool_name(use)
        what = self._screen.fit(value_formatting.call_label(name, use.input), max(_NAME_WIDTH, len(name)) + 18)
        mark = "[red]failed[/]" if event.is_error else "[green]ok[/]"
        took = value_formatting.format_seconds(_seconds_between(use.processed_at, event.processed_at))
        self._screen.print_line(
            f"  [cyan]{escape_shown(name):<{_NAME_WIDTH}}[/] {escape_shown(what)}  {mark} [dim]{took}[/]", fitted=True
        )
        if event.is_error and (reason := value_formatting.failure_reason(event, name)):
            self._screen.print_line(
                f"  {'':<{_NAME_WIDTH}} [dim]{escape_shown(self._screen.fit(reason, _NAME_WIDTH + 4))}[/]", fitted=True
            )
        self._screen.set_status(_WAITING_STATUS)

    def custom_tool_use(self, event: Event) -> None:
        name = _tool_name(event)
        what = self._screen.fit(value_formatting.call_label(name, event.input), len(name) + 26)
        self._screen.print_line(
            f"  [cyan]{escape_shown(name)}[/] {escape_shown(what)}  [yellow]waits for a result[/]", fitted=True
        )

    def error(self, event: Event) -> None:
        error: Mapping[str, Any] = event.error or {}
        retrying = (error.get("retry_status") or {}).get("type") == "retrying"
        text = quote(str(error.get("message") or error.get("type")))
        self._screen.print_line(f"[yellow]{text} Retrying.[/]" if retrying else f"[red]{text}[/]")

    def model_asked(self, event: Event) -> None:  # noqa: ARG002 - every handler takes the event
        self._screen.set_status(_WAITING_STATUS)

    def idle(self, event: Event) -> None:  # noqa: ARG002 - as above
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
    "user.message": "user_message",
    "user.interrupt": "interrupt",
    "session.error": "error",
    "session.status_idle": "idle",
    "span.model_request_start": "model_asked",
}


def _tool_name(use: Event) -> str:
    """Returns the tool's name, escaped and shortened so that the call fits on the line."""
    name = use.name or ""
    return show_line(f"{use.mcp_server_name}.{name}" if use.mcp_server_name else name, _MAX_NAME_LENGTH)


def _seconds_between(start: datetime | None, end: datetime | None) -> float:
    return max(0.0, (end - start).total_seconds()) if start and end else 0.0
