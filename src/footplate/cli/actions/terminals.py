"""Implements `attach --terminal`, which connects the user's own terminal to that of a session, and
`footplate terminals`, which lists and saves recordings.
"""

from pathlib import Path

import typer

from footplate.cli.actions import output_download
from footplate.cli.actions.run import session_start
from footplate.cli.connection import run_with_client
from footplate.cli.follow import terminal_client
from footplate.cli.json_output_models import SavedRecording
from footplate.cli.profile.server_profiles import Server
from footplate.cli.render import resource_tables, terminal_io
from footplate.cli.render.terminal_io import Exit, print_json
from footplate.client import AsyncFootplate, ClientError, TerminalRecording
from footplate.client.steps import Step


def attach(wanted: str, *, read_only: bool, profile: str | None) -> None:
    if not read_only and not terminal_client.can_type():
        raise typer.BadParameter("--terminal needs a terminal to type at. Use --read-only to watch.")

    async def work(client: AsyncFootplate, _server: Server) -> int:
        session_id = await session_start.resolve_session_id(client, wanted)
        step = None if read_only else await _open_shell(client, session_id)
        if read_only and terminal_client.can_type():
            terminal_io.print_note(f"You only watch. {terminal_client.DETACH_KEY_NAME} or Ctrl-C leaves.")
        exit_code = await terminal_client.follow_terminal(client, session_id, step, write=not read_only)
        if exit_code == Exit.DETACHED:
            terminal_io.print_note(
                f"\nDetached. To return: footplate attach --terminal{' --read-only' if read_only else ''} {session_id}"
            )
        return exit_code

    raise typer.Exit(run_with_client(work, profile=profile))


async def _open_shell(client: AsyncFootplate, session_id: str) -> Step | None:
    """Returns the step of the shell, or None if a command runs on the terminal: then the user joins that one."""
    running = [step async for step in client.steps.list(session_id, states=["running"])]
    if any(step.terminal for step in running):
        terminal_io.print_note(f"A step runs on the terminal. {terminal_client.DETACH_KEY_NAME} detaches.")
        return None
    step = await client.terminals.open(session_id)
    if running and step.state == "pending":
        terminal_io.print_note("The session is busy: the shell opens when its turn has ended.")
    terminal_io.print_note(f"{terminal_client.DETACH_KEY_NAME} detaches, and `exit` closes the shell.")
    return step


def list_recordings(wanted: str, *, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> list[TerminalRecording]:
        return [*await client.terminals.recordings(await session_start.resolve_session_id(client, wanted))]

    found = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        print_json([recording.wire() for recording in found])
    else:
        resource_tables.print_recordings(found)


def save_recording(
    wanted: str, recording_id: str | None, output: Path | None, *, force: bool, as_json: bool, profile: str | None
) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> SavedRecording:
        session_id = await session_start.resolve_session_id(client, wanted)
        found = await client.terminals.recordings(session_id)
        recording = next((each for each in reversed(found) if recording_id in {None, each.id}), None)
        if recording is None:
            raise ClientError(
                "There is no such recording." if found else "The session has no recordings.",
                help_text=f"To list them: footplate terminals ls {session_id}",
            )
        target = (output or Path(f"{recording.id}.cast")).absolute()
        try:
            with output_download.OutputDownload(target.parent, target.name, force=force) as download:
                async for piece in client.terminals.recording(session_id, recording.id):
                    download.write(piece)
                path = download.finish(recording.size_bytes)
        except OSError as error:
            raise ClientError(f"The file cannot be written: {error.strerror}.") from error
        return SavedRecording(
            recording_id=recording.id, session_id=session_id, path=str(path), size_bytes=recording.size_bytes
        )

    saved = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        print_json(saved.model_dump())
    else:
        terminal_io.print_result(saved.path)
