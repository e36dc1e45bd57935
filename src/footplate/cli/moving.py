"""Implements `import` and `pull`: moves Claude Code conversations from this machine to a server and back."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

import typer

from footplate.cli import defaults, local_transcripts, output, starting
from footplate.cli.answers import ImportedFile, Pulled
from footplate.cli.connection import talk
from footplate.cli.local_transcripts import Arriving, Transcript
from footplate.cli.output import Exit, print_json, quote
from footplate.cli.profiles import Server
from footplate.client import AsyncFootplate, ClientError, Session, StreamLost, Unauthenticated, Unreachable
from footplate.domain.visible_text import show_line


def import_(paths: Sequence[Path], request: starting.Request, *, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, server: Server) -> list[ImportedFile]:
        starting.check_directory(server, request)
        files = local_transcripts.found(paths)
        if not files:
            raise ClientError(
                f"No transcripts were found in {', '.join(map(str, paths))}.",
                help_text="Claude Code stores them in ~/.claude/projects, in one directory per project.",
            )
        done = []
        for path in files:
            done.append(await _import(client, server, request, path))
            if not as_json:
                _tell(done[-1])
        return done

    done = talk(work, profile=profile, as_json=as_json)
    if as_json:
        print_json([each.model_dump() for each in done])
    raise typer.Exit(Exit.FAILED if any(each.error for each in done) else Exit.DONE)


async def _import(client: AsyncFootplate, server: Server, request: starting.Request, path: Path) -> ImportedFile:
    """Imports one transcript. Only an unreachable server or an invalid key stops the other imports."""
    try:
        found = local_transcripts.read(path)
        answer = ImportedFile(path=str(path), lines=found.lines, left_out=found.left_out)
        if not found.said:
            return answer
        session = await starting.looking_again(client, lambda: _send(client, server, request, found))
        return answer.model_copy(update={"session_id": session.id})
    except (Unreachable, StreamLost, Unauthenticated):
        raise
    except ClientError as error:
        return ImportedFile(path=str(path), error=f"{error.message} {error.help}".strip())
    except OSError as error:
        return ImportedFile(path=str(path), error=f"The file cannot be read: {error.strerror}.")


async def _send(client: AsyncFootplate, server: Server, request: starting.Request, found: Transcript) -> Session:
    agent, environment_id = await starting.whom_and_where(client, server, request, defaults.CLAUDE)
    return await client.sessions.import_transcript(
        found.sent,
        agent=agent,
        environment_id=environment_id,
        title=request.title or found.title,
        context={"directory": request.directory} if request.directory else None,
    )


def _tell(done: ImportedFile) -> None:
    if done.error:
        output.complain(f"{done.path}: {done.error}", "")
    elif done.session_id is None:
        output.err().print(f"[dim]{quote(done.path)}: skipped, it has no messages.[/]")
    else:
        output.print_result(done.session_id)
        left_out = f", {done.left_out} invalid lines skipped" if done.left_out else ""
        output.err().print(f"[dim]{quote(done.path)}: {done.lines} lines{left_out}[/]")


def pull(wanted: str, directory: Path, *, force: bool, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> Pulled:
        session_id = await starting.session_id_of(client, wanted)
        project = local_transcripts.project_directory(directory, os.environ)
        return await _pull(client, session_id, project, directory, force=force)

    done = talk(work, profile=profile, as_json=as_json)
    if as_json:
        print_json(done.model_dump())
    else:
        output.print_result(done.path)
        output.err().print(f"{done.lines} lines. Continue with:", style="dim")
        output.print_exactly(output.err(), show_line(done.command))


async def _pull(client: AsyncFootplate, session_id: str, project: Path, directory: Path, *, force: bool) -> Pulled:
    lines = client.sessions.transcript(session_id)
    first = await anext(lines)
    transcript_id = str(first.get("transcript_id"))
    with Arriving(project, transcript_id) as arriving:
        whole = False
        async for item in lines:
            if item.get("type") == "end":
                whole = item.get("lines") == arriving.lines
            elif isinstance(line := item.get("line"), dict):
                arriving.add(line, str(item.get("subpath") or ""))
        if not whole:
            raise Unreachable("The connection was lost before the transcript was complete. Nothing was written.")
        arriving.settle(force=force)
    resume = f"claude --resume {transcript_id}"
    command = resume if directory == Path.cwd() else f"cd {shlex.quote(str(directory))} && {resume}"
    return Pulled(
        session_id=session_id,
        transcript_id=transcript_id,
        path=str(arriving.path),
        lines=arriving.lines,
        command=command,
    )
