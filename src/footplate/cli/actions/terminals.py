"""Implements `attach --terminal`: opens the terminal of a session, and connects the user's own terminal to it."""

import typer

from footplate.cli.actions.run import session_start
from footplate.cli.connection import run_with_client
from footplate.cli.follow import terminal_client
from footplate.cli.profile.server_profiles import Server
from footplate.cli.render import terminal_io
from footplate.cli.render.terminal_io import Exit
from footplate.client import AsyncFootplate
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
