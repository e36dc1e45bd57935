"""Prints the progress of a pipeline: one line when a step starts, and one when it ends."""

from collections.abc import Iterator, Sequence
from typing import Final

from footplate.cli.json_output_models import PipelineResult, RunResult
from footplate.cli.render import step_tables, terminal_io, value_formatting
from footplate.cli.render.terminal_io import escape_shown
from footplate.cli.render.terminal_screen import TerminalScreen
from footplate.client import ClientError, Step
from footplate.client.response_models import Event

_STATE_COLUMNS: Final = 9
_OUTPUT_LINES: Final = 20


class StepProgressView:
    """Prints lines to stdout. On a terminal, the last line shows the running step and its duration."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._screen = TerminalScreen(lines_on_stdout=True)
        self._total = len(steps)
        self._label_columns = max(len(step_tables.step_label(step)) for step in steps)
        self._running: tuple[str, int] | None = None
        """The step in the status line, and its attempt."""

    def step_started(self, number: int, step: Step) -> None:
        attempt = f"attempt {step_tables.format_attempts(step)} · " if step.attempt > 1 else ""
        text = (
            "" if step.kind == "external" else step_tables.step_text(step)
        )  # shown when it waits, with references replaced
        self._print_step(number, step, "started", f"{attempt}{text}")

    def set_running(self, number: int, step: Step | None) -> None:
        """Shows the running step in the status line, or none."""
        running = None if step is None else (step.id, step.attempt)
        if running != self._running:
            self._running = running
            self._screen.set_status(None if step is None else f"{self._count(number)} {step_tables.step_label(step)} ")

    def step_waits(self, number: int, step: Step, what: str, command: str = "") -> None:
        """`command`: what the user can run. It is on its own line and never shortened."""
        self._print_step(number, step, "waits", what, "yellow")
        if command:
            indent = " " * (len(self._count(number)) + 1)
            self._screen.print_line(f"{indent}[dim]{terminal_io.quote(command)}[/]", fitted=True)

    def step_ended(self, number: int, step: Step) -> None:
        colour = {"completed": "green", "failed": "red"}.get(step.state, "yellow")
        result = step.result
        text = "" if result is None else result.text.removesuffix(f"[exit code {result.exit_code}]")
        shows_output = bool(text.strip()) and (step.state == "failed" or number == self._total)
        exit_code = None if result is None else result.exit_code
        details = [
            step_tables.format_duration(step),
            step_tables.describe_failure(step).partition("\n")[0] if exit_code is None else f"exit code {exit_code}",
            text.partition("\n")[0] if _shows_text(step) and not shows_output else "",
        ]
        self._print_step(number, step, step.state, " · ".join(filter(None, details)), colour)
        if shows_output:
            self._print_output(number, text)

    def show_instructions(self, number: int, step: Step, text: str) -> None:  # noqa: ARG002 - a line has a step
        """Shows what a person or program has to do."""
        self._print_output(number, text)

    def _print_output(self, number: int, text: str) -> None:
        """Prints the last lines of a text below the line of its step."""
        lines = text.strip().splitlines()
        indent = " " * (len(self._count(number)) + 1)
        if len(lines) > _OUTPUT_LINES:
            self._screen.print_line(f"{indent}[dim]… {len(lines) - _OUTPUT_LINES} more lines[/]", fitted=True)
        for line in lines[-_OUTPUT_LINES:]:
            shown = escape_shown(self._screen.fit(line, len(indent)))
            self._screen.print_line(f"{indent}[dim]{shown}[/]", fitted=True)

    def show_pause(self, session_id: str, steps: Sequence[Step]) -> None:
        """Says how to continue a paused session, and how to repeat the last step that did not complete."""
        following = next((step for step in steps if step.state == "pending"), None)
        ended = [step for step in steps if step.ended_at is not None and step.state in {"failed", "cancelled"}]
        if not ended or following is None:
            self.show_note(f"The session is paused. Continue: footplate play {session_id}")
            return
        label = step_tables.step_label(ended[-1])
        self.show_note(f"The session is paused. Continue with {step_tables.step_label(following)}, without {label}:")
        self.show_note(f"  footplate play {session_id}")
        self.show_note(f"Or repeat {label} first:")
        self.show_note(f"  footplate steps retry {ended[-1].name or ended[-1].id} --play --session {session_id}")

    def show_pipeline_result(self, result: PipelineResult) -> None:
        self._screen.set_status(None)
        ended = [step for step in result.steps if step.state not in {"pending", "running"}]
        colour = {"completed": "green", "failed": "red"}.get(result.status, "yellow")
        status = result.status.replace("_", " ")
        totals = [f"{len(ended)} of {self._total} steps ended", *_describe_totals(result)]
        self._screen.print_line(f"[{colour}]{status}[/] [dim]· {' · '.join(totals)}[/]")
        self._screen.print_line(f"[dim]{result.session_id}[/]")

    def show_note(self, text: str) -> None:
        self._screen.set_status(None)
        command = text.lstrip()
        indent = " " * (len(text) - len(command))
        terminal_io.err().print(f"{indent}[dim]{terminal_io.quote(command)}[/]", soft_wrap=bool(indent))

    def connection_changed(self, error: ClientError | None) -> None:
        self._running = None
        if self._screen.is_live:
            self._screen.set_status("connection lost, reconnecting" if error else "reconnected, waiting")
        else:
            self.show_note("Connection lost, reconnecting." if error else "Reconnected.")

    def refresh_status(self) -> None:
        self._screen.refresh_status()

    def show_event(self, event: Event) -> None: ...

    def recall_event(self, event: Event) -> None: ...

    def show_result(self, result: RunResult) -> None: ...

    def _print_step(self, number: int, step: Step, state: str, text: str, colour: str = "dim") -> None:
        head = f"{self._count(number)} {step_tables.step_label(step):<{self._label_columns}} "
        shown = escape_shown(self._screen.fit(text, len(head) + _STATE_COLUMNS + 2))
        self._screen.print_line(f"{head}[{colour}]{state:<{_STATE_COLUMNS}}[/] [dim]{shown}[/]", fitted=True)

    def _count(self, number: int) -> str:
        return f"{number:>{len(str(self._total))}}/{self._total}"


def _describe_totals(result: PipelineResult) -> Iterator[str]:
    """Yields how long the steps took, and what the session and those below it have used."""
    if result.seconds is not None:
        yield value_formatting.format_seconds(result.seconds)
    if result.usage is not None and result.usage.requests:
        yield value_formatting.format_tokens(result.usage)
    if (result.sessions or 1) > 1:
        yield f"{result.sessions} sessions"


def _shows_text(step: Step) -> bool:
    """Whether the text of the result says more than the error of the step."""
    return step.kind == "prompt" or (
        step.kind in {"parallel", "merge", "push"} and not step_tables.describe_failure(step)
    )


class QuietProgressView(StepProgressView):
    """`--json`: prints only the result."""

    def step_started(self, number: int, step: Step) -> None: ...

    def set_running(self, number: int, step: Step | None) -> None: ...

    def step_waits(self, number: int, step: Step, what: str, command: str = "") -> None: ...

    def step_ended(self, number: int, step: Step) -> None: ...

    def show_instructions(self, number: int, step: Step, text: str) -> None: ...

    def show_pause(self, session_id: str, steps: Sequence[Step]) -> None: ...

    def show_pipeline_result(self, result: PipelineResult) -> None:
        steps = [step.wire() for step in result.steps]
        terminal_io.print_json({**result.model_dump(mode="json", exclude={"steps"}), "steps": steps})

    def show_note(self, text: str) -> None: ...

    def connection_changed(self, error: ClientError | None) -> None: ...

    def refresh_status(self) -> None: ...
