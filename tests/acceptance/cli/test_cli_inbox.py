"""The inbox, comments, pins and templates on the command line, and other clients that see each change at once."""

import asyncio
import json
import time
from typing import Any

import pytest
from tests.acceptance.cli.cli_cell import Cell, fits

from footplate.client import AsyncFootplate, Change

pytestmark = pytest.mark.timing

_SECONDS = 1.0
"""After which other clients know of a change."""


async def _json(cell: Cell, schema: str, *arguments: str) -> Any:
    done = await cell.run(*arguments, "--json")
    assert done.code == 0, (arguments, done.out, done.err)
    return fits(schema, done.out)


async def test_a_failure_is_snoozed_assigned_and_dismissed(cell: Cell, client: AsyncFootplate) -> None:
    failed = await cell.run("run", "--scratch", "--output", "json", "[[script:bad]]")
    session_id = json.loads(failed.out)["session_id"]

    async def listed(*options: str) -> list[Any]:
        found = await _json(cell, "inbox", "inbox", "ls", "--kind", "failure", *options)
        return [item for item in found if item["session"]["id"] == session_id]

    (item,) = await listed()
    assert (item["failure"]["code"], item["turn_number"]) == ("failed", 1)
    assert "that model does not exist" in item["failure"]["message"]
    owner = (await client.sessions.retrieve(session_id)).created_by
    (assigned,) = await _json(cell, "inbox", "inbox", "assign", item["id"], "--to", str(owner))
    assert assigned["assignee"]["id"] == owner
    assert [one["id"] for one in await listed("--view", "mine")] == [item["id"]]
    snoozed = await cell.run("inbox", "snooze", item["id"], "--until", "2h")
    assert "snoozed until" in snoozed.out
    assert (await listed(), len(await listed("--view", "snoozed"))) == ([], 1)
    await _json(cell, "inbox", "inbox", "snooze", item["id"], "--off")
    await _json(cell, "inbox", "inbox", "assign", item["id"], "--clear")
    table = await cell.run("inbox", "ls", COLUMNS="200")
    assert "failed" in table.out
    assert "The turn failed" in table.out
    for _ in range(2):
        await _json(cell, "inbox-dismissed", "inbox", "dismiss", item["id"])
    assert await listed() == []
    for wrong in (["assign", item["id"]], ["snooze", item["id"]], ["snooze", item["id"], "--until", "soon"]):
        assert (await cell.run("inbox", *wrong)).code == 2, wrong
    gone = await cell.run("inbox", "snooze", item["id"], "--until", "1h")
    assert (gone.code, "There is no inbox item" in gone.err) == (1, True)


async def test_comments_reach_the_agent_as_one_message(cell: Cell, client: AsyncFootplate) -> None:
    session_id = (await _json(cell, "run", "run", "--scratch", "[[script:here]]"))["session_id"]
    (turn,) = [turn async for turn in client.turns.list(session_id)]
    first = await _json(cell, "comment", "comments", "add", "here.txt", "1", "Why here?", "--session", session_id)
    assert (first["code"].startswith("/"), first["sent_event_id"]) == (True, None)
    on_turn = ("--session", session_id, "--turn", turn.id)
    second = await _json(cell, "comment", "comments", "add", "here.txt", "1-1", "Remove [[script:look]]", *on_turn)
    await _json(cell, "comment", "comments", "edit", first["id"], "Why there?", "--session", session_id)
    extra = await _json(cell, "comment", "comments", "add", "here.txt", "1", "Never mind", "--session", session_id)
    await _json(cell, "comments-deleted", "comments", "rm", extra["id"], "--session", session_id)
    for path, lines in (("here.txt", "2"), ("other.txt", "1")):
        refused = await cell.run("comments", "add", path, lines, "x", "--session", session_id)
        assert (refused.code, "footplate diff" in refused.err) == (1, True), refused.err
    assert (await cell.run("comments", "add", "here.txt", "3-1", "x", "--session", session_id)).code == 2
    shown = await cell.run("comments", "ls", session_id)
    assert ("Why there?" in shown.out, shown.out.count("draft")) == (True, 2)
    results = [await client.comments.send(session_id), *await asyncio.gather(*[client.comments.send(session_id)] * 1)]
    assert [len(result.comments) for result in results] == [2, 0]
    assert (await _json(cell, "comments-sent", "comments", "send", session_id))["comments"] == []
    assert (await cell.run("comments", "send", session_id)).err.startswith("No drafts were left")
    listed = await _json(cell, "comments", "comments", "ls", session_id)
    assert {one["id"]: one["sent_event_id"] for one in listed} == dict.fromkeys(
        [first["id"], second["id"]], results[0].data[0].id
    )
    messages = [event async for event in client.events.list(session_id, types=["user.message"])]
    assert [message.id for message in messages].count(results[0].data[0].id) == 1
    assert "here.txt, line 1:\n```\n/" in messages[-1].text
    await cell.run("attach", session_id)


async def test_templates_and_pins(cell: Cell, client: AsyncFootplate) -> None:
    done = await _json(cell, "run", "run", "--scratch", "Say hello")
    session = await client.sessions.retrieve(done["session_id"])
    body = {"agent": session.agent.id, "environment_id": session.environment_id, "title": "From a template"}
    path = cell.home / "template.json"
    path.write_text(json.dumps(body))
    made = await _json(cell, "template", "templates", "create", "Greeting", "--session", str(path))
    assert made["session"] == body
    assert "Greeting" in (await cell.run("templates", "ls")).out
    changed = await _json(cell, "template", "templates", "update", "Greeting", "--description", "Says hello")
    assert (changed["description"], changed["session"]) == ("Says hello", body)
    assert (await client.sessions.create(**changed["session"])).title == "From a template"
    path.write_text(json.dumps({**body, "agent": "agent_0"}))
    refused = await cell.run("templates", "create", "Other", "--session", str(path))
    assert (refused.code, "There is no agent" in refused.err) == (1, True)
    assert "From a template" in (await cell.run("templates", "show", "Greeting")).out
    await _json(cell, "template", "templates", "rm", "Greeting")
    assert await _json(cell, "templates", "templates", "ls") == []
    path.unlink()
    await _json(cell, "pins", "pin", session.id)
    assert [one["id"] for one in await _json(cell, "sessions", "ls", "--pinned")] == [session.id]
    await _json(cell, "pins", "unpin", session.id)
    assert await _json(cell, "sessions", "ls", "--pinned") == []


async def test_another_client_sees_each_change_within_a_second(cell: Cell, client: AsyncFootplate) -> None:
    failed = await cell.run("run", "--scratch", "--output", "json", "[[script:bad]]")
    session_id = json.loads(failed.out)["session_id"]
    (item,) = [one async for one in client.inbox.list(kind="failure") if one.session.id == session_id]
    seen: asyncio.Queue[Change] = asyncio.Queue()

    async def follow() -> None:
        async with cell.client() as other:
            types = ["inbox.changed", "session_pin.changed", "session_comment.changed"]
            async for change in other.events.changes(types=types):
                seen.put_nowait(change)

    following = asyncio.create_task(follow())
    try:
        await asyncio.sleep(1)  # until the stream is open
        for change in (
            client.inbox.assign(item.id, (await client.sessions.retrieve(session_id)).created_by),
            client.inbox.dismiss(item.id),
            client.sessions.pin(session_id),
        ):
            started = time.monotonic()
            await change
            async with asyncio.timeout(10):
                received = await seen.get()
            assert time.monotonic() - started < _SECONDS, received.type
    finally:
        following.cancel()
