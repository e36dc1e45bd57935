"""Implements `footplate notifications`."""

import re
from pathlib import Path
from typing import Any, Final

import typer

from footplate.cli.connection import run_with_client
from footplate.cli.profile.server_profiles import Server
from footplate.cli.render import notification_views, terminal_io
from footplate.client import AsyncFootplate
from footplate.client.approvals import NotificationSettings, PushSubscription

_HOURS: Final = re.compile(r"(\d\d:\d\d)-(\d\d:\d\d)")
_LOCAL_ZONE: Final = Path("/etc/localtime")
_ZONES: Final = "zoneinfo/"


def list_browsers(*, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> tuple[NotificationSettings, list[PushSubscription]]:
        return await client.notifications.settings(), await client.notifications.list()

    settings, found = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json({"settings": settings.wire(), "browsers": [each.wire() for each in found]})
    else:
        notification_views.print_browsers(found)
        notification_views.print_settings(settings)


def change_settings(
    quiet: str | None,
    *,
    clear: bool,
    timezone: str | None,
    enabled: bool | None,
    as_json: bool,
    profile: str | None,
) -> None:
    fields: dict[str, Any] = {} if enabled is None else {"enabled": enabled}
    if clear:
        fields["quiet_hours"] = None
    elif quiet is not None:
        match = _HOURS.fullmatch(quiet)
        if match is None:
            raise typer.BadParameter(f"{quiet!r} is not a time span. Example: 22:00-07:00", param_hint="--quiet")
        zone = timezone or find_local_zone()
        fields["quiet_hours"] = {"start": match[1], "end": match[2], "timezone": zone}
    settings = run_with_client(
        lambda client, _: client.notifications.update_settings(**fields), profile=profile, as_json=as_json
    )
    if as_json:
        terminal_io.print_json(settings.wire())
    else:
        notification_views.print_settings(settings)


def remove_browser(browser: str, *, as_json: bool, profile: str | None) -> None:
    gone = run_with_client(lambda client, _: client.notifications.delete(browser), profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json([gone.wire()])
    else:
        terminal_io.print_result(f"{browser} removed")


def test_browser(browser: str, *, as_json: bool, profile: str | None) -> None:
    sent = run_with_client(lambda client, _: client.notifications.test(browser), profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json(sent.wire())
    else:
        terminal_io.print_result(f"{browser} test sent")


def find_local_zone() -> str:
    """Returns the name of this machine's time zone, or UTC if it has no name."""
    try:
        path = str(_LOCAL_ZONE.resolve())
    except OSError:
        return "UTC"
    return path.partition(_ZONES)[2] or "UTC"
