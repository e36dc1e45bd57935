"""Webhooks from the command line."""

import pytest
from tests.acceptance.cli.cli_cell import Cell, fits

pytestmark = [pytest.mark.timing, pytest.mark.requirement("O8")]

URL = "https://hooks.example.invalid/services/T000"


async def test_an_endpoint_is_managed(cell: Cell) -> None:
    empty = await cell.run("webhooks", "ls")
    assert (empty.code, "No webhook endpoints" in empty.err) == (0, True), empty
    created = await cell.run("webhooks", "create", URL, "--event", "session.status_idled", "--ordered")
    assert created.code == 0, created
    assert created.out.startswith("whsec_")
    (listed,) = fits("webhooks", (await cell.run("webhooks", "ls", "--json")).out)
    endpoint = listed["id"]
    assert (endpoint in created.err, listed["event_types"]) == (True, ["session.status_idled"])
    again = await cell.run("webhooks", "create", URL)
    assert (again.code, "already a webhook endpoint" in again.err) == (1, True), again
    wrong = await cell.run("webhooks", "create", "http://127.0.0.1/", "--json")
    assert (wrong.code, "must use https" in wrong.out) == (1, True), wrong
    changed = await cell.run("webhooks", "update", endpoint, "--all-events", "--format", "slack", "--disable")
    assert (changed.code, "disabled" in changed.out, "slack" in changed.out) == (0, True, True), changed
    refused = await cell.run("webhooks", "test", endpoint)
    assert (refused.code, "is disabled" in refused.err) == (1, True), refused
    shown = fits("webhook", (await cell.run("webhooks", "update", endpoint, "--enable", "--json")).out)
    assert (shown["disabled_at"], shown["event_types"]) == (None, [])
    tested = await cell.run("webhooks", "test", endpoint)
    assert (tested.code, "cannot be resolved" in tested.out) == (1, True), tested
    deliveries = fits("webhook-deliveries", (await cell.run("webhooks", "deliveries", endpoint, "--json")).out)
    sent = next(each for each in deliveries if each["event_type"] == "webhook.test")
    replayed = fits("webhook-delivery", (await cell.run("webhooks", "replay", endpoint, sent["id"], "--json")).out)
    assert (replayed["id"], replayed["status"]) == (sent["id"], "pending")
    rotated = await cell.run("webhooks", "rotate", endpoint, "--overlap", "1")
    assert (rotated.code, rotated.out.startswith("whsec_"), rotated.out != created.out) == (0, True, True), rotated
    detail = (await cell.run("webhooks", "show", endpoint)).out
    assert ("valid until" in detail, "whsec_" in detail) == (True, False), detail
    (deleted,) = fits("deleted", (await cell.run("webhooks", "rm", endpoint, "--json")).out)
    assert deleted["id"] == endpoint
