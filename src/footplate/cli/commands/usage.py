"""Defines `footplate usage`."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

import typer

from footplate.cli import options


class UsageGrouping(StrEnum):
    SESSION = "session"
    DAY = "day"
    HOUR = "hour"
    AGENT = "agent"
    MODEL = "model"
    HARNESS = "harness"
    MEMBER = "member"
    PROJECT = "project"
    PARAMETERS = "parameters"
    STATUS = "status"
    TOOL = "tool"


Values = list[str] | None
_FORMATS = ["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"]


def usage(
    by: Annotated[
        list[UsageGrouping] | None,
        typer.Option(
            "--by",
            "-b",
            metavar="GROUP",
            help=f"Print a line for each value of: {', '.join(UsageGrouping)}. Can be repeated.",
        ),
    ] = None,
    since: Annotated[
        datetime | None,
        typer.Option(formats=_FORMATS, metavar="TIME", help="First day or time, in UTC.  [default: 30 days ago]"),
    ] = None,
    until: Annotated[
        datetime | None,
        typer.Option(formats=_FORMATS, metavar="TIME", help="End, in UTC, not included.  [default: end of today]"),
    ] = None,
    session: Annotated[
        Values, typer.Option("--session", "-s", metavar="ID", help="Only this session. `last` is the last used one.")
    ] = None,
    agent: Annotated[Values, typer.Option(metavar="ID|NAME", help="Only this agent.")] = None,
    model: Annotated[Values, typer.Option(metavar="NAME", help="Only this model.")] = None,
    harness: Annotated[Values, typer.Option(metavar="NAME", help="Only this harness.")] = None,
    member: Annotated[Values, typer.Option(metavar="ID|NAME", help="Only turns that this member started.")] = None,
    project: Annotated[
        Values, typer.Option(metavar="ID|NAME", help="Only sessions whose first project is this.")
    ] = None,
    status: Annotated[Values, typer.Option(metavar="STATUS", help="Only turns with this status.")] = None,
    tool: Annotated[Values, typer.Option(metavar="NAME", help="Only calls of this tool. Implies --by tool.")] = None,
    parameter: Annotated[
        Values, typer.Option(metavar="NAME=VALUE", help="Only turns with this value of a parameter.")
    ] = None,
    min_iterations: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Only lines with at least N requests to models.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", metavar="N", min=1, max=1000, help="Maximum number of lines.")
    ] = 1000,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Show turns, success rate, duration, model requests, tokens and cost, and the calls of tools.

    A filter that is given several times matches each of its values.
    """
    from footplate.cli.actions import usage as actions

    groups = [*(by or [])]
    if tool and UsageGrouping.TOOL not in groups:
        groups.append(UsageGrouping.TOOL)
    if {UsageGrouping.TOOL, UsageGrouping.HOUR} <= set(groups):
        raise typer.BadParameter("tool and hour cannot be combined. Use day instead of hour.", param_hint="--by")
    filters = {
        "session": session,
        "agent": agent,
        "model": model,
        "harness": harness,
        "member": member,
        "project": project,
        "status": status,
        "tool": tool,
        "parameter": parameter,
    }
    actions.show_usage(
        [group.value for group in groups],
        {name: values for name, values in filters.items() if values},
        since=since,
        until=until,
        limit=limit,
        min_iterations=min_iterations,
        as_json=as_json,
        profile=profile,
    )
