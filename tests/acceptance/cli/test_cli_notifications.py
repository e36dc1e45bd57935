"""Notifications from the command line: quiet hours, and the browsers of the caller."""

import pytest
from bench.support.push.push_service import BrowserKeys
from tests.acceptance.cli.cli_cell import Cell, fits

pytestmark = pytest.mark.timing

URL = "https://push.example.invalid/abc"


async def test_quiet_hours_are_set_and_a_browser_is_removed(cell: Cell) -> None:
    empty = await cell.run("notifications", "ls")
    assert (empty.code, "notified in no browser" in empty.err, "at any time" in empty.err) == (0, True, True), empty
    async with cell.client() as client:
        subscribed = await client.notifications.subscribe(URL, **BrowserKeys("/").to_json())
    listed = fits("notifications", (await cell.run("notifications", "ls", "--json")).out)
    assert [(each["id"], each["state"]) for each in listed["browsers"]] == [(subscribed.id, "active")]
    quiet = await cell.run("notifications", "set", "--quiet", "22:00-07:00", "--timezone", "Europe/Berlin")
    assert (quiet.code, "except from 22:00 to 07:00 (Europe/Berlin)" in quiet.err) == (0, True), quiet
    wrong = await cell.run("notifications", "set", "--quiet", "22:00-07:00", "--timezone", "Mars")
    assert (wrong.code, "no time zone 'Mars'" in wrong.err) == (1, True), wrong
    off = fits("notification-settings", (await cell.run("notifications", "set", "--off", "--json")).out)
    assert (off["enabled"], off["quiet_hours"]["start"]) == (False, "22:00")
    shown = await cell.run("notifications", "ls")
    assert (subscribed.id in shown.out, "Notifications are off" in shown.err) == (True, True), shown
    on = fits("notification-settings", (await cell.run("notifications", "set", "--on", "--no-quiet", "--json")).out)
    assert (on["enabled"], on["quiet_hours"]) == (True, None)
    tested = fits("notification-test", (await cell.run("notifications", "test", subscribed.id, "--json")).out)
    assert tested["id"].startswith("whdl_")
    (removed,) = fits("deleted", (await cell.run("notifications", "rm", subscribed.id, "--json")).out)
    assert removed["id"] == subscribed.id
    again = await cell.run("notifications", "rm", subscribed.id)
    assert (again.code, subscribed.id in again.err) == (1, True), again
