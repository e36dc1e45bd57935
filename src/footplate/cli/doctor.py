"""Implements `footplate doctor`: reports what works, what is missing or unreachable, and how to fix it."""

from collections.abc import Sequence
from dataclasses import asdict

import typer
from rich.table import Table

from footplate.cli import checks, local, output
from footplate.cli.output import quote

_MARKS = {"ok": "[green]ok[/]", "warning": "[yellow]warning[/]", "failed": "[red]failed[/]"}


def report(*, as_json: bool) -> None:
    findings = output.run(checks.all_findings(local.settings()))
    if as_json:
        output.print_json([asdict(finding) for finding in findings])
    else:
        _print(findings)
    if any(finding.state == "failed" for finding in findings):
        raise typer.Exit(output.Exit.FAILED)


def _print(findings: Sequence[checks.Finding]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("", "Check", "Finding"):
        table.add_column(heading, overflow="fold")
    for finding in findings:
        text = quote(finding.detail)
        if finding.mend:
            text += f"\n[dim]{quote(finding.mend)}[/]"
        table.add_row(_MARKS[finding.state], finding.name, text)
    output.out().print(table)
