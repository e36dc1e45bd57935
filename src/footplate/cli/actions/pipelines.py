"""Implements `footplate queue run`: adds the steps of a file to a session, and follows them."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

import typer

from footplate.cli.actions.run import session_start
from footplate.cli.connection import run_with_client
from footplate.cli.follow import approval_prompt
from footplate.cli.follow.pipeline_follower import PipelineFollower
from footplate.cli.json_output_models import ErrorAnswer, ErrorDetail
from footplate.cli.pipeline_file.pipeline_models import Pipeline
from footplate.cli.pipeline_file.pipeline_parser import InvalidPipeline, load_pipeline
from footplate.cli.profile import saved_ids
from footplate.cli.profile.server_profiles import Server
from footplate.cli.render import terminal_io
from footplate.cli.render.step_progress import QuietProgressView, StepProgressView
from footplate.cli.render.terminal_io import Exit
from footplate.client import ApiError, AsyncFootplate, ClientError, NotFound, Step

_HELP = "docs/steps.md describes the file, and docs/schemas/pipeline.schema.json is its JSON schema."
_SHARED_DIRECTORY = (
    "a step with `branches: merge` or `branches: best` cannot run in a directory that you named, because its sessions "
    "would change the same files."
)
_NO_PROJECT = "a `merge` or `push` step delivers to a branch of a project, and the new session would have none."


def run_pipeline(
    path: Path, request: session_start.RunRequest, *, detach: bool, as_json: bool, profile: str | None
) -> None:
    pipeline = _load(path, request, as_json=as_json)
    if request.session is None and pipeline.delivers and not request.projects:
        _refuse(f"{path}: {_NO_PROJECT}", "Use --project.", as_json=as_json)

    async def work(client: AsyncFootplate, server: Server) -> int:
        if request.session is None and pipeline.merges_files and session_start.shares_directory(server, request):
            _refuse(f"{path}: {_SHARED_DIRECTORY}", "Use --project or --scratch.", as_json=as_json)
        session_id, after, steps = await _add_steps(client, server, request, pipeline, as_json=as_json)
        if detach:
            _print_started(session_id, steps, as_json=as_json)
            return Exit.DONE
        return await _follow_steps(client, session_id, steps, after=after, as_json=as_json)

    raise typer.Exit(run_with_client(work, profile=profile, as_json=as_json))


async def follow_open_steps(client: AsyncFootplate, session_id: str) -> int | None:
    """Follows the steps that run or wait in the queue. Returns the exit code, or None if there are none or a message
    runs, which is followed as a turn.
    """
    after = await _newest_position(client, session_id)
    try:
        steps = [step async for step in client.steps.list(session_id, limit=1000, states=["running", "pending"])]
    except NotFound:  # the server is older than queues
        return None
    if all(step.is_message for step in steps) or any(step.is_message and step.state == "running" for step in steps):
        return None
    saved_ids.remember_ids(client.base_url, session=session_id)
    return await _follow_steps(client, session_id, steps, after=after, as_json=False)


async def _follow_steps(
    client: AsyncFootplate, session_id: str, steps: list[Step], *, after: str, as_json: bool
) -> int:
    view = QuietProgressView(steps) if as_json else StepProgressView(steps)
    asks = not as_json and approval_prompt.can_ask()
    result = await PipelineFollower(client, session_id, steps, view, asks=asks).follow(after=after)
    view.show_pipeline_result(result)
    return result.exit_code


async def _newest_position(client: AsyncFootplate, session_id: str) -> str:
    newest = (await client.events.list(session_id, limit=1, order="desc").page()).data
    return str(newest[0].position) if newest else "0"


def _load(path: Path, request: session_start.RunRequest, *, as_json: bool) -> Pipeline:
    try:
        return load_pipeline(path, is_complete=request.session is None)
    except InvalidPipeline as error:
        _refuse(str(error), _HELP, as_json=as_json)


def _refuse(message: str, help_text: str, *, as_json: bool) -> NoReturn:
    if as_json:
        detail = ErrorDetail(code="invalid_pipeline", title="Invalid pipeline file", message=message, help=help_text)
        terminal_io.print_json_line(ErrorAnswer(error=detail, exit_code=Exit.USAGE).model_dump(mode="json"))
    else:
        terminal_io.print_error(message, help_text)
    raise typer.Exit(Exit.USAGE) from None


async def _add_steps(
    client: AsyncFootplate,
    server: Server,
    request: session_start.RunRequest,
    pipeline: Pipeline,
    *,
    as_json: bool,
) -> tuple[str, str, list[Step]]:
    """Returns the session, the position before the steps in its log, and the steps."""
    if request.session is not None:
        session_id = await session_start.resolve_session_id(client, request.session)
        after = await _newest_position(client, session_id)
        with _explain_interrupt(session_id, as_json=as_json):
            steps = [*await client.steps.add(session_id, pipeline.to_wire())]
        saved_ids.remember_ids(client.base_url, session=session_id)
        return session_id, after, steps
    with _explain_interrupt(None, as_json=as_json):
        started = await session_start.start_turn(client, server, request)
    try:
        with _explain_interrupt(started.session_id, as_json=as_json):
            return started.session_id, started.after, [*await client.steps.add(started.session_id, pipeline.to_wire())]
    except ApiError:
        with suppress(ClientError):  # the empty session is not needed
            await client.sessions.delete(started.session_id)
        raise


@contextmanager
def _explain_interrupt(session_id: str | None, *, as_json: bool) -> Iterator[None]:
    """Says after Ctrl-C how to find a session whose steps may already run."""
    try:
        yield
    except asyncio.CancelledError:
        if not as_json and session_id is None:
            terminal_io.print_note("Stopped. If the session was created before that, `footplate ls` lists it first.")
        elif not as_json:
            terminal_io.print_note(
                "Detached. The session runs the steps if it has received them. Look at them, or end it:"
            )
            for command in ("steps ls", "end"):
                terminal_io.print_note(f"  footplate {command} {session_id}")
        raise


def _print_started(session_id: str, steps: list[Step], *, as_json: bool) -> None:
    if as_json:
        terminal_io.print_json_line(
            {"type": "pipeline_started", "session_id": session_id, "steps": [step.wire() for step in steps]}
        )
    else:
        terminal_io.print_result(session_id)
        terminal_io.err().print(f"[dim]Follow its steps with: footplate attach {session_id}[/]")
