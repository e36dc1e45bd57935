"""Implements `footplate import` and `pull`, which copy Claude Code conversations from this machine to a server and
back.
"""

import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import typer

from footplate.cli import defaults
from footplate.cli.actions import claude_transcript_files
from footplate.cli.actions.claude_transcript_files import Transcript, TranscriptDownload
from footplate.cli.actions.members import resolve_audience
from footplate.cli.actions.run import session_start
from footplate.cli.connection import run_with_client
from footplate.cli.json_output_models import ImportedFile, Pulled
from footplate.cli.profile.server_profiles import Server
from footplate.cli.render import terminal_io
from footplate.cli.render.terminal_io import Exit, print_json, quote
from footplate.client import AsyncFootplate, ClientError, Session, StreamLost, Unauthenticated, Unreachable
from footplate.domain.text.visible_text import show_line


def import_transcripts(
    paths: Sequence[Path], request: session_start.RunRequest, *, as_json: bool, profile: str | None
) -> None:
    async def work(client: AsyncFootplate, server: Server) -> list[ImportedFile]:
        session_start.check_directory(server, request)
        files = claude_transcript_files.find_transcripts(paths)
        if not files:
            raise ClientError(
                f"No transcripts were found in {', '.join(map(str, paths))}.",
                help_text="Claude Code stores them in ~/.claude/projects, in one directory per project.",
            )
        audience = await resolve_audience(client, request.visibility, request.team)
        done = []
        for path in files:
            done.append(await _import_file(client, server, replace(request, audience=audience), path))
            if not as_json:
                _print_import(done[-1])
        return done

    done = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        print_json([each.model_dump() for each in done])
    raise typer.Exit(Exit.FAILED if any(each.error for each in done) else Exit.DONE)


async def _import_file(
    client: AsyncFootplate, server: Server, request: session_start.RunRequest, path: Path
) -> ImportedFile:
    """Imports one transcript. Only an unreachable server or an invalid key stops the other imports."""
    try:
        found = claude_transcript_files.read_transcript(path)
        result = ImportedFile(path=str(path), lines=found.lines, left_out=found.skipped_lines)
        if not found.messages:
            return result
        session = await session_start.retry_with_fresh_ids(client, lambda: _upload(client, server, request, found))
        return result.model_copy(update={"session_id": session.id})
    except (Unreachable, StreamLost, Unauthenticated):
        raise
    except ClientError as error:
        return ImportedFile(path=str(path), error=f"{error.message} {error.help}".strip())
    except OSError as error:
        return ImportedFile(path=str(path), error=f"The file cannot be read: {error.strerror}.")


async def _upload(
    client: AsyncFootplate, server: Server, request: session_start.RunRequest, found: Transcript
) -> Session:
    agent, environment_id = await session_start.choose_agent_and_environment(
        client, server, request, defaults.CLAUDE_HARNESS
    )
    return await client.sessions.import_transcript(
        found.import_lines,
        agent=agent,
        environment_id=environment_id,
        title=request.title or found.title,
        context={"directory": request.directory} if request.directory else None,
        **request.audience,
    )


def _print_import(imported: ImportedFile) -> None:
    if imported.error:
        terminal_io.print_error(f"{imported.path}: {imported.error}", "")
    elif imported.session_id is None:
        terminal_io.err().print(f"[dim]{quote(imported.path)}: skipped, it has no messages.[/]")
    else:
        terminal_io.print_result(imported.session_id)
        skipped = f", {imported.left_out} invalid lines skipped" if imported.left_out else ""
        terminal_io.err().print(f"[dim]{quote(imported.path)}: {imported.lines} lines{skipped}[/]")


def pull_transcript(wanted: str, directory: Path, *, force: bool, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> Pulled:
        session_id = await session_start.resolve_session_id(client, wanted)
        project = claude_transcript_files.project_directory(directory, os.environ)
        return await _download(client, session_id, project, directory, force=force)

    done = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        print_json(done.model_dump())
    else:
        terminal_io.print_result(done.path)
        terminal_io.err().print(f"{done.lines} lines were written. Continue with:", style="dim")
        terminal_io.print_exactly(terminal_io.err(), show_line(done.command))


async def _download(client: AsyncFootplate, session_id: str, project: Path, directory: Path, *, force: bool) -> Pulled:
    lines = client.sessions.transcript(session_id)
    first = await anext(lines)
    transcript_id = str(first.get("transcript_id"))
    with TranscriptDownload(project, transcript_id) as download:
        complete = False
        async for item in lines:
            if item.get("type") == "end":
                complete = item.get("lines") == download.lines
            elif isinstance(line := item.get("line"), dict):
                download.add_line(line, str(item.get("subpath") or ""))
        if not complete:
            raise Unreachable("The connection was lost before the transcript was complete. Nothing was written.")
        download.move_into_place(force=force)
    resume = f"claude --resume {transcript_id}"
    command = resume if directory == Path.cwd() else f"cd {shlex.quote(str(directory))} && {resume}"
    return Pulled(
        session_id=session_id,
        transcript_id=transcript_id,
        path=str(download.path),
        lines=download.lines,
        command=command,
    )
