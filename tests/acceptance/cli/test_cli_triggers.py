"""Triggers from the command line."""

import pytest
from tests.acceptance.cli.cli_cell import Cell, fits

pytestmark = pytest.mark.requirement("O8")


async def test_a_trigger_is_managed_and_receives_a_delivery(cell: Cell) -> None:
    empty = await cell.run("triggers", "ls")
    assert (empty.code, "No triggers yet" in empty.err) == (0, True), empty
    options = ("--name", "push", "--shell", "echo ${payload.branch}", "--if", "has(payload.branch)")
    created = await cell.run("triggers", "create", *options, "--title", "Push to ${payload.branch}")
    assert (created.code, created.out.startswith("whsec_")) == (0, True), created
    secret = {"FOOTPLATE_TRIGGER_SECRET": created.out.strip()}
    send = ("triggers", "send", "push", '{"branch": "$(id)"}', "--delivery-id", "msg_1", "--json")
    first = fits("trigger-delivery", (await cell.run(*send, **secret)).out)
    assert (first["outcome"], first["delivery_id"]) == ("session_created", "msg_1")
    assert fits("trigger-delivery", (await cell.run(*send, **secret)).out)["session_id"] == first["session_id"]
    ignored = await cell.run("triggers", "send", "push", "{}", **secret)
    assert (ignored.code, "ignored" in ignored.out) == (0, True), ignored
    refused = await cell.run("triggers", "send", "push", "{}", FOOTPLATE_TRIGGER_SECRET="whsec_AAAA")
    assert (refused.code, "signature is not valid" in refused.err) == (1, True), refused
    attached = await cell.run("attach", first["session_id"])
    (step,) = fits("steps", (await cell.run("steps", "ls", first["session_id"], "--json")).out)["steps"]
    assert step["result"]["stdout"] == "$(id)\n", (step, attached)
    found = fits("trigger-deliveries", (await cell.run("triggers", "deliveries", "push", "--json")).out)
    assert [one["outcome"] for one in found] == ["ignored", "session_created"]
    changed = fits("trigger", (await cell.run("triggers", "update", "push", "--no-condition", "--json")).out)
    assert changed["condition"] is None
    failed = await cell.run("triggers", "send", "push", "{}", **secret)
    assert (failed.code, "no value for ${payload.branch}" in failed.err) == (1, True), failed
    rotated = await cell.run("triggers", "rotate", "push", "--overlap", "0")
    assert (rotated.code, rotated.out.startswith("whsec_"), rotated.out != created.out) == (0, True, True), rotated
    shown = await cell.run("triggers", "show", "push")
    assert (f"/v1/triggers/{changed['id']}" in shown.out.replace("\n", ""), "whsec_" in shown.out) == (True, False)
    paused = await cell.run("triggers", "update", "push", "--pause")
    assert (paused.code, "paused" in paused.err) == (0, True), paused
    (listed,) = fits("triggers", (await cell.run("triggers", "ls", "--json")).out)
    assert listed["status"] == "paused"
    removed = await cell.run("triggers", "rm", "push")
    assert removed.code == 0, removed
    missing = await cell.run("triggers", "show", "push")
    assert (missing.code, "push" in missing.err) == (1, True), missing
