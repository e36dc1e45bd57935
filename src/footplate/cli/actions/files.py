"""Implements `footplate files`: ls, upload, get and rm."""

from pathlib import Path

from footplate.cli.actions.members import resolve_audience
from footplate.cli.connection import run_with_client
from footplate.cli.profile.server_profiles import Server
from footplate.cli.render import resource_tables, terminal_io
from footplate.cli.render.terminal_io import print_json
from footplate.client import AsyncFootplate, File


def list_files(*, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> list[File]:
        return [file async for file in client.files.list(limit=100)]

    found = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        print_json([file.wire() for file in found])
    else:
        resource_tables.print_files(found)


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
