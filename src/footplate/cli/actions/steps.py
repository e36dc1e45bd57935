"""Implements `footplate steps`, `play`, `pause` and `next`."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Literal

from footplate.cli.actions.run.message_content import MessageAttachments, build_content, find_session_audience
from footplate.cli.actions.run.session_start import resolve_session_id
from footplate.cli.connection import run_with_client
from footplate.cli.profile.server_profiles import Server
from footplate.cli.render import step_tables, terminal_io
from footplate.client import AsyncFootplate, ClientError, Playback, Step
from footplate.client.response_models import SessionEnd

_MIN_ID_END = 6
_MAX_MESSAGES = 100
_OPTIONS: Final = {
    "name": "--name",
    "command": "--shell",
    "content": "--prompt",
    "instructions": "--external",
    "into": "--merge",
    "branch": "--push",
    "message": "--message",
    "condition": "--if",
    "on_failure": "--on-failure",
    "max_attempts": "--attempts",
    "timeout_seconds": "--timeout",
}
"""The options for the fields of a step."""


def list_steps(session: str, *, as_json: bool, profile: str | None) -> None:
    messages: dict[str, str] = {}

    async def work(client: AsyncFootplate, _server: Server) -> tuple[list[Step], Playback, SessionEnd | None]:
        session_id = await resolve_session_id(client, session)
        found = [step async for step in client.steps.list(session_id, limit=1000)]
        if not as_json and any(step.is_message for step in found):
            messages.update(await _read_messages(client, session_id))
        end = None if as_json else (await client.sessions.retrieve(session_id)).end
        return found, await client.steps.playback(session_id), end

    found, playback, end = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json({"playback": playback.wire(), "steps": [step.wire() for step in found]})
    else:
        step_tables.print_steps(found, playback, end, messages)


def add_step(
    session: str,
    step: Mapping[str, Any],
    attachments: MessageAttachments,
    *,
    before: str | None,
    as_json: bool,
    profile: str | None,
) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> Step:
        session_id = await resolve_session_id(client, session)
        before_id = None if before is None else (await _resolve_step(client, session_id, before)).id
        sent = step
        if attachments:
            audience = await find_session_audience(client, session_id)
            sent = {**step, "content": await build_content(client, str(step["content"]), attachments, audience)}
        (added,) = await client.steps.add(session_id, [sent], before=before_id)
        return added

    options = {f"steps.0.{field}": option for field, option in _OPTIONS.items()}
    added = run_with_client(work, profile=profile, as_json=as_json, options=options)
    if as_json:
        terminal_io.print_json(added.wire())
    else:
        terminal_io.print_result(added.id)


def show_step(wanted: str, *, session: str, as_json: bool, profile: str | None) -> None:
    async def unchanged(_client: AsyncFootplate, step: Step) -> Step:
        return step

    _with_step(wanted, session, unchanged, in_full=True, as_json=as_json, profile=profile)


def edit_step(wanted: str, fields: Mapping[str, Any], *, session: str, as_json: bool, profile: str | None) -> None:
    def change(client: AsyncFootplate, step: Step) -> Awaitable[Step]:
        return client.steps.edit(step.session_id, step.id, **fields)

    _with_step(wanted, session, change, in_full=True, as_json=as_json, profile=profile)


def move_step(wanted: str, *, before: str | None, session: str, as_json: bool, profile: str | None) -> None:
    async def change(client: AsyncFootplate, step: Step) -> Step:
        before_id = None if before is None else (await _resolve_step(client, step.session_id, before)).id
        return await client.steps.move(step.session_id, step.id, before=before_id)

    _with_step(wanted, session, change, as_json=as_json, profile=profile)


def remove_step(wanted: str, *, session: str, as_json: bool, profile: str | None) -> None:
    def change(client: AsyncFootplate, step: Step) -> Awaitable[Step]:
        return client.steps.remove(step.session_id, step.id)

    _with_step(wanted, session, change, as_json=as_json, profile=profile)


def retry_step(wanted: str, *, play: bool, session: str, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> tuple[Step, Playback]:
        step = await _resolve_step(client, await resolve_session_id(client, session), wanted)
        added = await client.steps.retry(step.session_id, step.id, play=play)
        return added, await client.steps.playback(added.session_id)

    added, playback = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json(added.wire())
        return
    terminal_io.print_result(added.id)
    if playback.playing:
        terminal_io.print_note(f"Follow it: footplate attach {added.session_id}")
    else:
        terminal_io.print_note(f"The session is paused. Run it: footplate play {added.session_id}")


def submit_result(wanted: str, fields: Mapping[str, Any], *, session: str, as_json: bool, profile: str | None) -> None:
    def change(client: AsyncFootplate, step: Step) -> Awaitable[Step]:
        return client.steps.submit_result(step.session_id, step.id, **fields)

    _with_step(wanted, session, change, as_json=as_json, profile=profile)


def change_playback(
    session: str, action: Literal["play", "pause", "next"], *, as_json: bool, profile: str | None
) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> tuple[Playback, list[Step], list[Step]]:
        """Returns the new playback, the open steps, and the steps that `next` starts."""
        session_id = await resolve_session_id(client, session)
        changes = {"play": client.steps.play, "pause": client.steps.pause, "next": client.steps.next}
        if as_json:
            return await changes[action](session_id), [], []
        open_steps = [one async for one in client.steps.list(session_id, limit=1000, states=["pending", "running"])]
        before = await client.steps.playback(session_id)
        pending = [step for step in open_steps if step.state == "pending"]
        return await changes[action](session_id), open_steps, pending[: before.next_steps + 1]

    playback, open_steps, started = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json(playback.wire())
    elif action == "next" and started:
        step_tables.print_next(playback, started)
    else:
        step_tables.print_playback(playback, has_steps=bool(open_steps))


def _with_step(
    wanted: str,
    session: str,
    change: Callable[[AsyncFootplate, Step], Awaitable[Step]],
    *,
    in_full: bool = False,
    as_json: bool,
    profile: str | None,
) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> Step:
        return await change(client, await _resolve_step(client, await resolve_session_id(client, session), wanted))

    step = run_with_client(work, profile=profile, as_json=as_json, options=_OPTIONS)
    if as_json:
        terminal_io.print_json(step.wire())
    elif in_full:
        step_tables.print_step(step)
    else:
        terminal_io.print_result(step.id)


async def _read_messages(client: AsyncFootplate, session_id: str) -> dict[str, str]:
    """Returns the texts of the newest messages, by the id of their step."""
    page = await client.events.list(session_id, limit=_MAX_MESSAGES, order="desc", types=["user.message"]).page()
    return {
        f"step_{event.id.partition('_')[2]}": " ".join(str(block.get("text") or "") for block in event.content or ())
        for event in page.data
        if event.id is not None
    }


async def _resolve_step(client: AsyncFootplate, session_id: str, wanted: str) -> Step:
    """Finds a step by its id, its name, or the end of its id. Of several with one name, the last in the queue."""
    if wanted.startswith("step_"):
        return await client.steps.retrieve(session_id, wanted)
    found = [step async for step in client.steps.list(session_id, limit=1000)]
    named = [step for step in found if step.name == wanted]
    ending = [step for step in found if len(wanted) >= _MIN_ID_END and step.id.endswith(wanted)]
    for step in [*named[-1:], *(ending if len(ending) == 1 else [])]:
        return step
    raise ClientError(
        f"Session {session_id} has no step {wanted!r}.",
        help_text=f"List its steps: footplate steps ls {session_id}. For another session, use --session.",
    )
