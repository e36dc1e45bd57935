"""Prints the steps of a session's queue: as a table, one in detail, and in one line each while they run."""

from collections.abc import Mapping, Sequence
from typing import Final

from footplate.cli.render import terminal_io, value_formatting
from footplate.cli.render.table_printing import Cell, UntrustedText, print_details, print_rows
from footplate.client import Playback, Step, StepResult
from footplate.client.response_models import SessionEnd

_COLOURS: Final = {"running": "green", "completed": "green", "failed": "red", "cancelled": "yellow", "pending": "dim"}
_PAUSE_REASONS: Final = {
    "step_failed": " after a failed or interrupted step",
    "group": " until other sessions of its group have ended",
}
_ACTIONS: Final = {"external": "needs result", "shell": "needs approval", "prompt": "needs action"}
_ID_CHARACTERS: Final = 8
_NAME_COLUMNS: Final = 16
_LISTED_NAMES: Final = 3
_WIDE_COLUMNS: Final = 120


def print_steps(
    found: Sequence[Step],
    playback: Playback,
    end: SessionEnd | None = None,
    messages: Mapping[str, str] | None = None,
) -> None:
    """`end`: how the session ended, if it has. `messages`: the texts of messages, by the id of their step."""
    messages = messages or {}
    if not found and end is None:
        terminal_io.print_note('The queue is empty. Add a step: footplate steps add --shell "…"')
    elif found:
        console = terminal_io.out()
        wide = console.width >= _WIDE_COLUMNS or not console.is_terminal
        rows: list[list[Cell]] = [
            [
                str(number),
                *([f"[dim]{step.id}[/]"] if wide else []),
                (step.name or "") if wide else step_label(step),
                step.kind,
                describe_state(step),
                format_attempts(step),
                format_duration(step),
                "" if step.result is None or step.result.exit_code is None else str(step.result.exit_code),
                UntrustedText(messages.get(step.id) or step_text(step)),
            ]
            for number, step in enumerate(found, 1)
        ]
        print_rows(["#", *(["ID"] if wide else []), "STEP", "KIND", "STATE", "TRY", "TOOK", "EXIT", "WHAT"], rows)
    if end is not None:
        terminal_io.out().print(f"The session has ended: {end.outcome}.")
    else:
        print_playback(playback, has_steps=any(step.state in {"pending", "running"} for step in found))


def print_playback(playback: Playback, *, has_steps: bool) -> None:
    """`has_steps`: a step runs or is pending."""
    if playback.playing and not has_steps:
        terminal_io.out().print("Nothing is queued.")
        return
    terminal_io.out().print(f"The session is {describe_playback(playback)}.")
    if not playback.playing:
        terminal_io.print_note(f"Continue: footplate play {playback.session_id}")


def print_next(playback: Playback, steps: Sequence[Step]) -> None:
    """Says which steps a paused session runs now. It may already have run them."""
    terminal_io.out().print(f"Runs {', '.join(map(step_label, steps))}, then pauses again.")
    terminal_io.print_note(f"See the results: footplate steps ls {playback.session_id}")


def describe_playback(playback: Playback) -> str:
    if playback.playing:
        return "playing"
    steps = "one more step" if playback.next_steps == 1 else f"{playback.next_steps} more steps"
    reason = _PAUSE_REASONS.get(playback.pause_reason or "", "")
    return f"[yellow]paused[/]{reason}" + (f", but runs {steps} now" if playback.next_steps else "")


def describe_queue(playback: Playback, pending: Sequence[Step], *, more: bool) -> str:
    """Describes the queue in one line: whether it is paused, and the next steps. `more`: there are further ones."""
    if playback.playing and not pending:
        return ""
    names = ", ".join(step_label(step) for step in pending[:_LISTED_NAMES])
    names += ", …" if len(pending) > _LISTED_NAMES else ""
    count = f"{len(pending)}{'+' if more else ''} pending"
    return f"{describe_playback(playback)} · {count}" + (f": {names}" if names else "")


def print_step(step: Step) -> None:
    result = step.result or StepResult(status=step.state)
    exit_code = "" if result.exit_code is None else str(result.exit_code)
    awaited, command = _describe_wait(step)
    print_details(
        {
            "id": step.id,
            "session": step.session_id,
            "name": step.name or "",
            "kind": step.kind,
            "state": describe_state(step),
            "waits_for": awaited,
            "why": UntrustedText(describe_failure(step)),
            step.kind: UntrustedText(step_text(step)),
            "if": UntrustedText(step.condition or ""),
            "on_failure": _describe_policy(step),
            "timeout": "" if step.timeout_seconds is None else f"{step.timeout_seconds:g} s",
            "ends_session": "yes" if step.ends_session else "",
            "retry_of": step.retry_of or "",
            "attempt": format_attempts(step),
            "turn": step.turn_id or "",
            "took": format_duration(step),
            "exit_code": exit_code,
            "stdout": UntrustedText(result.stdout.rstrip("\n")),
            "stderr": UntrustedText(result.stderr.rstrip("\n")),
            "text": UntrustedText(_describe_text(step, result)),
        }
    )
    if command:
        terminal_io.print_exactly(terminal_io.out(), f"\n{command}")


def _describe_text(step: Step, result: StepResult) -> str:
    """Returns the text of a result, unless another field has it."""
    is_shown = step.kind in {"shell", "external"} or result.text == describe_failure(step)
    return "" if is_shown else result.text


def step_label(step: Step) -> str:
    """Returns the name, or the end of the id, which commands accept as well."""
    if step.name is None:
        return step.id[-_ID_CHARACTERS:]
    return step.name if len(step.name) <= _NAME_COLUMNS else f"{step.name[: _NAME_COLUMNS - 1]}…"


def step_text(step: Step) -> str:
    """Returns what the step does, as its author wrote it."""
    if step.sessions is not None:
        labels = [str(one.get("name") or number) for number, one in enumerate(step.sessions, 1)]
        more = ", …" if len(labels) > _LISTED_NAMES else ""
        noun = "session" if len(labels) == 1 else "sessions"
        return f"{len(labels)} {noun}: {', '.join(labels[:_LISTED_NAMES])}{more}"
    if step.kind == "terminal":
        return "a shell for a person"
    if step.kind in {"merge", "push"}:
        return f"{'into' if step.kind == 'merge' else 'as'} {step.into or step.branch or 'the default branch'}"
    content = " ".join(str(block.get("text") or f"[{block.get('type')}]") for block in step.content or ())
    return (step.command or step.instructions or content).strip() or ("(a message)" if step.is_message else "")


def describe_state(step: Step) -> str:
    if step.waiting_for == "sessions":
        return "[green]sessions run[/]"
    if step.waiting_for is not None:
        return f"[yellow]{_ACTIONS[step.kind] if step.waiting_for == 'action' else 'waits to retry'}[/]"
    colour = _COLOURS.get(step.state)
    return f"[{colour}]{step.state}[/]" if colour else step.state


def _describe_wait(step: Step) -> tuple[str, str]:
    """Returns what the step waits for, and the command that continues it or shows more."""
    if step.waiting_for == "retry":
        return "the next attempt", ""
    if step.waiting_for is None:
        return "", ""
    if step.waiting_for == "sessions":
        return "its sessions", f"footplate ls --children-of {step.session_id}"
    if step.kind == "external":
        return "its result", format_result_command(step)
    return "a decision", "footplate approvals"


def format_result_command(step: Step) -> str:
    """Returns the command that reports the result of an external step."""
    return f"footplate steps result {step.name or step.id} --session {step.session_id} --status completed"


def describe_failure(step: Step) -> str:
    """Returns why a step failed or was skipped, or nothing."""
    if step.state == "skipped":
        return "its condition is false"
    if step.result is not None and step.state != "completed":
        return step.result.error_message or ""
    return "its condition could not be evaluated" if step.state == "failed" and step.turn_id is None else ""


def _describe_policy(step: Step) -> str:
    return f"retry, at most {step.max_attempts} attempts" if step.on_failure == "retry" else step.on_failure


def format_attempts(step: Step) -> str:
    if not step.attempt:
        return ""
    return f"{step.attempt}/{step.max_attempts}" if step.on_failure == "retry" else str(step.attempt)


def format_duration(step: Step) -> str:
    """Returns how long an ended step ran: its command, or else its turn."""
    milliseconds = None if step.result is None else step.result.duration_ms
    return "" if milliseconds is None else value_formatting.format_seconds(milliseconds / 1000)
