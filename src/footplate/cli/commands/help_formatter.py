"""Formats the help text of command groups: plain text at any terminal width, with commands in sections."""

from typing import Any, Final

from typer.core import TyperArgument, TyperGroup

SESSIONS, RESOURCES, SERVERS, CLIENT, OTHERS = GROUPS = (
    "Sessions",
    "Resources and audit trail",
    "Servers",
    "Policy and configuration",
    "Commands",
)
_MAX_DESCRIPTION: Final = 200
"""Length limit of a command's description, in characters. Large enough for a whole sentence."""


class GroupedHelp(TyperGroup):
    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Returns a command whose help has no Python types behind the names of arguments, which typer would add."""
        command = super().get_command(ctx, cmd_name)
        for parameter in command.params if command else ():
            if isinstance(parameter, TyperArgument) and parameter.metavar:
                vars(parameter)["display_type_rich"] = _no_type
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                group = str(getattr(command, "rich_help_panel", None) or OTHERS)
                groups.setdefault(group, []).append((name, command.get_short_help_str(limit=_MAX_DESCRIPTION)))
        for group in sorted(groups, key=GROUPS.index):
            with formatter.section(group):
                formatter.write_dl(groups[group])


def _no_type(ctx: Any) -> None:  # noqa: ARG001 - typer passes it
    return None
