"""Steps from the command line: a pipeline file, the queue of a session, and play, pause and next."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.cli.cli_cell import Cell, Done, fits

from footplate.client import AsyncFootplate
from footplate.stack.orphan_processes import wait_until

pytestmark = pytest.mark.timing

PIPELINE = """\
steps:
  - name: build
    shell: echo built
  - name: report
    shell: printf 'It says %s' ${steps.build.stdout}
  - name: fix
    if: steps.build.status == "failed"
    prompt: Fix it
  - name: lint
    shell: echo '3 problems' >&2; exit 4
    on_failure: continue
  - name: hello
    prompt: Say hello
  - name: count
    shell: echo ${steps.lint.exit_code}
"""


async def _json(cell: Cell, schema: str, *arguments: str) -> Any:
    done = await cell.run(*arguments, "--json")
    assert done.err == "", done
    return fits(schema, done.out)


async def _queue_run(cell: Cell, directory: Path, text: str, *arguments: str) -> Done:
    path = directory / "pipeline.yaml"
    path.write_text(text)
    return await cell.run("queue", "run", str(path), "--scratch", *arguments)


@pytest.mark.requirement("O2", "O6")
async def test_a_pipeline_runs_in_order_with_conditions_references_and_failures(cell: Cell, tmp_path: Path) -> None:
    done = await _queue_run(cell, tmp_path, PIPELINE)
    assert done.code == 1, done
    lines = [line.split(maxsplit=3) for line in done.out.splitlines()]
    assert [line[1:3] for line in lines if line[0].endswith("/6")] == [
        ["build", "started"], ["build", "completed"], ["report", "started"], ["report", "completed"],
        ["fix", "skipped"], ["lint", "started"], ["lint", "failed"], ["hello", "started"], ["hello", "completed"],
        ["count", "started"], ["count", "completed"],
    ]  # fmt: skip
    assert "exit code 4" in done.out
    assert "3 problems" in done.out
    listed = await _json(cell, "steps", "steps", "ls")
    results = {step["name"]: step["result"] for step in listed["steps"]}
    assert results["report"]["stdout"] == "It says built\n"
    assert (results["count"]["stdout"], results["hello"]["text"]) == ("4\n", "Done.")
    assert listed["playback"]["playing"]


async def test_a_paused_session_is_stepped_through_and_changed(
    cell: Cell, client: AsyncFootplate, tmp_path: Path
) -> None:
    result = fits("pipeline", (await _queue_run(cell, tmp_path, "steps:\n  - shell: exit 2", "--json")).out)
    session_id = result["session_id"]
    assert (result["status"], result["exit_code"], result["steps"][0]["result"]["exit_code"]) == ("failed", 1, 2)
    for name in ("one", "two", "three"):
        added = await _json(cell, "step", "steps", "add", session_id, "--shell", "true", "--name", name)
        assert (added["name"], added["state"]) == (name, "pending")
    assert (await _json(cell, "step", "steps", "mv", "three", "--before", "one"))["state"] == "pending"
    assert (await _json(cell, "step", "steps", "edit", "one", "--shell", "echo edited"))["command"] == "echo edited"
    assert (await _json(cell, "step", "steps", "rm", "two"))["state"] == "cancelled"
    given = ("--prompt", "Look", "--file", "project:a.md", "--url", "https://example.com/b.png", "--name", "look")
    looking = await _json(cell, "step", "steps", "add", session_id, *given)
    assert looking["content"] == [
        {"type": "text", "text": "Look"},
        {"type": "file", "source": {"type": "path", "path": "a.md"}, "deliver": "file"},
        {"type": "image", "source": {"type": "url", "url": "https://example.com/b.png"}, "deliver": "url"},
    ]
    assert (await _json(cell, "step", "steps", "rm", "look"))["state"] == "cancelled"
    refused = await cell.run("steps", "add", session_id, "--shell", "true", "--file", "project:a.md")
    assert (refused.code, "require --prompt" in refused.err) == (2, True)
    shown = (await cell.run("show", session_id)).out
    assert "paused after a failed or interrupted step · 2 pending: three, one" in shown
    assert session_id in (await cell.run("ls", "--activity", "paused", "--quiet")).out
    assert (await _json(cell, "playback", "next", session_id))["next_steps"] == 1

    async def states() -> dict[str | None, str]:
        return {step.name: step.state async for step in client.steps.list(session_id)}

    async def is_stepped() -> bool:
        return (await states())["three"] == "completed"

    assert await wait_until(is_stepped, 60)
    assert (await states())["one"] == "pending"
    assert (await cell.run("play", session_id)).out == "The session is playing.\n"

    async def is_done() -> bool:
        return (await states())["one"] == "completed"

    assert await wait_until(is_done, 60)
    assert "edited" in (await cell.run("steps", "show", "one")).out
    assert not (await _json(cell, "playback", "pause"))["playing"]
    again = await cell.run("next", session_id)
    assert (again.code, "no further pending step" in again.err) == (1, True)


@pytest.mark.requirement("R3", "F2")
async def test_an_external_step_waits_for_its_result(cell: Cell, client: AsyncFootplate, tmp_path: Path) -> None:
    text = (
        "steps:\n  - {name: build, shell: echo it}\n  - {name: review, external: 'Read ${steps.build.text}'}\n"
        "  - {shell: 'echo ${steps.review.stdout}; exit 3', on_failure: continue}\n"
    )
    started = fits("pipeline-started", (await _queue_run(cell, tmp_path, text, "--detach", "--json")).out)
    session_id, (_, review, last) = started["session_id"], started["steps"]

    async def waits() -> bool:
        return (await client.steps.retrieve(session_id, review["id"])).waiting_for == "action"

    assert await wait_until(waits, 60)
    assert "needs result" in (await cell.run("steps", "ls", session_id)).out
    sent = ("steps", "result", "review", "--status", "completed", "--stdout", "fine")
    followed = asyncio.create_task(cell.run("attach", session_id))
    await asyncio.sleep(3)
    assert [(await cell.run(*sent)).code for _ in range(2)] == [0, 0]
    assert (await cell.run("steps", "result", "review", "--status", "failed")).code == 1

    async def ended() -> bool:
        return (await client.steps.retrieve(session_id, last["id"])).state == "failed"

    assert await wait_until(ended, 60)
    activity = (await client.sessions.retrieve(session_id)).activity
    assert activity is not None
    assert activity.state == "failed"
    found = await client.steps.retrieve(session_id, last["id"])
    assert found.result is not None
    assert found.result.stdout == "fine\n"
    attached = await followed
    assert attached.code == 1, attached
    assert f"footplate steps result review --session {session_id} --status completed" in attached.out
    assert "Read it" in attached.out
    assert "fine" in [line.strip() for line in attached.out.splitlines()]  # the output of the last step
    again = await cell.run("attach", session_id)
    assert (again.code, "Send one" in again.err, "echo fine" in again.err) == (1, False, True), again
    assert "failed" in again.err


async def test_a_detached_parallel_step_is_followed_again(cell: Cell, client: AsyncFootplate, tmp_path: Path) -> None:
    text = "steps:\n  - {name: par, parallel: [{shell: sleep 8}]}\n  - {name: bad, shell: exit 4}\n  - shell: ls\n"
    started = fits("pipeline-started", (await _queue_run(cell, tmp_path, text, "--detach", "--json")).out)
    session_id, (parallel, *_) = started["session_id"], started["steps"]

    async def waits() -> bool:
        return (await client.steps.retrieve(session_id, parallel["id"])).waiting_for == "sessions"

    assert await wait_until(waits, 60)
    attached = asyncio.create_task(cell.run("attach", session_id))
    for command in (["show", session_id], ["ls"]):
        shown = (await cell.run(*command)).out
        assert "sessions run" in shown
        assert "needs result" not in shown
    done = await attached
    assert (done.code, "Send one" in done.err) == (1, False), done
    assert f"footplate steps retry bad --play --session {session_id}" in done.err
    assert " · 2 sessions" in done.out
    retried = await _json(cell, "step", "steps", "retry", "bad", "--session", session_id)
    assert (retried["state"], retried["name"]) == ("pending", "bad")
    again = await cell.run("steps", "retry", "bad", "--session", session_id)
    assert (again.code, "it is pending" in again.err) == (1, True), again
    log = (await cell.run("logs", session_id)).out
    assert "1 of 1 session completed." in log
    assert "waits for" not in log
    assert [line.split()[1] for line in (await cell.run("show", session_id)).out.splitlines() if "turn_" in line] == [
        "failed",
        "completed",
    ]


async def test_an_invalid_file_creates_no_session(cell: Cell, tmp_path: Path) -> None:
    before = (await cell.run("ls", "--quiet")).out
    text = "steps:\n  - shell: ls\n    on_failure: ignore\n"
    done = await _queue_run(cell, tmp_path, text)
    assert (done.code, done.out) == (2, "")
    assert f"{tmp_path}/pipeline.yaml:3:17: on_failure must be stop, continue or retry" in done.err
    error = json.loads((await _queue_run(cell, tmp_path, text, "--json")).out)
    assert (error["error"]["code"], error["exit_code"]) == ("invalid_pipeline", 2)
    assert (await cell.run("ls", "--quiet")).out == before
