"""Implements `footplate files`: ls, pull, upload, get and rm."""

from collections.abc import Sequence
from pathlib import Path

import typer

from footplate.cli.actions import output_download
from footplate.cli.actions.members import resolve_audience
from footplate.cli.actions.run.session_start import resolve_session_id
from footplate.cli.connection import run_with_client
from footplate.cli.json_output_models import PulledFile, PulledFiles
from footplate.cli.profile.server_profiles import Server
from footplate.cli.render import resource_tables, terminal_io
from footplate.cli.render.terminal_io import Exit, print_json
from footplate.client import AsyncFootplate, ClientError, File, StreamLost, Unauthenticated, Unreachable
from footplate.domain.text.visible_text import show_line


def list_files(session: str | None, *, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> tuple[list[File], Sequence[str]]:
        if session is None:
            return [file async for file in client.files.list(limit=100)], ()
        session_id = (await client.sessions.retrieve(await resolve_session_id(client, session))).id
        found = [file async for file in client.files.list(limit=100, scope_id=session_id)]
        return found, await client.files.omitted_outputs(session_id)

    found, omitted = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        print_json([file.wire() for file in found])
        return
    if found or session is None:
        resource_tables.print_files(found)
    else:
        terminal_io.print_note("The session has no outputs. Agents leave them in /mnt/session/outputs.")
    _print_omitted(omitted)


def pull(session: str, directory: Path, *, force: bool, as_json: bool, profile: str | None) -> None:
    directory = directory.absolute()

    async def work(client: AsyncFootplate, _server: Server) -> PulledFiles:
        session_id = (await client.sessions.retrieve(await resolve_session_id(client, session))).id
        done = []
        async for file in client.files.list(limit=100, scope_id=session_id):
            done.append(await _pull_file(client, file, directory, force=force))
            if not as_json:
                _print_pulled(done[-1])
        omitted = [*await client.files.omitted_outputs(session_id)]
        return PulledFiles(session_id=session_id, directory=str(directory), files=done, omitted=omitted)

    result = run_with_client(work, profile=profile, as_json=as_json)
    failed = sum(file.path is None for file in result.files)
    if as_json:
        print_json(result.model_dump())
    else:
        written = len(result.files) - failed
        terminal_io.print_note(f"{written} of {len(result.files)} files were written to {result.directory}.")
        _print_omitted(result.omitted)
    raise typer.Exit(Exit.FAILED if failed else Exit.DONE)


async def _pull_file(client: AsyncFootplate, file: File, directory: Path, *, force: bool) -> PulledFile:
    """Downloads one file. Only an unreachable server or an invalid key stops the other downloads."""
    result = PulledFile(file_id=file.id, filename=file.filename, size_bytes=file.size_bytes)
    try:
        with output_download.OutputDownload(directory, file.filename, force=force) as download:
            async for piece in client.files.content(file.id):
                download.write(piece)
            path = download.finish(file.size_bytes)
    except (Unreachable, StreamLost, Unauthenticated):
        raise
    except ClientError as error:
        return result.model_copy(update={"error": f"{error.message} {error.help}".strip()})
    except OSError as error:
        return result.model_copy(update={"error": f"The file cannot be written: {error.strerror}."})
    return result.model_copy(update={"path": str(path)})


def _print_pulled(file: PulledFile) -> None:
    if file.error is not None:
        terminal_io.print_error(f"{file.filename}: {file.error}")
    else:
        terminal_io.print_exactly(terminal_io.out(), f"{show_line(str(file.path))}  {file.size_bytes:,} bytes")


def _print_omitted(omitted: Sequence[str]) -> None:
    if omitted:
        terminal_io.print_note(f"The server has not stored {len(omitted)} files of the session's output directory:")
        for line in omitted:
            terminal_io.print_exactly(terminal_io.err(), f"  {show_line(line)}")


def upload(
    path: Path, *, expires: int | None, visibility: str | None, team: str | None, as_json: bool, profile: str | None
) -> None:
    content = path.read_bytes()

    async def work(client: AsyncFootplate, _server: Server) -> File:
        audience = await resolve_audience(client, visibility, team)
        return await client.files.upload(path.name, content, expires_in_seconds=expires, **audience)

    file = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        print_json(file.wire())
    else:
        terminal_io.print_result(file.id)


def get(file_id: str, *, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> None:
        writer = terminal_io.ContentWriter()
        async for piece in client.files.content(file_id):
            if not writer.write(piece):
                return
        writer.finish()

    run_with_client(work, profile=profile, as_json=False)


def remove(file_id: str, *, as_json: bool, profile: str | None) -> None:
    deleted = run_with_client(lambda client, _: client.files.delete(file_id), profile=profile, as_json=as_json)
    if as_json:
        print_json([deleted.wire()])
    else:
        terminal_io.print_result(deleted.id)
