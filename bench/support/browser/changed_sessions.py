"""Sessions whose agents changed files, for browser tests of diffs, files, merges and comparisons."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bench.support.browser.dashboard_window import Workplace
from footplate.stack.orphan_processes import wait_until
from footplate.testing.model_scripts import replies
from footplate.testing.reply_steps import Step, text, tool

_SETTLED_WITHIN: Final = 120.0
_IDENTITY: Final = ("-c", "user.name=Content", "-c", "user.email=content@example.com")


def run_command(command: str) -> Step:
    return tool("bash", {"command": command})


def git(repository: Path, *arguments: str) -> str:
    """Runs git in the repository, and returns its output."""
    done = subprocess.run(
        ("git", "-C", str(repository), *_IDENTITY, *arguments), check=True, capture_output=True, text=True
    )
    return done.stdout


async def create_project(workplace: Workplace, name: str, files: dict[str, str]) -> tuple[str, Path]:
    """Creates a repository with these files and a project for it. Returns the project's id and the path."""
    me: Any = await workplace.client.sdk.get("/v1/me", cast_to=dict[str, Any])
    repository = workplace.cluster.directory / "data" / "projects" / str(me["organisation_id"]) / name
    repository.mkdir(parents=True)
    git(repository, "init", "-q", "-b", "main")
    for path, content in files.items():
        (repository / path).write_text(content)
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "Start")
    body: Any = await workplace.client.sdk.post(
        "/v1/projects", body={"name": name, "path": name}, cast_to=dict[str, Any]
    )
    return str(body["id"]), repository


async def run_turns(
    workplace: Workplace, turns: Sequence[Sequence[str]], *, title: str, project_id: str | None = None
) -> str:
    """Runs a session in which each turn runs its commands. Returns its id when it has ended its last turn.

    Further messages get the reply "I did what you asked."
    """
    steps: list[list[Step]] = []
    for number, commands in enumerate(turns, start=1):
        steps += [[run_command(command)] for command in commands]
        steps.append([text(f"Turn {number} is done.")])
    extra = {} if project_id is None else {"project_ids": [project_id]}
    script = replies(*steps, *([text("I did what you asked.")] for _ in range(5)))
    session_id = await workplace.start_session(script, title=title, extra_body=extra)
    await wait_until_done(workplace, session_id, turns=1)
    for number in range(2, len(turns) + 1):
        await workplace.client.send_text(session_id, f"Continue with turn {number}.")
        await wait_until_done(workplace, session_id, turns=number)
    return session_id


async def wait_until_done(workplace: Workplace, session_id: str, *, turns: int) -> None:
    """Waits until this many turns have ended and the session does nothing."""

    async def is_done() -> bool:
        found = await workplace.client.list_turns(session_id)
        return len([turn for turn in found if turn["ended_at"] is not None]) >= turns

    if not await wait_until(is_done, _SETTLED_WITHIN):
        raise AssertionError(f"{session_id} did not end {turns} turns")


async def list_messages(workplace: Workplace, session_id: str) -> list[str]:
    """Returns the texts of the messages that people sent."""
    events = await workplace.client.events(session_id)
    messages = [event for event in events if event["type"] == "user.message"]
    return ["".join(part.get("text", "") for part in message["content"]) for message in messages]
