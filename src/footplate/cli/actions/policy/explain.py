"""Implements `footplate policy explain`: evaluates a shell command against rules from files or of the server, and
shows the decision on each part of the command.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import typer
from rich.table import Table

from footplate.cli.connection import run_with_client
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
    _print_explanation(_to_json_model(verdict, len(rules), notes), as_json=as_json)


def explain_on_server(command: str, scope: Mapping[str, str | None], *, as_json: bool, profile: str | None) -> None:
    found = run_with_client(
        lambda client, _: client.policies.explain("bash", {"command": command}, **scope),
        profile=profile,
        as_json=as_json,
    )
    notes = []
    if found.hook is not None:
        notes.append(f"The hook {found.hook} would also run, and can change the decision.")
    if found.depends_on_links:
        notes.append("Symbolic links in the working tree can change the decision.")
    explanation = Explanation(
        outcome=found.outcome,
        rule=found.rule,
        layer=found.layer,
        reason=found.reason,
        parts=[ExplainedPart.model_validate(part.wire()) for part in found.parts],
        rules=sum(len(layer.deny) + len(layer.ask) + len(layer.allow) for layer in found.layers),
        notes=notes,
    )
    _print_explanation(explanation, as_json=as_json)


def _print_explanation(explanation: Explanation, *, as_json: bool) -> None:
    if as_json:
        terminal_io.print_json(explanation.model_dump(mode="json"))
    else:
        _print_verdict(explanation)


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


def _print_verdict(explanation: Explanation) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("", "Part", "Why"):
        table.add_column(heading, overflow="fold")
    for part in explanation.parts:
        text = quote(part.text if part.kind != "unclear" else "(not understood)")
        for inner in part.runs:
            text += f"\n[dim]runs {quote(inner)}[/]"
        table.add_row(colour_outcome(part.outcome), text, quote(part.reason))
    console = terminal_io.out()
    terminal_io.print_table(table)
    by = ""
    if explanation.rule and explanation.layer is not None:
        by = f" by {quote(f'{explanation.rule} ({explanation.layer})')}"
    console.print(f"\n{colour_outcome(explanation.outcome)}{by}: {quote(explanation.reason)}")
    for note in explanation.notes:
        terminal_io.err().print(f"[dim]{quote(note)}[/]")
    if not explanation.rules:
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
