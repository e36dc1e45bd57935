"""Defines `footplate objects`. Each command imports its implementation only when it runs, so that every command starts
quickly.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from footplate.cli.commands.help_formatter import GroupedHelp
from footplate.cli.commands.server_operations import configure_logging
from footplate.cli.render import terminal_io

if TYPE_CHECKING:
    from footplate.store.retention.object_backup import CopyReport

objects = typer.Typer(
    help="Copy the object store into a directory and back, as a backup.", no_args_is_help=True, cls=GroupedHelp
)

_Directory = Annotated[Path, typer.Argument(metavar="DIRECTORY", help="Directory with the copy of the objects.")]


@objects.command("backup")
def backup(directory: _Directory) -> None:
    """Copy all objects into a directory, those that it already has excepted. Safe to run during turns.

    It deletes nothing there. Run it with the settings of a worker.
    """
    from footplate.cli.profile import dev_server
    from footplate.wiring.object_backup import backup_objects

    configure_logging()
    _print(terminal_io.run_async(backup_objects(dev_server.load_settings(), directory)), f"{directory} has")


@objects.command("restore")
def restore(directory: _Directory) -> None:
    """Copy all objects of a directory into the object store, those that it already has excepted.

    It deletes nothing there. Restore the database first, and start the API and the workers afterwards.
    """
    from footplate.cli.profile import dev_server
    from footplate.wiring.object_backup import restore_objects

    configure_logging()
    _print(terminal_io.run_async(restore_objects(dev_server.load_settings(), directory)), "The object store has")


def _print(report: "CopyReport", subject: str) -> None:
    from footplate.cli.actions.gc import format_size

    total = report.copied + report.present
    terminal_io.print_result(
        f"{subject} all {total:,} objects: {report.copied:,} copied ({format_size(report.copied_bytes)}), "
        f"{report.present:,} already there."
    )
