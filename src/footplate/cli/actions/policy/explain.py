"""Implements `footplate policy explain`: evaluates a shell command against rules from files, and shows the decision on
each part of the command.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import typer
from rich.table import Table

from footplate.cli.json_output_models import ErrorAnswer, ErrorDetail, ExplainedPart, Explanation
from footplate.cli.render import terminal_io
from footplate.cli.render.terminal_io import quote
from footplate.domain.errors import FootplateError, InvalidRequest
from footplate.domain.policy.permissions import Layer
from footplate.gate.evaluation.shell_command_decision import CommandExplanation, explain_command
from footplate.gate.rules.claude_settings import import_settings
from footplate.gate.rules.layered_policy import LayeredRule, Policy
from footplate.gate.rules.local_symlink_resolver import LocalLinkResolver
from footplate.gate.rules.path_context import PathContext

_DEFAULT_FILES: Final = (".claude/settings.json", ".claude/settings.local.json")
OUTCOME_COLOURS: Final = {"deny": "red", "ask": "yellow", "allow": "green"}


def explain(command: str, files: Sequence[Path] | None, directory: Path, *, as_json: bool) -> None:
    try:
        rules, notes = _load_rules(files, directory)
    except FootplateError as error:
        report_rule_error(error, as_json=as_json)
        raise typer.Exit(terminal_io.Exit.FAILED) from None
    path_context = PathContext(root=str(directory.resolve()), home=str(Path.home()), links=LocalLinkResolver())
    verdict = explain_command(Policy(rules), command, path_context)
    if as_json:
        terminal_io.print_json(_to_json_model(verdict, len(rules), notes).model_dump(mode="json"))
    else:
        _print_verdict(verdict, len(rules), notes)


def _load_rules(files: Sequence[Path] | None, directory: Path) -> tuple[list[LayeredRule], list[str]]:
    found = list(files) if files is not None else find_rule_files(directory)
    rules: list[LayeredRule] = []
    notes: list[str] = []
    for file in found:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise InvalidRequest(
                f"{file} cannot be read: {error}.", help_text="Choose another file with --rules."
            ) from None
        imported = import_settings(text, Layer.PROJECT)
        rules += imported.rules
        notes += imported.notes
    return rules, notes


def _to_json_model(verdict: CommandExplanation, rules: int, notes: Sequence[str]) -> Explanation:
    decision = verdict.decision
    return Explanation(
        outcome=decision.outcome.value,
        rule=decision.rule,
        layer=decision.layer.label if decision.layer is not None else None,
        reason=decision.reason,
        parts=[
            ExplainedPart(
                kind=part.kind,
                text=part.text,
                outcome=part.decision.outcome.value,
                rule=part.decision.rule,
                layer=part.decision.layer.label if part.decision.layer is not None else None,
                reason=part.decision.reason,
                via=list(part.wrappers),
                runs=list(part.nested_commands),
            )
            for part in verdict.parts
        ],
        rules=rules,
        notes=list(notes),
    )


def _print_verdict(verdict: CommandExplanation, rules: int, notes: Sequence[str]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("", "Part", "Why"):
        table.add_column(heading, overflow="fold")
    for part in verdict.parts:
        text = quote(part.text if part.kind != "unclear" else "(not understood)")
        for inner in part.nested_commands:
            text += f"\n[dim]runs {quote(inner)}[/]"
        table.add_row(colour_outcome(part.decision.outcome.value), text, quote(part.decision.reason))
    console = terminal_io.out()
    terminal_io.print_table(table)
    decision = verdict.decision
    by = ""
    if decision.rule and decision.layer is not None:
        by = f" by {quote(f'{decision.rule} ({decision.layer.label})')}"
    console.print(f"\n{colour_outcome(decision.outcome.value)}{by}: {quote(decision.reason)}")
    for note in notes:
        terminal_io.err().print(f"[dim]{quote(note)}[/]")
    if not rules:
        terminal_io.err().print("[dim]No rules were found. Pass a file with --rules.[/]")


def find_rule_files(directory: Path) -> list[Path]:
    """Returns the rule files that exist in a directory."""
    return [path for name in _DEFAULT_FILES if (path := directory / name).exists()]


def colour_outcome(outcome: str) -> str:
    return f"[{OUTCOME_COLOURS[outcome]}]{outcome}[/]"


def report_rule_error(error: FootplateError, *, as_json: bool) -> None:
    if not as_json:
        terminal_io.print_footplate_error(error)
        return
    detail = ErrorDetail(code=error.code, title="Unreadable rules", message=error.message, help=error.help_text)
    terminal_io.print_json_line(ErrorAnswer(error=detail, exit_code=terminal_io.Exit.FAILED).model_dump())
