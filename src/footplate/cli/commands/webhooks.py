"""Defines `footplate webhooks`: manages the URLs that receive the events of sessions, and shows what was sent."""

from enum import StrEnum
from typing import Annotated

import typer

from footplate.cli import options
from footplate.cli.commands.help_formatter import GroupedHelp

webhooks = typer.Typer(help="Send the events of sessions to URLs.", no_args_is_help=True, cls=GroupedHelp)


class Format(StrEnum):
    STANDARD = "standard"
    SLACK = "slack"


class Status(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


Endpoint = Annotated[str, typer.Argument(metavar="ENDPOINT", help="ID of an endpoint, from `footplate webhooks ls`.")]
EventTypes = Annotated[
    list[str] | None,
    typer.Option("--event", metavar="TYPE", help="Only this event type. May be repeated.  [default: all types]"),
]
FormatOption = Annotated[
    Format | None, typer.Option("--format", help="standard (events for programs) or slack (messages for people).")
]
Ordered = Annotated[
    bool | None,
    typer.Option("--ordered/--unordered", help="Send the events of a session one after the other, in their order."),
]


@webhooks.callback()
def group() -> None:
    """Send the events of sessions to URLs."""


@webhooks.command("ls")
def list_endpoints(
    session: Annotated[str | None, typer.Option(metavar="SESSION", help="Only endpoints of this session (ID).")] = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """List the endpoints. Those for all sessions are listed for administrators only."""
    from footplate.cli.actions import webhooks as actions

    actions.list_endpoints(session=session, as_json=as_json, profile=profile)


@webhooks.command()
def create(
    url: Annotated[str, typer.Argument(metavar="URL", help="Address that receives the events, with https.")],
    session: Annotated[
        str | None,
        typer.Option(
            metavar="SESSION", help="Only events of this session (ID).  [default: all sessions, which needs `admin`]"
        ),
    ] = None,
    event: EventTypes = None,
    description: Annotated[str | None, typer.Option(metavar="TEXT", help="Purpose of the endpoint.")] = None,
    webhook_format: FormatOption = None,
    ordered: Ordered = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Create an endpoint and print its ID and its secret. The secret is never shown again."""
    from footplate.cli.actions import webhooks as actions

    actions.create_endpoint(
        url,
        session=session,
        types=event or [],
        description=description,
        webhook_format=(webhook_format or Format.STANDARD).value,
        ordered=bool(ordered),
        as_json=as_json,
        profile=profile,
    )


@webhooks.command()
def show(endpoint: Endpoint, as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Show an endpoint."""
    from footplate.cli.actions import webhooks as actions

    actions.show_endpoint(endpoint, as_json=as_json, profile=profile)


@webhooks.command()
def update(
    endpoint: Endpoint,
    url: Annotated[str | None, typer.Option(metavar="URL", help="New address.")] = None,
    event: EventTypes = None,
    all_events: Annotated[bool, typer.Option("--all-events", help="Send all event types.")] = False,
    description: Annotated[str | None, typer.Option(metavar="TEXT", help="New purpose.")] = None,
    webhook_format: FormatOption = None,
    ordered: Ordered = None,
    enable: Annotated[
        bool | None, typer.Option("--enable/--disable", help="Send events again, or send nothing.")
    ] = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Change an endpoint, or disable or enable it. Enabled again, it receives what it missed."""
    from footplate.cli.actions import webhooks as actions

    if event and all_events:
        raise typer.BadParameter("--event cannot be combined with --all-events.", param_hint="--event")
    fields: dict[str, object] = {
        "url": url,
        "event_types": [] if all_events else event,
        "description": description,
        "format": None if webhook_format is None else webhook_format.value,
        "ordered": ordered,
        "disabled": None if enable is None else not enable,
    }
    actions.update_endpoint(endpoint, fields, as_json=as_json, profile=profile)


@webhooks.command()
def rm(endpoint: Endpoint, as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Delete an endpoint. Its pending deliveries are not sent any more."""
    from footplate.cli.actions import webhooks as actions

    actions.delete_endpoint(endpoint, as_json=as_json, profile=profile)


@webhooks.command()
def rotate(
    endpoint: Endpoint,
    overlap: Annotated[
        int, typer.Option(metavar="HOURS", min=0, max=168, help="Hours for which the old secret signs too.")
    ] = 24,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Replace the secret of an endpoint and print the new one. It is never shown again."""
    from footplate.cli.actions import webhooks as actions

    actions.rotate_secret(endpoint, overlap_seconds=overlap * 3600, as_json=as_json, profile=profile)


@webhooks.command("test")
def send_test(endpoint: Endpoint, as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Send a test event and wait up to 20 seconds for the result of its first attempt."""
    from footplate.cli.actions import webhooks as actions

    actions.test_endpoint(endpoint, as_json=as_json, profile=profile)


@webhooks.command()
def deliveries(
    endpoint: Endpoint,
    status: Annotated[Status | None, typer.Option(help="Only deliveries with this status.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, help="Maximum number of deliveries.")] = 20,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """List the deliveries of the last days to an endpoint, newest first."""
    from footplate.cli.actions import webhooks as actions

    chosen = None if status is None else status.value
    actions.list_deliveries(endpoint, status=chosen, limit=limit, as_json=as_json, profile=profile)


@webhooks.command()
def replay(
    endpoint: Endpoint,
    delivery: Annotated[
        str, typer.Argument(metavar="DELIVERY", help="ID of a delivery, from `footplate webhooks deliveries`.")
    ],
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Send a delivery again, with the same ID."""
    from footplate.cli.actions import webhooks as actions

    actions.replay_delivery(endpoint, delivery, as_json=as_json, profile=profile)
