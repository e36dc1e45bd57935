"""Prints the browsers in which a member is notified, and the quiet hours."""

from collections.abc import Sequence

from footplate.cli.render import value_formatting
from footplate.cli.render.table_printing import Cell, UntrustedText, print_rows
from footplate.cli.render.terminal_io import print_note
from footplate.client.approvals import NotificationSettings, PushSubscription


def print_browsers(found: Sequence[PushSubscription]) -> None:
    if not found:
        print_note("You are notified in no browser. Turn notifications on in Settings of the dashboard.")
        return
    rows: list[list[Cell]] = [
        [
            each.id,
            each.state.replace("_", " "),
            value_formatting.format_age(each.last_success_at) if each.last_success_at else "never",
            UntrustedText(each.user_agent),
        ]
        for each in found
    ]
    print_rows(["ID", "STATE", "LAST SENT", "BROWSER"], rows)


def print_settings(settings: NotificationSettings) -> None:
    if not settings.enabled:
        print_note("Notifications are off. Turn them on: footplate notifications set --on")
        return
    quiet = settings.quiet_hours
    hours = "at any time" if quiet is None else f"except from {quiet.start} to {quiet.end} ({quiet.timezone})"
    print_note(f"You are notified {hours}.")
