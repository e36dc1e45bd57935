"""Implements `footplate doctor`: prints the findings of its checks, with advice on how to fix each problem."""

from collections.abc import Sequence
from dataclasses import asdict

import typer
from rich.table import Table

from footplate.cli.actions import doctor_checks
from footplate.cli.profile import dev_server
from footplate.cli.render import terminal_io
from footplate.cli.render.terminal_io import quote

_STATE_MARKS = {"ok": "[green]ok[/]", "warning": "[yellow]warning[/]", "failed": "[red]failed[/]"}


def run_doctor(*, as_json: bool) -> None:
    findings = terminal_io.run_async(doctor_checks.run_checks(dev_server.load_settings()))
    if as_json:
        terminal_io.print_json([asdict(finding) for finding in findings])
    else:
        _print_findings(findings)
    if any(finding.state == "failed" for finding in findings):
        raise typer.Exit(terminal_io.Exit.FAILED)


def _print_findings(findings: Sequence[doctor_checks.Finding]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("", "Check", "Finding"):
        table.add_column(heading, overflow="fold")
    for finding in findings:
        text = quote(finding.detail)
        if finding.mend:
            text += f"\n[dim]{quote(finding.mend)}[/]"
        table.add_row(_STATE_MARKS[finding.state], finding.name, text)
    terminal_io.print_table(table)
